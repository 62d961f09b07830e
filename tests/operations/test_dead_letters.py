"""Dead letters: listed page by page, looked into, replayed so that nothing runs twice, dropped."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from harness.eventually import eventually
from harness.office import desk
from headway.agents import Client, Conflict, InvalidInput, NotFound
from headway.agents.deadletter_views import LetterPage, LetterRow, LetterView
from headway.agents.identity import new_task_id
from headway.agents.messages import COMPLETED, Event, EventData, encode
from headway.agents.subjects import event_subject
from headway.sagas import Saga


async def publish(client: Client, subject: str, body: bytes, **headers: str) -> None:
    """Have it stored, as any program may."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    await client.connection.nc.jetstream().publish(subject, body, headers=named or None)


async def letter_of(client: Client, subject: str) -> LetterRow:
    """The newest letter about a message on a subject."""

    async def there() -> LetterRow | None:
        page = await client.dead_letters(limit=200)
        return next((each for each in page.letters if each.subject == subject), None)

    return await eventually(there, what="a letter")


async def refused(client: Client, body: bytes = b'{"a": 1}', **headers: str) -> LetterRow:
    """The letter of a submission for a saga that is not registered yet."""
    subject = f"hw.tasks.new-{uuid4().hex}"
    await publish(client, subject, body, **headers)
    return await letter_of(client, subject)


async def tasks_of(client: Client, letter: LetterRow) -> list[UUID]:
    return [row.task for row in (await client.list(saga=letter.subject.split(".")[2])).tasks]


async def register(client: Client, letter: LetterRow) -> None:
    """The saga that was missing."""
    await client.register(desk(Saga(letter.subject.split(".")[2]), "a").define())


async def refusal(asked: Any) -> tuple[int, str]:
    with pytest.raises((Conflict, NotFound, InvalidInput)) as caught:
        await asked
    return getattr(caught.value, "code", 422), str(caught.value)


async def test_a_submission_that_was_refused_runs_once_it_can_and_only_once(world, client):
    task = new_task_id()
    letter = await refused(client, Nats_Msg_Id=str(task), traceparent="00-1-2-03")
    saga = letter.subject.split(".")[2]
    assert (letter.kind, letter.task, letter.kept, letter.fate) == ("submission", task, "", None)
    assert letter.reason == (
        f"there is no saga {saga!r}; register it first (headway saga register)"
    )
    await register(client, letter)
    receipts = [
        await client.replay_letter(letter.sequence, "it is registered now", by="ann")
        for _ in range(3)
    ]
    assert (await world.ended(task)).status == "succeeded"
    assert {receipt.task for receipt in receipts} == {task}
    assert len({receipt.model_dump_json() for receipt in receipts}) == 1
    assert (receipts[0].fate.fate, receipts[0].fate.by) == ("replayed", "ann")
    assert world.office.log[task] == ["a"]
    assert await tasks_of(client, letter) == [task]


async def test_a_submission_without_a_name_keeps_the_id_that_it_had(world, client):
    """Two letters about one message, as after a lost ack, are the same task still."""
    letter = await refused(client)
    await register(client, letter)
    await client.replay_letter(letter.sequence)
    assert letter.task is not None
    assert (await world.ended(letter.task)).status == "succeeded"
    await world.fetch("DELETE FROM headway.dead_letters")  # as if nobody knew of it
    await client.replay_letter(letter.sequence)
    await nothing_waits(client)
    assert await tasks_of(client, letter) == [letter.task]
    assert world.office.log[letter.task] == ["a"]


async def test_a_cloud_event_keeps_its_own_id(world, client):
    event = {"specversion": "1.0", "id": "order 17", "type": "order", "data": {}}
    letter = await refused(client, orjson.dumps(event))
    await register(client, letter)
    receipt = await client.replay_letter(letter.sequence)
    assert receipt.task == letter.task
    await publish(client, letter.subject, orjson.dumps(event))  # its sender tries again, too
    assert (await world.ended(receipt.task)).status == "succeeded"
    await nothing_waits(client)
    assert await tasks_of(client, letter) == [receipt.task]
    assert world.office.log[receipt.task] == ["a"]


async def test_what_is_refused_again_is_another_letter(client):
    letter = await refused(client)
    await client.replay_letter(letter.sequence)

    async def newer() -> bool:
        return (await letter_of(client, letter.subject)).sequence > letter.sequence

    await eventually(newer)
    again = await letter_of(client, letter.subject)
    assert (again.task, again.reason) == (letter.task, letter.reason)


async def test_an_event_that_was_refused_is_heard_once_it_fits(world, client):
    task, agent = new_task_id(), "bob"
    fields = {"task": str(task), "step": "late", "phase": "action", "attempt": 1, "epoch": 0}
    event = Event(id="e", type=COMPLETED, source="/t", data=EventData(result=7), **fields)
    await publish(client, event_subject(agent, str(task)), encode(event))

    async def there() -> LetterRow | None:
        page = await client.dead_letters(kind="event")
        return next((each for each in page.letters if each.task == task), None)

    letter = await eventually(there)
    assert (letter.reason, letter.agent) == (f"there is no task {task}", agent)
    saga = Saga(f"late-{task}").step("late", "absent.do", read_only=True).define()
    await client.register(saga)
    await client.submit(saga.name, {}, task=task)
    receipt = await client.replay_letter(letter.sequence)
    assert receipt.task == task

    async def heard() -> str | None:
        page = await client.dead_letters(kind="event")
        return next((r.reason for r in page.letters if r.task == task and r != letter), None)

    assert await eventually(heard) == (
        "agent 'bob' answered a command of step 'late' that was for 'absent'"
    )
    await client.cancel(task)


async def test_commands_and_advisories_are_never_replayed(world, client):
    subject = f"hw.commands.desk.do.{new_task_id()}.a"
    await publish(client, subject, b"junk")
    command = await letter_of(client, subject)
    assert (command.kind, command.agent) == ("command", "desk")
    text = (
        f"letter {command.sequence} is a command, and those are never replayed: as long as its "
        "step wants it, a coordinator publishes it anew by itself"
    )
    assert command.kept == text
    assert await refusal(client.replay_letter(command.sequence)) == (409, text)

    async def told() -> LetterRow | None:
        rows = (await client.dead_letters(kind="advisory")).letters
        return next((row for row in rows if row.sequence > command.sequence), None)

    advisory = await eventually(told)
    assert "was taken out by consumer desk: not signed" in advisory.reason
    assert await refusal(client.replay_letter(advisory.sequence)) == (
        409,
        f"letter {advisory.sequence} is an advisory of nats-server, which tells of a message; "
        "there is nothing to replay",
    )
    default = {row.sequence for row in (await client.dead_letters(limit=200)).letters}
    assert command.sequence in default
    assert advisory.sequence not in default


@pytest.mark.parametrize(
    ("body", "headers", "why"),
    [
        (b"not json", {}, "would be refused again: the body is not JSON: "),
        (
            orjson.dumps("x" * 70_000),
            {},
            "cannot be replayed: only 65536 of its 70002 bytes were kept",
        ),
        (
            b"{}",
            {"large": "x" * 20_000},
            "cannot be replayed: its headers were too large to be kept",
        ),
        (
            b"{}",
            {"Nats-Stream": "HW_PAYLOADS"},
            "cannot be replayed: nobody published this: it is an answer of nats-server sent astray",
        ),
    ],
    ids=["junk", "cut", "headers", "astray"],
)
async def test_what_cannot_run_is_not_replayed_and_says_why(client, body, headers, why):
    letter = await refused(client, body, **headers)
    assert letter.kept.startswith(f"letter {letter.sequence} {why}")
    assert await refusal(client.replay_letter(letter.sequence)) == (409, letter.kept)
    assert (await client.dead_letter(letter.sequence)).fate is None


async def test_a_letter_that_no_coordinator_wrote_is_none(world, client):
    """An agent can have nats-server send what it wrote itself; nobody is to be made to run it."""
    forged = {"stream": "HW_TASKS", "subject": "hw.tasks.plain", "reason": "r", "size": 2}
    body = orjson.dumps({**forged, "body": "{}"})
    await publish(client, "hw.dead.HW_TASKS", body, **{"Nats-Stream": "HW_PAYLOADS"})
    await publish(client, "hw.dead.HW_COMMANDS.mallory", body)
    first, second = (await client.dead_letters(limit=2)).letters
    assert (first.kind, first.agent) == ("command", "mallory")
    text = "nobody refused this: it is no letter of a coordinator's or an agent's"
    assert (second.kind, second.reason) == ("unknown", text)
    assert await refusal(client.replay_letter(second.sequence)) == (
        409,
        f"letter {second.sequence} cannot be replayed: {text}",
    )


@pytest.mark.parametrize("body", [b"\xff" * 10, b"\0" * 65_536, b'"\\u0000"', b"", "é".encode()])
async def test_whatever_was_refused_is_kept_as_it_was(client, body):
    """A letter that did not fit into its stream would keep its message coming back for ever."""
    letter = await refused(client, body, Headway_Extra="näher")
    await nothing_waits(client)
    view = await client.dead_letter(letter.sequence)
    assert original(view) == body
    assert view.whole
    assert view.size == len(body)
    assert view.headers["headway-extra"] == "näher"


def original(view: LetterView) -> bytes:
    if view.body_base64 is not None:
        return base64.b64decode(view.body_base64)
    assert view.body is not None
    return view.body.encode()


async def test_a_letter_that_was_dropped_is_left_out_and_stays_as_it_is(client):
    letter = await refused(client)
    dropped = await client.drop_letter(letter.sequence, "a test", by="ann")
    assert dropped == await client.drop_letter(letter.sequence, "again", by="bob")
    assert (dropped.fate.fate, dropped.fate.by, dropped.fate.reason) == ("dropped", "ann", "a test")
    assert letter.sequence not in {row.sequence for row in (await client.dead_letters()).letters}
    kept = await client.dead_letters(dealt_with=True)
    assert {row.sequence: row.fate for row in kept.letters}[letter.sequence] == dropped.fate
    at = f"{dropped.fate.at:%Y-%m-%d %H:%M:%SZ}"
    assert await refusal(client.replay_letter(letter.sequence)) == (
        409,
        f"letter {letter.sequence} was dropped by ann at {at}; it is not replayed any more",
    )


async def test_a_letter_that_was_replayed_cannot_be_dropped(world, client):
    letter = await refused(client)
    await world.fetch(
        "INSERT INTO headway.dead_letters "
        "SELECT created, $1, 'replaying', now(), 'eve', '' FROM headway.streams "
        "WHERE name = 'HW_DEAD'",
        letter.sequence,
    )
    listed = {row.sequence: row for row in (await client.dead_letters()).letters}
    assert listed[letter.sequence].fate.fate == "replaying"
    begun = listed[letter.sequence].fate.at
    assert await refusal(client.drop_letter(letter.sequence)) == (
        409,
        f"letter {letter.sequence} is being replayed, and nobody knows whether it was; "
        f"replay it again, or drop it 60 s after {begun:%H:%M:%SZ}",
    )
    receipt = await client.replay_letter(letter.sequence, by="ann")
    at = f"{receipt.fate.at:%Y-%m-%d %H:%M:%SZ}"
    assert await refusal(client.drop_letter(letter.sequence)) == (
        409,
        f"letter {letter.sequence} was replayed by eve at {at}; there is nothing to drop",
    )


@pytest.mark.parametrize("act", ["replay", "drop"])
async def test_a_replay_that_did_not_end_is_given_up_after_a_minute(world, client, act):
    letter = await refused(client)
    await world.fetch(
        "INSERT INTO headway.dead_letters "
        "SELECT created, $1, 'replaying', now() - interval '61 seconds', 'eve', '' "
        "FROM headway.streams WHERE name = 'HW_DEAD'",
        letter.sequence,
    )
    asked = client.replay_letter if act == "replay" else client.drop_letter
    receipts = [await asked(letter.sequence, "eve's did not end", by=who) for who in ("ann", "bob")]
    assert receipts[0] == receipts[1]
    fate = receipts[0].fate
    assert (fate.fate, fate.by) == ("replayed" if act == "replay" else "dropped", "ann")
    noted = [
        (entry.who, entry.kind)
        async for entry in client.audit(since=fate.at - timedelta(seconds=5))
        if entry.what == f"letter {letter.sequence}"
    ]
    assert noted == [("ann", f"dead-letter-{fate.fate}")]


async def test_letters_that_are_not_there_and_cursors_that_were_made_up_are_refused(client):
    missing = "there is no dead letter 999999; they are kept for 30 days"
    for asked in (client.dead_letter, client.replay_letter, client.drop_letter):
        assert await refusal(asked(999_999)) == (404, missing)
    for cursor in ("x", "0", "-1", "1" * 20, "²"):
        text = "cursor: not one that this API gave"
        assert await refusal(client.dead_letters(cursor=cursor)) == (422, text)
    letter = await refused(client)
    assert await refusal(client.drop_letter(letter.sequence, "\0")) == (
        422,
        "by, reason: a NUL character cannot be stored",
    )


async def test_pages_follow_each_other_over_gaps_and_news(world, client):
    """Senders of many letters leave gaps where they pushed out their own older ones."""
    for number in range(30):
        agent = ("rare", "loud", "loud")[number % 3]
        await publish(client, f"hw.dead.HW_COMMANDS.{agent}", written(agent, number))
    jetstream = client.connection.nc.jetstream()
    bodies = [written("flood", number) for number in range(3_000)]
    outcomes = await client.connection.wire.store_all(
        [("hw.dead.HW_COMMANDS.flood", body) for body in bodies]
    )
    assert not any(outcomes)
    state = (await jetstream.stream_info("HW_DEAD")).state
    assert state.last_seq - state.first_seq + 1 >= state.messages + 2_000, "there is a gap"
    whole = await walk(client, 200, kind="command")
    agents = [row.agent for row in whole if row.agent in ("rare", "loud", "flood")]
    assert agents == ["flood"] * 1_000 + 10 * ["loud", "loud", "rare"]
    assert [row.sequence for row in whole] == sorted({r.sequence for r in whole}, reverse=True)
    for limit in (7, 199):
        assert await walk(client, limit, kind="command") == whole
    first = await client.dead_letters(kind="command", limit=5)
    await publish(client, "hw.dead.HW_COMMANDS.rare", written("rare", 99))
    await client.drop_letter(first.letters[2].sequence)
    second = await client.dead_letters(kind="command", limit=5, cursor=first.cursor)
    assert second.letters == whole[5:10]


async def walk(client: Client, limit: int, **asked: Any) -> list[LetterRow]:
    """All letters, page by page."""
    rows: list[LetterRow] = []
    page = LetterPage(letters=[], cursor=None)
    while True:
        page = await client.dead_letters(limit=limit, cursor=page.cursor, **asked)
        assert len(page.letters) <= limit
        rows += page.letters
        if page.cursor is None:
            return rows


def written(agent: str, number: int) -> bytes:
    subject = f"hw.commands.{agent}.do.t.s"
    return orjson.dumps({"subject": subject, "reason": "r", "size": 0, "body": "", "n": number})


async def test_many_that_were_dealt_with_make_no_page_wait(world, client):
    [row] = await world.fetch("SELECT created FROM headway.streams WHERE name = 'HW_DEAD'")
    await world.fetch(
        "INSERT INTO headway.dead_letters SELECT $1, n, 'dropped', now(), '', '' "
        "FROM generate_series(1, 100000) AS n ON CONFLICT DO NOTHING",
        row["created"],
    )
    page = await client.dead_letters(limit=10)
    assert (page.letters, page.cursor is None) == ([], False), "looked at as many as it may"
    assert await walk(client, 200) == []
    await world.fetch("DELETE FROM headway.dead_letters")


async def nothing_waits(client: Client) -> None:
    async def nothing() -> bool:
        jetstream = client.connection.nc.jetstream()
        infos = [await jetstream.stream_info(name) for name in ("HW_TASKS", "HW_EVENTS")]
        return not sum(info.state.messages for info in infos)

    await eventually(nothing)


async def test_with_tokens_a_replay_keeps_its_owner_or_takes_the_operators_name(
    world, client, making
):
    """The token itself is kept nowhere."""
    token = await making.create("carl", "submit")
    operator = await making.create("ann", "operate")
    owned = f"hw.tasks.new-{uuid4().hex}"
    await publish(client, owned, b"{}", Headway_Token=token)
    stranger = "hw.tasks.plain"
    await publish(client, stranger, b'{"from": "a stranger"}')
    operating = Client(client.connection, token=operator)
    for subject, owner in ((owned, "carl"), (stranger, "ann")):
        letter = await letter_of(operating, subject)
        view = await operating.dead_letter(letter.sequence)
        assert token not in view.model_dump_json()
        if subject == owned:
            await register(operating, letter)
        receipt = await operating.replay_letter(letter.sequence, by="somebody else")
        assert receipt.fate.by == "ann"
        task = await operating.result(receipt.task, timeout=10)
        assert (task.status, task.owner) == ("succeeded", owner)


async def test_nobody_vouches_for_himself(client, making):
    await making.create("ann", "operate")
    operator = Client(client.connection, token=await making.create("bob", "operate"))
    subject = f"hw.tasks.vouched-{uuid4().hex}"
    for vouched in ("", "x", f"{'0' * 64} ann"):
        await publish(client, subject, b"{}", **{"hw-vouched": vouched})
    letter = await letter_of(operator, subject)
    assert letter.reason == (
        "the header that vouches for its owner is not one that a coordinator wrote for it"
    )
    assert (await operator.dead_letter(letter.sequence)).headers == {}
