"""What every store does with tasks, their history and their sagas: on PostgreSQL and simulated."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from harness.eventually import eventually
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal, StoreRefused
from headway.coordinator.records import Change, Loaded, NewTask, Parent
from headway.coordinator.store import Store
from headway.sagas import Phase, Saga, transition
from headway.sagas import inputs as i
from headway.sagas.codec import decode_event, encode_task
from headway.sagas.deadlines import due
from headway.sagas.replay import replay
from headway.sagas.task import Failure

AT = 1_800_000_000_000
FIRST_ID = UUID(int=0)
SAGA = (
    Saga("pair")
    .step("a", "x.a", compensate="x.undo_a")
    .step("b", "x.b", compensate="x.undo_b", after="a")
    .define()
)
SECOND = Saga("pair", version=2).step("a", "x.a", read_only=True).define()


@pytest.fixture
async def store(truth) -> Store:
    store = truth.store()
    await store.open()
    await store.sagas.register(SAGA, AT)
    return store


def submission(task: UUID | None = None, at: int = AT, **fields) -> Change:
    """A new task; `version` None means that it wants the newest version of its saga."""
    outcome = transition(SAGA, None, i.Submit(at))
    new = NewTask(task or new_task_id(), "pair", b'{"n":1}', b"digest", **fields)
    state, timer = encode_task(outcome.task), due(SAGA, outcome.task)
    return Change(new.id, 0, outcome.task, state, timer, False, at, outcome.events, 1, new)


def after(loaded: Loaded, happened: i.Input, waits: bool = False) -> Change:
    outcome = transition(SAGA, loaded.task, happened)
    state, timer = encode_task(outcome.task), due(SAGA, outcome.task)
    version = loaded.task.version
    return Change(
        loaded.id,
        version,
        outcome.task,
        state,
        timer,
        waits,
        happened.at,
        outcome.events,
        saga_version=loaded.definition.version,
    )


async def submitted(store: Store, count: int, **fields) -> list[UUID]:
    """That many new tasks, in the order of their ids."""
    changes = [submission(**fields) for _ in range(count)]
    assert await store.commit(changes) == set()
    return sorted(change.id for change in changes)


async def load(store: Store, task: UUID) -> Loaded:
    return (await store.load([task]))[task]


async def history(store: Store, task: UUID, after: int = 0, limit: int = 100) -> list[str]:
    return [row["type"] for row in await store.fetch("history", task, after, limit)]


def succeeded(step: str = "a", at: int = AT + 1) -> i.Input:
    return i.Succeeded(at, step, Phase.ACTION, 1, {"k": [1, "ü"]})


async def ended(store: Store, task: UUID) -> None:
    for step in ("a", "b"):
        await store.commit([after(await load(store, task), succeeded(step))])


async def parked(store: Store, task: UUID) -> None:
    why = Failure("Unsettled", "nobody knows")
    of = "a", Phase.ACTION, 1, 0, why
    held = i.Failed(AT + 5, *of, retryable=False, no_effect=False, hold=True)
    await store.commit([after(await load(store, task), held, waits=True)])


async def test_a_task_is_read_as_it_was_committed(store):
    manifest = Manifest(goal="try", max_tokens=5)
    parent = Parent(new_task_id(), "step", 2, 3)
    fields = {"attributes": {"b": "2", "aa": "1", "ä": ""}, "manifest": manifest, "parent": parent}
    change = submission(**fields)
    assert await store.commit([change]) == set()
    for loaded in (await load(store, change.id), (await store.read([change.id]))[change.id]):
        assert loaded.task == change.task
        assert loaded.definition.digest == SAGA.digest
        assert (loaded.input, loaded.input_digest) == (b'{"n":1}', b"digest")
        assert loaded.attributes == fields["attributes"]
        assert (loaded.manifest, loaded.parent) == (manifest, parent)
        at = datetime.fromtimestamp(AT / 1000, UTC)
        assert (loaded.created_at, loaded.updated_at) == (at, at)
        assert loaded.due_at == datetime.fromtimestamp(change.due / 1000, UTC)


async def test_what_is_not_there_is_left_out_and_what_is_asked_twice_comes_once(store):
    [task] = await submitted(store, 1)
    assert set(await store.load([task, new_task_id(), task])) == {task}
    assert await store.load([]) == {}


async def test_a_change_on_a_stale_version_goes_not_through_and_leaves_no_history(store):
    first, second = await submitted(store, 2)
    stale = after(await load(store, first), succeeded())
    fine = after(await load(store, second), succeeded())
    await store.commit([after(await load(store, first), i.Cancel(AT + 1, "somebody", "wins"))])
    before = await history(store, first)
    assert await store.commit([stale, fine]) == {first}
    assert await history(store, first) == before
    assert "StepCompleted" in await history(store, second)


async def test_of_two_changes_on_the_same_version_one_goes_through(store, truth):
    [task] = await submitted(store, 1)
    other = truth.store()
    mine = after(await load(store, task), succeeded())
    theirs = after(await load(other, task), i.Cancel(AT + 1, "me", "no"))
    lost = await asyncio.gather(store.commit([mine]), other.commit([theirs]))
    assert sorted(map(len, lost)) == [0, 1]
    versions = [row["version"] for row in await store.fetch("history", task, 0, 100)]
    assert versions == list(range(1, (await load(store, task)).task.version + 1))


async def test_a_change_of_a_task_that_is_not_there_goes_not_through(store):
    [task] = await submitted(store, 1)
    change = replace(after(await load(store, task), succeeded()), id=(other := new_task_id()))
    assert await store.commit([change]) == {other}
    assert await history(store, other) == []


async def test_a_new_task_is_inserted_once_whoever_sends_it_again(store):
    first, second = submission(), submission()
    assert await store.commit([first]) == set()
    assert await store.commit([second, first]) == {first.id}
    assert await store.commit([second, first]) == {first.id, second.id}
    assert len(await history(store, first.id)) == len(first.events)


async def test_a_new_task_that_wants_the_newest_version_is_not_inserted_with_an_older_one(store):
    await store.sagas.register(SECOND, AT)
    newest, pinned = submission(), submission(version=1)
    assert await store.commit([newest, pinned]) == {newest.id}
    assert set(await store.load([newest.id, pinned.id])) == {pinned.id}


async def test_changes_and_new_tasks_go_through_in_one_batch(store):
    [task] = await submitted(store, 1)
    change, new = after(await load(store, task), succeeded()), submission()
    assert await store.commit([change, new]) == set()
    assert (await load(store, task)).task.steps["a"].status == "completed"
    assert (await load(store, new.id)).task == new.task
    assert await store.commit([]) == set()


async def test_a_history_is_kept_in_order_and_its_fold_is_the_state(store):
    [task] = await submitted(store, 1)
    for happened in (
        succeeded("a", AT + 1),
        i.Cancel(AT + 2, "me", "changed my mind"),
        i.Succeeded(AT + 3, "b", Phase.ACTION, 1, None),
        i.Succeeded(AT + 4, "b", Phase.COMPENSATION, 1, empty=True),
        i.Succeeded(AT + 5, "a", Phase.COMPENSATION, 1),
    ):
        assert await store.commit([after(await load(store, task), happened)]) == set()
    loaded = await load(store, task)
    rows = await store.fetch("history", task, 0, 100)
    times = [round(row["at"].timestamp() * 1000) for row in rows]
    events = [
        decode_event(row["type"], at, row["data"]) for row, at in zip(rows, times, strict=True)
    ]
    assert (loaded.task.status, loaded.due_at) == ("compensated", None)
    assert replay(SAGA, events) == loaded.task
    page = await store.fetch("history", task, 2, 3)
    assert [row["version"] for row in page] == [3, 4, 5]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda change: change.new.attributes.update(nul="\0"),
        lambda change: replace(change, state=b"{"),
        lambda change: replace(change, state=b'{"x":NaN}'),
        lambda change: replace(change, due=None),
        lambda change: replace(change, saga_version=9),
        lambda change: replace(change, due=2**63),
    ],
    ids=["nul", "no json", "nan", "no timer", "no saga", "no time"],
)
async def test_a_refused_row_is_refused_with_its_whole_batch(store, spoil):
    bad, good = submission(version=1), submission()
    spoilt = spoil(bad)
    with pytest.raises(StoreRefused):
        await store.commit([good, spoilt or bad])
    assert await store.load([good.id, bad.id]) == {}
    assert await history(store, good.id) == []
    assert await store.commit([good]) == set()


async def test_a_version_of_the_history_that_is_there_is_refused(store):
    [task] = await submitted(store, 1)
    change = after(await load(store, task), succeeded())
    repeated = replace(change, task=change.task, events=(*change.events, *change.events))
    with pytest.raises(StoreRefused):
        await store.commit([repeated])
    assert (await load(store, task)).task.version == change.expected


async def test_due_tasks_are_leased_the_longest_due_first(store, truth):
    later, first = await submitted(store, 2)
    version = (await load(store, first)).task.version
    await store.postpone([(first, version, AT), (later, version, AT + 10)])
    assert await store.claim_due(AT - 1, 5_000, 10) == []
    assert await store.claim_due(AT + 10, 5_000, 1) == [first]
    assert await truth.store().claim_due(AT + 10, 5_000, 10) == [later]
    assert await store.claim_due(AT + 5_009, 5_000, 10) == []
    assert set(await store.claim_due(AT + 5_010, 5_000, 10)) == {first, later}


async def test_two_that_claim_at_once_never_get_the_same_task(store, truth):
    tasks = await submitted(store, 20)
    now = AT + 10**9
    claims = await asyncio.gather(*(truth.store().claim_due(now, 5_000, 7) for _ in range(3)))
    claimed = [task for claim in claims for task in claim]
    assert len(claimed) == len(set(claimed))
    assert set(claimed) <= set(tasks)
    rest = await store.claim_due(now, 5_000, 20)
    assert {*claimed, *rest} == set(tasks)


async def test_what_waits_for_nothing_is_never_due(store):
    over, held, open_ = await submitted(store, 3)
    await ended(store, over)
    await parked(store, held)
    assert await store.claim_due(AT + 10**9, 5_000, 10) == [open_]
    assert await store.open_tasks(FIRST_ID, 10, None) == [open_]


async def test_a_timer_is_put_off_only_at_the_version_that_was_read(store):
    task, over = await submitted(store, 2)
    await ended(store, over)
    version, last = (await load(store, task)).task.version, (await load(store, over)).task.version
    before = (await load(store, task)).due_at
    await store.postpone([(task, version - 1, AT + 99_000)])
    assert (await load(store, task)).due_at == before
    await store.postpone([(task, version, AT + 99_000), (over, last, AT), (new_task_id(), 1, AT)])
    assert (await load(store, task)).due_at.timestamp() * 1000 == AT + 99_000
    assert (await load(store, over)).due_at is None
    await store.postpone([])


async def test_open_tasks_come_in_the_order_of_their_ids_page_by_page(store):
    tasks = await submitted(store, 5)
    assert await store.open_tasks(FIRST_ID, 3, None) == tasks[:3]
    assert await store.open_tasks(tasks[2], 3, None) == tasks[3:]
    timer = round((await load(store, tasks[0])).due_at.timestamp() * 1000)
    loaded = await load(store, tasks[1])
    await store.postpone([(tasks[1], loaded.task.version, timer + 1)])
    assert await store.open_tasks(FIRST_ID, 9, timer) == [tasks[0], *tasks[2:]]


async def test_lists_are_newest_first_and_narrowed(store):
    tasks = sorted(new_task_id() for _ in range(4))
    for number, task in enumerate(tasks):
        attributes = {"n": str(number), "half": str(number // 2)}
        await store.commit([submission(task, AT + number, attributes=attributes)])
    await ended(store, tasks[0])
    await parked(store, tasks[1])

    async def listed(
        before=None,
        statuses=(),
        saga=None,
        attributes="{}",
        since=None,
        until=None,
        sagas=(None, None),
    ):
        times = [at and datetime.fromtimestamp(at / 1000, UTC) for at in (since, until)]
        arguments = before, list(statuses), saga, attributes, *times
        names = ["list_tasks"]
        if statuses and not {"succeeded", "compensated"} & set(statuses):
            names.append("list_open_tasks")
        answers = [await store.fetch(name, *arguments, 10, None, *sagas) for name in names]
        assert len({tuple(row["id"] for row in rows) for rows in answers}) == 1
        return [tasks.index(row["id"]) for row in answers[0]]

    assert await listed() == [3, 2, 1, 0]
    assert await listed(before=tasks[2]) == [1, 0]
    assert await listed(statuses=["parked"]) == [1]
    assert await listed(statuses=["running", "parked"], before=tasks[3]) == [2, 1]
    assert await listed(statuses=["succeeded"]) == [0]
    assert await listed(saga="pair") == [3, 2, 1, 0]
    assert await listed(saga="other") == []
    assert await listed(attributes='{"half":"1"}') == [3, 2]
    assert await listed(attributes='{"half":"1","n":"1"}') == []
    assert await listed(since=AT + 1, until=AT + 3) == [2, 1]
    assert await listed(sagas=(["other", "pair"], [1, 1])) == [3, 2, 1, 0]
    assert await listed(sagas=(["pair"], [2])) == []
    assert await listed(sagas=([], [])) == []
    asked = (None, ["parked"], None, "{}", None, None, 1, None, None, None)
    [row] = await store.fetch("list_tasks", *asked)
    assert row["reason"] == (await load(store, tasks[1])).task.reason != ""
    assert (row["saga"], row["saga_version"], row["status"]) == ("pair", 1, "parked")
    waiting = await store.fetch("list_waiting_tasks", None, "pair", 10, None, None)
    assert [row["id"] for row in waiting] == [tasks[1]]
    assert await store.fetch("list_waiting_tasks", tasks[1], None, 10, None, None) == []
    for task, found in ((tasks[1], waiting), (tasks[0], [])):
        assert await store.fetch("list_waiting_tasks", None, None, 10, None, task) == found


async def test_a_task_with_a_nul_in_its_state_is_listed_like_any_other(store):
    [task] = await submitted(store, 1)
    done = i.Succeeded(AT + 1, "a", Phase.ACTION, 1, "\0")
    why = Failure("Unsettled", "nobody\0knows")
    held = i.Failed(
        AT + 5, "b", Phase.ACTION, 1, 0, why, retryable=False, no_effect=False, hold=True
    )
    for happened in (done, held):
        await store.commit([after(await load(store, task), happened)])
    asked = None, ["parked"], None, "{}", None, None, 1, None, None, None
    for name in ("list_tasks", "list_open_tasks"):
        [row] = await store.fetch(name, *asked)
        assert "nobody\ufffdknows" in row["reason"]


async def test_resumptions_are_found_by_task(store):
    task, never = await submitted(store, 2)
    await parked(store, task)
    await store.commit([after(await load(store, task), i.RetryStuck(AT + 9, "ann", "looked"))])
    rows = await store.fetch("last_resumptions", [never, task, task])
    resumed = (await history(store, task)).index("TaskResumed") + 1
    assert [(row["task_id"], row["version"]) for row in rows] == [(task, resumed)]


async def test_a_sagas_version_is_registered_once(store, truth):
    at = await store.sagas.register(SAGA, AT + 5)
    assert at.timestamp() * 1000 == AT
    with pytest.raises(Refusal, match="another definition: raise the version"):
        await store.sagas.register(Saga("pair").step("a", "y.a", read_only=True).define(), AT)
    other = truth.store()
    assert (await other.sagas.definition("pair", 1)).digest == SAGA.digest
    assert await other.sagas.definition("pair", 2) is None


async def test_the_newest_version_is_read_anew_only_if_asked(store, truth):
    assert (await store.sagas.newest(["pair", "none"], fresh=True))["pair"].version == 1
    await truth.store().sagas.register(SECOND, AT)
    assert (await store.sagas.newest(["pair"], fresh=False))["pair"].version == 1
    assert (await store.sagas.newest(["pair"], fresh=True))["pair"].version == 2
    rows = await store.fetch("list_sagas")
    assert [(row["name"], row["version"]) for row in rows] == [("pair", 1), ("pair", 2)]
    assert rows[0]["body"] == SAGA.to_json()


async def test_a_peer_that_is_silent_is_found_by_one(store, truth):
    silent, alive, gone = (new_task_id() for _ in range(3))
    for peer in (silent, gone):
        await store.fetch("beat", peer)
    await store.fetch("leave", gone)
    assert await store.fetch("reap_silent", 5_000) == []

    lookers = [truth.store() for _ in range(3)]

    async def is_silent() -> bool:
        await store.fetch("beat", alive)
        answers = await asyncio.gather(*(each.fetch("reap_silent", 50) for each in lookers))
        return [row["id"] for rows in answers for row in rows] == [silent]

    await eventually(is_silent, what="the silent peer is found, once")
    assert await store.fetch("reap_silent", 5_000) == []


async def test_the_identity_of_a_stream_is_kept_until_it_changes(store):
    assert await store.fetch("stream_identities") == []
    for name, created in (("A", "1"), ("B", "1"), ("A", "2")):
        await store.fetch("save_stream_identity", name, created)
    rows = await store.fetch("stream_identities")
    assert sorted((row["name"], row["created"]) for row in rows) == [("A", "2"), ("B", "1")]


async def test_partitions_are_made_once(store):
    at = random.Random(1).randrange(AT, 2 * AT)
    for name in ("ensure_partitions", "ensure_journal_partitions", "ensure_gate_partitions"):
        assert [row["made"] for row in await store.fetch(name, at)] == [3]
        assert [row["made"] for row in await store.fetch(name, at)] == [0]


async def test_the_server_tells_its_time(store):
    [row] = await store.fetch("now")
    assert row["now"] > AT - 10**12
    assert isinstance(row["version"], str)
