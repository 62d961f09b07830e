"""Journals on a real PostgreSQL: who may append, what is answered, what guards stop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
from harness.journals import (
    NOW,
    Holder,
    Office,
    failure,
    holding,
    intent,
    one_database,
    result,
    undone,
    usage,
    void,
)
from harness.services import RunningPostgres
from headway.agents.entries import (
    BUDGET_SPENT,
    LOOP_DETECTED,
    OUT_OF_ORDER,
    SUPERSEDED,
    TOOL_NOT_ALLOWED,
    TRIPPED,
    NewEntry,
    Usage,
)
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal, StoreUnavailable
from headway.coordinator.store import Store
from headway.sagas.attempts import CLAIMS_MAX

RACES = 20


@pytest.fixture(scope="module")
def database(shared_postgres: RunningPostgres) -> Iterator[str]:
    with one_database(shared_postgres) as url:
        yield url


@pytest.fixture
async def office(database: str) -> AsyncIterator[Office]:
    store = Store(database)
    yield Office(store)
    await store.close()


async def refusal_of(asked: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await asked
    return caught.value


async def count_commits(office: Office, work: Any) -> int:
    """How many times a batch of journals was committed while `work` was done."""
    commits = 0
    fetch = office.store.fetch

    async def counting(name: str, *arguments: Any) -> Any:
        nonlocal commits
        commits += name == "commit_journals"
        return await fetch(name, *arguments)

    office.store.fetch = counting  # type: ignore[method-assign]
    await work
    return commits


async def test_a_journal_is_opened_appended_to_and_read(office):
    holder = await holding(office)
    assert (holder.epoch, holder.seq) == (1, 0)
    appended = await holder.append(intent(data={"amount": 5}, model=True))
    assert (appended.seq, appended.usage) == (1, Usage())
    spent = Usage(input_tokens=10, output_tokens=2, cost_usd=0.1)
    appended = await holder.append(
        result(data=["ä", None, 1.5], usage=spent, took_ms=7, size=14, datadigest="dd"),
        NewEntry(kind="checkpoint", data={"at": 1}),
        NewEntry(kind="note", data="so far so good"),
    )
    assert (appended.seq, appended.usage) == (4, spent)
    first, second, third, fourth = (await holder.read()).entries
    assert (first.kind, first.tool, first.key, first.model) == ("intent", "pay", "pay#1", True)
    assert (first.data, first.arguments_digest, first.epoch) == ({"amount": 5}, "d", 1)
    assert first.at.timestamp() * 1000 == NOW
    assert (second.kind, second.tool, second.data) == ("result", "pay", ["ä", None, 1.5])
    assert (second.usage, second.took_ms, second.size, second.datadigest) == (spent, 7, 14, "dd")
    assert (third.kind, third.data) == ("checkpoint", {"at": 1})
    assert (fourth.seq, fourth.kind, fourth.by) == (4, "note", "")


async def test_whoever_takes_over_finds_all_that_was_written(office):
    holder = await holding(office, Manifest(goal="pay once", max_tokens=100))
    await holder.append(intent(), result(usage=usage(9)))
    epoch = await office.taken_over(holder.task)
    successor = Holder(office, holder.task, command_epoch=epoch, worker="second")
    opened = await successor.open()
    assert opened.epoch == 2
    assert [entry.kind for entry in opened.entries] == ["intent", "result"]
    assert opened.manifest == Manifest(goal="pay once", max_tokens=100)
    assert opened.usage == usage(9)
    assert not opened.more


async def test_whose_model_was_asked_is_told_to_people_and_left_out_for_agents(office):
    """Agents of version 0.2 refuse an answer with it, and would ask again for ever."""
    holder = await holding(office)
    asked = Usage(input_tokens=3, provider="anthropic", model="claude")
    appended = await holder.append(intent(), result(usage=asked))
    assert '"usage":{"input_tokens":3,"output_tokens":0,"cost_usd":0.0}' in (
        appended.model_dump_json()
    )
    for told in (await holder.read_own(), await holder.open()):
        assert told.entries[1].usage == Usage(input_tokens=3)
        assert "provider" not in told.model_dump_json()
    assert (await holder.read()).entries[1].usage == asked


async def test_a_zombie_is_refused_from_the_moment_its_successor_opens(office):
    zombie = await holding(office)
    epoch = await office.taken_over(zombie.task)
    await zombie.append(intent())  # nobody has opened it since: that is still taken down
    successor = Holder(office, zombie.task, command_epoch=epoch, worker="second")
    await successor.open()
    assert successor.seq == 1
    refusal = await refusal_of(zombie.append(result()))
    assert (refusal.code, refusal.kind) == (409, SUPERSEDED)
    assert refusal.reason == (
        "epoch 1 of the journal for the action of step 'do' is over: another has it, with epoch 2"
    )
    refusal = await refusal_of(zombie.open())
    assert (refusal.code, refusal.kind) == (409, SUPERSEDED)
    assert refusal.reason == (
        "attempt 1 (epoch 0) of the action of step 'do' is not outstanding any more: another "
        "worker has it, or the task has gone on without it"
    )
    await successor.append(result())


async def test_a_zombie_that_read_its_task_before_it_was_taken_over_is_refused_by_the_statement(
    office,
):
    """It has read everything and is about to write; then its successor claims and opens."""
    task = await office.submit()
    zombie = Holder(office, task, journal=office.another_journal())
    fetch, overtaken = office.store.fetch, False

    async def overtaking(name: str, *arguments: Any) -> Any:
        nonlocal overtaken
        if name == "commit_journals" and not overtaken:
            overtaken = True
            epoch = await office.taken_over(task)
            successor = Holder(office, task, command_epoch=epoch, worker="second")
            await successor.open()
            assert successor.epoch == 1
        return await fetch(name, *arguments)

    office.store.fetch = overtaking
    refusal = await refusal_of(zombie.open())
    assert (overtaken, refusal.kind) == (True, SUPERSEDED)


async def test_of_two_openers_that_race_exactly_one_can_append(office):
    for _ in range(RACES):
        task = await office.submit()
        epoch = await office.taken_over(task)
        zombie = Holder(office, task, journal=office.another_journal())
        successor = Holder(office, task, command_epoch=epoch, worker="second")
        rivals = [
            successor,
            Holder(
                office,
                task,
                command_epoch=epoch,
                worker="third",
                journal=office.another_journal(),
            ),
        ]
        opened = await asyncio.gather(
            *(each.open() for each in (zombie, *rivals)), return_exceptions=True
        )
        assert isinstance(opened[0], Refusal)
        outcomes = await asyncio.gather(
            *(each.append(intent()) for each in rivals), return_exceptions=True
        )
        refused = [each for each in outcomes if isinstance(each, Refusal)]
        assert [each.kind for each in refused] == [SUPERSEDED], outcomes
        assert len((await successor.read()).entries) == 1


async def test_of_appends_that_race_through_two_coordinators_each_place_is_taken_once(office):
    for _ in range(RACES):
        holder = await holding(office)
        rivals = [
            Holder(office, holder.task, epoch=holder.epoch, journal=office.another_journal())
            for _ in range(3)
        ]
        outcomes = await asyncio.gather(
            *(
                rival.append(NewEntry(kind="note", data=f"from {number}"))
                for number, rival in enumerate(rivals)
            ),
            return_exceptions=True,
        )
        refused = [each for each in outcomes if isinstance(each, Refusal)]
        assert [each.kind for each in refused] == [OUT_OF_ORDER] * 2, outcomes
        assert refused[0].reason == "entry 1 is another one in the journal"
        assert len((await holder.read()).entries) == 1


async def test_an_open_whose_answer_was_lost_is_answered_again(office):
    holder = await holding(office)
    await holder.append(intent())
    again = await holder.open()
    assert (again.epoch, len(again.entries)) == (1, 1)


async def test_an_append_whose_answer_was_lost_is_answered_again_and_written_once(office):
    holder = await holding(office)
    first = await holder.append(intent(), result(usage=usage(5)), seq=1)
    await holder.append(NewEntry(kind="note", data="later"))
    again = await holder.append(intent(), result(usage=usage(5)), seq=1)
    assert again == first
    assert [entry.kind for entry in (await holder.read()).entries] == ["intent", "result", "note"]


async def test_an_append_that_is_asked_twice_at_once_is_written_once(office):
    holder = await holding(office)
    other = Holder(office, holder.task, epoch=1, journal=office.another_journal())
    answers = await asyncio.gather(
        *(each.append(intent(), seq=1) for each in (holder, other, holder, other))
    )
    assert {answer.seq for answer in answers} == {1}
    assert len((await holder.read()).entries) == 1


async def test_appends_that_do_not_wait_for_each_other_are_taken_in_their_order(office):
    holder = await holding(office)
    notes = [NewEntry(kind="note", data=number) for number in range(1, 11)]
    answers = await asyncio.gather(
        *(holder.append(note, seq=seq) for seq, note in enumerate(notes, 1))
    )
    assert [answer.seq for answer in answers] == list(range(1, 11))
    assert [entry.data for entry in (await holder.read()).entries] == list(range(1, 11))


async def test_entries_come_in_order_and_no_other_way(office):
    holder = await holding(office)
    await holder.append(intent())
    for asked, reason in (
        (holder.append(result(), seq=3), "entry 3 cannot come next: the journal has 1"),
        (holder.append(result(), seq=1), "entry 1 is another one in the journal"),
        (holder.append(intent(digest="e"), seq=1), "entry 1 is another one in the journal"),
        (
            holder.append(intent(), result(), seq=1),
            "entry 1 was appended before, but with fewer others",
        ),
    ):
        refusal = await refusal_of(asked)
        assert (refusal.code, refusal.kind, refusal.reason) == (409, OUT_OF_ORDER, reason)
    await holder.append(result())


async def test_a_journal_that_nobody_opened_takes_nothing(office):
    task = await office.submit()
    for holder in (
        Holder(office, task),
        Holder(office, task, epoch=1),
        Holder(office, new_task_id()),
    ):
        refusal = await refusal_of(holder.append(intent()))
        assert (refusal.kind, refusal.reason) == (
            SUPERSEDED,
            f"the journal for the action of step 'do' was not opened with epoch {holder.epoch}",
        )


@pytest.mark.parametrize(
    ("who", "code", "reason"),
    [
        ({"task": new_task_id()}, 404, "there is no task {task}"),
        ({"step": "dance"}, 404, "there is no step 'dance' in saga 'errand'"),
        ({"attempt": 2}, 409, "attempt 2 (epoch 0) of the action of step 'do' is not outstanding"),
        ({"phase": "compensation"}, 409, "attempt 1 (epoch 0) of the compensation of step 'do'"),
        (
            {"agent": "mallory"},
            403,
            "the action of step 'do' is for agent 'clerk', not for 'mallory'",
        ),
        ({"worker": ""}, 422, "worker: who opens a journal must say so"),
        ({"worker": "w\0"}, 422, "worker: a NUL character cannot be stored"),
        ({"step": "do" * 600}, 422, "step: at most 1000 characters are taken"),
    ],
)
async def test_who_may_not_open_a_journal_is_told_why(office, who, code, reason):
    task = await office.submit()
    holder = Holder(office, **{"task": task, **who})
    refusal = await refusal_of(holder.open())
    assert refusal.code == code
    assert refusal.reason.startswith(reason.format(task=holder.task))


async def test_the_undoing_of_a_step_takes_down_what_is_under_way_and_nothing_new(office):
    zombie = await holding(office)
    await zombie.append(intent())
    undoer = await undone(office, zombie.task)
    assert (undoer.epoch, undoer.seq) == (1, 0)
    refusal = await refusal_of(zombie.append(intent("mail")))
    assert (refusal.code, refusal.kind, refusal.reason) == (
        409,
        SUPERSEDED,
        "the step is being undone, so that nothing further may be begun",
    )
    await zombie.append(result())
    await undoer.append(intent("refund"))


async def test_a_zombie_that_never_opened_cannot_once_its_step_is_being_undone(office):
    task = await office.submit()
    await undone(office, task)
    refusal = await refusal_of(Holder(office, task).open())
    assert refusal.kind == SUPERSEDED
    forger = Holder(office, task, epoch=1)
    assert (await refusal_of(forger.append(intent()))).kind == SUPERSEDED


async def test_a_tool_that_the_manifest_does_not_name_is_stopped(office):
    holder = await holding(office, Manifest(tools=["look", "pay"]))
    refusal = await refusal_of(holder.append(intent("wire")))
    assert (refusal.code, refusal.kind) == (403, TOOL_NOT_ALLOWED)
    assert refusal.reason == "tool 'wire' is not one of the 2 that the task's manifest allows"
    assert office.held == [(holder.task, "do", TOOL_NOT_ALLOWED, refusal.reason)]
    assert (await holder.append(intent("pay"))).seq == 1


async def test_a_budget_is_for_all_steps_of_a_task_together(office):
    task = await office.submit("pair", Manifest(max_tokens=100, max_cost_usd=1.0))
    left, right = Holder(office, task, "left"), Holder(office, task, "right")
    await asyncio.gather(left.open(), right.open())
    await left.call("think", 1, usage=usage(60, 0.1))
    await right.call("think", 1, usage=usage(30, 0.2))
    appended = await left.append(intent("think", "think#2", "other"))
    assert appended.usage == usage(90, 0.3)  # exactly, as money is counted
    assert (
        await right.append(NewEntry(kind="note", data="n", usage=usage(10)))
    ).usage.tokens == 100
    refusal = await refusal_of(right.append(intent("think", "think#2", "other")))
    assert (refusal.code, refusal.kind) == (402, BUDGET_SPENT)
    assert refusal.reason == (
        "the task's budget is spent: 100 of 100 tokens are used, so no further tool is called"
    )
    assert office.held == [(task, "right", BUDGET_SPENT, refusal.reason)]


async def test_a_budget_of_money_is_kept(office):
    holder = await holding(office, Manifest(max_cost_usd=0.3))
    await holder.call("think", 1, usage=usage(1, 0.1))
    await holder.call("think", 2, usage=usage(1, 0.2))
    refusal = await refusal_of(holder.append(intent("think", "think#3")))
    assert refusal.reason == (
        "the task's budget is spent: 0.3 of 0.3 US dollars are spent, so no further tool is called"
    )


async def test_an_agent_that_goes_round_in_circles_is_stopped_across_attempts(office):
    holder = await holding(office)
    for number in range(1, 5):
        await holder.append(intent("look", f"look#{number}"))
        await holder.append(result("look", f"look#{number}"))
    epoch = await office.taken_over(holder.task)
    successor = Holder(office, holder.task, command_epoch=epoch, worker="second")
    await successor.open()
    refusal = await refusal_of(successor.append(intent("look", "look#5")))
    assert (refusal.code, refusal.kind) == (409, LOOP_DETECTED)
    assert refusal.reason == (
        "the agent goes round in circles: 'look 18ac3e7343f0' 5 times in a row"
    )
    assert office.held == [(holder.task, "do", LOOP_DETECTED, refusal.reason)]
    assert (await successor.append(intent("look", "look#5", digest="other"))).seq == 9


async def test_two_tools_that_take_turns_are_stopped(office):
    holder = await holding(office)
    turns = [(tool, n) for n in range(1, 6) for tool in ("ask", "answer")]
    for tool, number in turns[:-1]:
        key = f"{tool}#{number}"
        await holder.append(intent(tool, key), result(tool, key))
    refusal = await refusal_of(holder.append(intent("answer", "answer#5")))
    assert refusal.reason == (
        "the agent goes round in circles: the cycle 'ask 18ac3e7343f0', 'answer 18ac3e7343f0' "
        "5 times"
    )


async def test_a_call_that_never_happened_is_no_step_of_a_loop(office):
    holder = await holding(office)
    for _ in range(7):
        await holder.append(intent())
        await holder.append(void())
    assert (await holder.append(intent())).seq == 15


async def test_three_failures_in_a_row_trip_and_a_result_between_them_does_not(office):
    holder = await holding(office)
    for number, ending in enumerate((failure, failure, result, failure, failure, failure)):
        await holder.append(intent(key=f"pay#{number}", digest=f"d{number}"))
        await holder.append(ending(key=f"pay#{number}"))
    refusal = await refusal_of(holder.append(intent("mail")))
    assert (refusal.code, refusal.kind) == (409, TRIPPED)
    assert refusal.reason == (
        "3 calls of tools failed in a row: a person must look before 'mail' is called"
    )
    assert office.held == [(holder.task, "do", TRIPPED, refusal.reason)]


async def test_when_a_person_has_resumed_the_task_guards_count_anew(office):
    holder = await holding(office)
    for number in range(3):
        await holder.append(intent(key=f"pay#{number}"), failure(key=f"pay#{number}"))
    await office.failed(holder.task, hold=True)
    loaded = await office.resumed(holder.task)
    successor = Holder(office, holder.task, attempt=loaded.task.steps["do"].attempt)
    await successor.open()
    for number in range(3, 6):  # with those before it would be a loop, too
        await successor.append(intent(key=f"pay#{number}"))
        await successor.append(result(key=f"pay#{number}"))


async def test_another_attempt_alone_does_not_make_guards_count_anew(office):
    holder = await holding(office)
    for number in range(3):
        await holder.append(intent(key=f"pay#{number}"), failure(key=f"pay#{number}"))
    epoch = await office.taken_over(holder.task)
    successor = Holder(office, holder.task, command_epoch=epoch, worker="second")
    await successor.open()
    assert (await refusal_of(successor.append(intent("mail")))).kind == TRIPPED


@pytest.mark.parametrize("ending", [result, failure, void])
async def test_what_is_not_under_way_cannot_end(office, ending):
    holder = await holding(office)
    refusal = await refusal_of(holder.append(ending()))
    assert (refusal.kind, refusal.reason) == (
        OUT_OF_ORDER,
        "call 'pay#1' is not under way: no intent of it is open",
    )


async def test_a_call_that_is_under_way_is_not_begun_again(office):
    holder = await holding(office)
    await holder.append(intent())
    refusal = await refusal_of(holder.append(intent()))
    assert (refusal.kind, refusal.reason) == (
        OUT_OF_ORDER,
        "call 'pay#1' is under way already: entry 1 is its intent, and nothing says how it ended",
    )
    await holder.append(failure())
    await holder.append(intent())  # tried again


@pytest.mark.parametrize(
    ("entry", "code", "reason"),
    [
        (
            NewEntry(kind="note", data="x" * 262_143),
            413,
            "entries.0.data: 262145 bytes of JSON; over 262144 (256 KiB) a value goes to the "
            "object store and travels as dataref and datadigest",
        ),
        (NewEntry(kind="note", data=float("nan")), 422, "entries.0.data: a number is not finite"),
        (
            NewEntry(kind="note", data=2**64),
            422,
            "entries.0.data: Integer exceeds 64-bit range",
        ),
        (intent(key="a\0"), 422, "entries.0.key: a NUL character cannot be stored"),
        (intent(digest="d" * 1_001), 422, "entries.0.arguments_digest: at most 1000 characters"),
        (NewEntry(kind="result"), 422, "entries.0.key: a result needs the key of its call"),
        (
            NewEntry(kind="intent", key="k", tool="t"),
            422,
            "entries.0: an intent needs its tool and its arguments_digest",
        ),
        (
            NewEntry(kind="note", dataref="r"),
            422,
            "entries.0.dataref: it needs the datadigest of what it refers to",
        ),
        (
            NewEntry(kind="note", usage=Usage(input_tokens=10**13)),
            422,
            "entries.0.usage: one call uses at most 1000000000000 tokens and 1000000000 US dollars",
        ),
        (
            NewEntry(kind="note", usage=Usage(provider="a\0")),
            422,
            "entries.0.usage.provider: a NUL character cannot be stored",
        ),
        (
            NewEntry(kind="note", usage=Usage(model="\0")),
            422,
            "entries.0.usage.model: a NUL character cannot be stored",
        ),
        (NewEntry(kind="note", took_ms=2**70), 422, "entries.0: Integer exceeds 64-bit range"),
    ],
)
async def test_an_entry_that_cannot_be_kept_is_refused_with_the_field_named(
    office, entry, code, reason
):
    holder = await holding(office)
    refusal = await refusal_of(holder.append(entry))
    assert refusal.code == code
    assert refusal.reason.startswith(reason)
    assert (await holder.read()).entries == []


async def test_a_value_of_exactly_256_kib_and_texts_with_nul_are_kept_as_they_are(office):
    holder = await holding(office)
    values = ["x" * 262_142, "a\0b", {"\0": [1e300, -(2**63)]}]
    await holder.append(*(NewEntry(kind="note", data=value) for value in values))
    assert [entry.data for entry in (await holder.read()).entries] == values


async def test_a_long_journal_is_read_page_by_page(office):
    holder = await holding(office)
    for _ in range(4):
        await holder.append(*(NewEntry(kind="note", data=n) for n in range(5)))
    page = await holder.read(limit=8)
    assert ([entry.seq for entry in page.entries], page.more) == (list(range(1, 9)), True)
    page = await holder.read(after=16, limit=8)
    assert ([entry.seq for entry in page.entries], page.more) == ([17, 18, 19, 20], False)
    assert not (await holder.read(after=20)).more


async def test_a_page_of_large_values_ends_before_it_is_too_large(office):
    holder = await holding(office)
    for _ in range(20):
        await holder.append(NewEntry(kind="note", data="x" * 262_000))
    opened = await holder.open()
    assert (len(opened.entries), opened.more) == (16, True)
    rest = await holder.read(after=16)
    assert (len(rest.entries), rest.more) == (4, False)


async def test_a_task_that_does_not_exist_has_no_journal_to_read(office):
    nobody = Holder(office, new_task_id())
    refusal = await refusal_of(nobody.read())
    assert (refusal.code, refusal.reason) == (404, f"there is no task {nobody.task}")
    assert (await Holder(office, await office.submit()).read()).entries == []


async def parked_with_an_open_call(office: Office) -> Holder:
    holder = await holding(office)
    await holder.append(intent(data={"amount": 5}))
    await office.failed(holder.task, hold=True)
    return holder


async def test_a_person_says_that_an_open_call_happened(office):
    holder = await parked_with_an_open_call(office)
    said = {"result": {"receipt": 7}, "by": "ann", "reason": "the bank says so"}
    settled = await holder.settle("pay#1", "happened", **said)
    assert settled.seq == 2
    again = await holder.settle("pay#1", "happened", **said)
    assert again == settled
    entry = (await holder.read()).entries[-1]
    assert (entry.kind, entry.tool, entry.data) == ("result", "pay", {"receipt": 7})
    assert (entry.by, entry.reason, entry.epoch) == ("ann", "the bank says so", 2)
    refusal = await refusal_of(holder.append(result()))
    assert refusal.kind == SUPERSEDED
    refusal = await refusal_of(holder.settle("pay#1", "did_not_happen", by="bob"))
    assert (refusal.code, refusal.reason) == (
        409,
        "call 'pay#1' is settled already: entry 2 is its result",
    )


async def test_a_person_says_that_an_open_call_did_not_happen_and_it_may_be_run_again(office):
    holder = await parked_with_an_open_call(office)
    await holder.settle("pay#1", "did_not_happen", by="ann", reason="the bank says no")
    loaded = await office.resumed(holder.task)
    successor = Holder(office, holder.task, attempt=loaded.task.steps["do"].attempt)
    opened = await successor.open()
    assert [(entry.kind, entry.by) for entry in opened.entries] == [("intent", ""), ("void", "ann")]
    assert successor.epoch == 3
    await successor.append(intent(), result())


async def test_only_an_open_call_of_a_parked_task_is_settled(office):
    holder = await holding(office)
    await holder.append(intent())
    refusal = await refusal_of(holder.settle("pay#1", "happened"))
    assert (refusal.code, refusal.reason) == (
        409,
        "the task is running; a call is settled by hand only while its task is parked",
    )
    await office.failed(holder.task, hold=True)
    refusal = await refusal_of(holder.settle("pay#2", "happened"))
    assert (refusal.code, refusal.reason) == (
        404,
        "there is no call 'pay#2' in the journal for the action of step 'do'",
    )
    refusal = await refusal_of(holder.settle("pay#1", "happened", by="a\0"))
    assert (refusal.code, refusal.reason) == (422, "by: a NUL character cannot be stored")
    refusal = await refusal_of(holder.settle("pay#1", "happened", result="x" * 262_143))
    assert refusal.code == 413
    nobody = Holder(office, new_task_id())
    refusal = await refusal_of(nobody.settle("pay#1", "happened"))
    assert (refusal.code, refusal.reason) == (404, f"there is no task {nobody.task}")


async def test_open_calls_of_tasks_are_listed_with_what_they_were_to_do(office):
    first, second = await holding(office), await holding(office)
    await first.append(intent("pay", data={"amount": 5}), intent("mail"), intent("look"))
    await first.append(result("mail"))
    await second.append(intent(), result())
    asked = [first.task, second.task, new_task_id()]
    calls = await office.store.fetch("unsettled_intents", asked)
    assert [(call["task_id"], call["key"], call["tool"], call["data"]) for call in calls] == [
        (first.task, "pay#1", "pay", b'{"amount":5}'),
        (first.task, "look#1", "look", None),
    ]
    assert (calls[0]["agent"], calls[0]["arguments_digest"]) == ("clerk", "d")


async def test_what_waits_is_committed_together(office):
    holders = await asyncio.gather(*(holding(office) for _ in range(64)))
    commits = await count_commits(
        office, asyncio.gather(*(holder.append(intent()) for holder in holders))
    )
    assert commits <= 3
    for holder in holders:
        assert len((await holder.read()).entries) == 1


async def test_one_bad_request_in_a_batch_fails_alone(office, monkeypatch):
    holders = await asyncio.gather(*(holding(office) for _ in range(8)))
    broken = holders[3].task
    real = office.store.fetch

    async def failing(name: str, *arguments: Any) -> Any:
        if name == "commit_journals" and broken in arguments[0]:
            raise RuntimeError("a fault of ours")
        return await real(name, *arguments)

    monkeypatch.setattr(office.store, "fetch", failing)
    outcomes = await asyncio.gather(
        *(holder.append(intent()) for holder in holders), return_exceptions=True
    )
    [refusal] = [each for each in outcomes if isinstance(each, BaseException)]
    assert outcomes.index(refusal) == 3
    assert (refusal.code, refusal.reason) == (
        500,
        "this could not be decided: an internal error, see the log",
    )


async def test_when_postgresql_does_not_answer_nobody_is_told_anything_wrong(office, monkeypatch):
    holder = await holding(office)

    async def away(*_: Any) -> Any:
        raise StoreUnavailable("it is away")

    with monkeypatch.context() as patched:
        patched.setattr(office.store, "fetch", away)
        with pytest.raises(StoreUnavailable):
            await holder.append(intent(), seq=1)
    assert (await holder.append(intent(), seq=1)).seq == 1


async def test_what_was_written_cannot_be_changed_or_taken_away(office, database):
    holder = await holding(office)
    await holder.append(intent())
    connection = await asyncpg.connect(database)
    for statement, said in (
        ("UPDATE headway.journal_entries SET tool = 'x'", "UPDATE of journal_entries_"),
        ("DELETE FROM headway.journal_entries", "DELETE of journal_entries_"),
        ("TRUNCATE headway.journal_entries", "TRUNCATE of journal_entries"),
        ("TRUNCATE headway.journal_entries_other", "TRUNCATE of journal_entries_other"),
        ("UPDATE headway.task_events SET type = 'x'", "UPDATE of task_events_"),
        ("DELETE FROM headway.task_events", "DELETE of task_events_"),
        ("TRUNCATE headway.task_events", "TRUNCATE of task_events"),
    ):
        with pytest.raises(asyncpg.RestrictViolationError) as caught:
            await connection.execute(statement)
        assert str(caught.value).startswith(said)
        assert str(caught.value).endswith(
            ": it is append-only; old months are dropped whole, with their partition"
        )
    await connection.close()


async def test_partitions_hold_the_journals_of_their_month(database):
    connection = await asyncpg.connect(database)
    ensure = "SELECT headway.ensure_journal_partitions('2031-11-29 10:00+00', 2)"
    assert await connection.fetchval(ensure) == 3
    assert await connection.fetchval(ensure) == 0
    for moment, partition in (
        ("2031-11-30 23:59:59.999+00", "journal_entries_2031_11"),
        ("2031-12-01 00:00+00", "journal_entries_2031_12"),
        ("2032-01-15 00:00+00", "journal_entries_2032_01"),
        ("2020-01-01 00:00+00", "journal_entries_other"),
    ):
        row = await connection.fetchrow(
            "INSERT INTO headway.journal_entries VALUES"
            f" (headway.uuid7_floor('{moment}'), 's', 'action', 1, 1, 'note', '', '', '', '', '',"
            " now(), 0, '{}') RETURNING tableoid::regclass::text AS partition"
        )
        assert row["partition"].removeprefix("headway.") == partition
    with pytest.raises(asyncpg.RestrictViolationError):
        await connection.execute("TRUNCATE headway.journal_entries_2031_12")
    await connection.execute("DROP TABLE headway.journal_entries_2031_12")
    await connection.close()


async def test_a_random_walk_through_two_coordinators_leaves_whole_journals(office):
    """Appends, repetitions, take-overs and zombies at once: numbers without a gap, epochs that
    never fall, and all that was answered is there."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    journals = [office.another_journal() for _ in range(2)]
    task = await office.submit()
    written: dict[int, str] = {}
    refused: set[str] = set()
    holders: list[Holder] = []

    async def act(holder: Holder, word: str) -> None:
        holder.journal = rng.choice(journals)
        try:
            appended = await holder.append(NewEntry(kind="note", data=word))
        except Refusal as refusal:
            refused.add(refusal.kind)
        else:
            assert written.setdefault(appended.seq, word) == word

    for number in range(40):
        if not holders or rng.random() < 0.2:
            epoch = await office.taken_over(task) if 0 < len(holders) <= CLAIMS_MAX else 0
            if not holders or epoch:
                fresh = Holder(office, task, command_epoch=epoch, worker=f"w{number}")
                await fresh.open()
                holders.append(fresh)
        acting = [holders[-1], rng.choice(holders)]
        await asyncio.gather(*(act(each, f"{number}/{each.worker}") for each in acting))
    assert refused <= {SUPERSEDED, OUT_OF_ORDER}
    entries = (await holders[-1].read()).entries
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    assert [entry.epoch for entry in entries] == sorted(entry.epoch for entry in entries)
    assert {entry.seq: entry.data for entry in entries} == written
