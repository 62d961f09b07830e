"""Junk on every subject: refused with a reason, kept for people to look at, and nothing stops."""

from __future__ import annotations

import asyncio
import base64
import json

import orjson
import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.junk import EVENT, junk
from harness.shop import linear
from headway.agents import Agent, Context, connect
from headway.agents.api import ERROR_CODE
from headway.agents.identity import new_task_id
from headway.agents.messages import COMPLETED, FAILED, Event, EventData, encode
from headway.agents.subjects import agent_subject, api_subject, event_subject


@pytest.fixture
async def stranger(nats_url):
    async with await connect(nats_url, name="stranger") as connection:
        yield connection


async def test_junk_on_every_subject_stops_nothing_and_is_kept_with_the_reason(
    system, stranger, rng, short_ack_wait
):
    """Also on those where nobody keeps it, and on a task that somebody watches meanwhile."""
    task = new_task_id()
    stored = [
        "hw.tasks.linear",
        "hw.tasks.none",
        f"hw.events.shop.{task}",
        "hw.events.shop.none",
        f"hw.commands.shop.a.{task}.a",
        "hw.commands.shop.none.none.none",
    ]
    lossy = [
        f"hw.feed.linear.{task}.succeeded",
        "hw.feed.a.b.c",
        "hw.presence.shop",
        "hw.presence.none",
        f"hw.stop.shop.{task}",
        "hw.stop.shop.none",
        "hw.api.none",
    ]
    async with system.coordinating(), system.working(ack_wait_s=short_ack_wait):
        await registered(system.client, linear())
        before = await system.client.submit("linear", {"number": 1, "b": "sleep=1"}, task=task)
        await system.called(task, 2)
        watching = asyncio.create_task(system.client.result(before.task, timeout=20))
        bodies = junk(rng)
        for body in bodies:
            for subject in lossy:
                stranger.wire.publish(subject, body)
            for subject in stored:
                await kept_or_refused(stranger, subject, body)
        assert (await watching).status == "succeeded"
        after = await system.client.submit("linear", {"number": 2})
        assert (await system.client.result(after.task, timeout=20)).status == "succeeded"
        await eventually(lambda: nothing_waits(stranger), 20)
        letters = [letter for letter in await system.dead_letters() if "size" in letter]
    for subject in stored[1:]:  # plain JSON on the first one is a task's input
        found = [letter for letter in letters if same_subject(letter["subject"], subject)]
        assert all(letter["reason"] for letter in found)
        for body in bodies:
            assert any(original_of(letter) == body[:65_536] for letter in found), (subject, body)


async def kept_or_refused(connection, subject: str, body: bytes) -> None:
    """Store it; on a command's subject that takes one at a time, wait for its turn."""

    async def stored():
        [error] = await connection.wire.store_all([(subject, body)])
        assert error is None, error
        return True

    await eventually(stored, 10)


async def nothing_waits(connection) -> bool:
    for stream in ("HW_TASKS", "HW_EVENTS", "HW_COMMANDS"):
        info = await connection.nc.jetstream().stream_info(stream)
        if info.state.messages:
            return False
    return True


def same_subject(stored: str, published: str) -> bool:
    """Events are stored with a partition put into their subject."""
    words = stored.split(".")
    if words[1] == "events":
        del words[2]
    return ".".join(words) == published


def original_of(letter) -> bytes:
    if "body_base64" in letter:
        return base64.b64decode(letter["body_base64"])
    return letter["body"].encode()


async def test_a_subject_that_is_not_utf_8_is_refused_as_any_other(system, stranger):
    """On the wire, where a client library may not let one by, but a socket does."""
    async with system.coordinating(), system.working():
        await registered(system.client, linear())
        for subject in (b"hw.tasks.\xff", b"hw.events.\xff.\xfe", b"hw.commands.shop.\xff.\xfe.x"):
            stranger.nc._pending.append(b"PUB " + subject + b" 2\r\n{}\r\n")
        stranger.nc._pending_data_size += 1
        await stranger.nc._flush_pending()
        await stranger.nc.flush()
        receipt = await system.client.submit("linear", {"number": 1})
        assert (await system.client.result(receipt.task, timeout=20)).status == "succeeded"
        await eventually(lambda: nothing_waits(stranger), 10)
        letters = [letter for letter in await system.dead_letters() if "size" in letter]
    assert sorted(letter["subject"].split(".")[1] for letter in letters) == [
        "commands",
        "events",
        "tasks",
    ]


async def test_events_that_do_not_fit_their_task_are_refused_and_change_nothing(system, stranger):
    agent, release = Agent("shop"), asyncio.Event()

    @agent.action("a")
    async def act(ctx: Context) -> int:
        await release.wait()
        return 1

    async with system.coordinating(), working(system.nats.url, agent):
        await registered(system.client, linear("one", "a"))
        task = str((await system.client.submit("one", {})).task)
        other = str(new_task_id())
        await eventually(lambda: busy(system), 10)
        wrong = {
            "no task": ("shop", other, {"task": other}),
            "not the one in its subject": ("shop", other, {}),
            "was for 'shop'": ("thief", task, {}),
            "was never dispatched": ("shop", task, {"attempt": 2}),
            "attempt 0": ("shop", task, {"attempt": 0}),
            "(compensation) was never": ("shop", task, {"phase": "compensation"}),
            "no step 'z'": ("shop", task, {"step": "z"}),
            "must say why": ("shop", task, {"type": FAILED}),
            "is not a reference to a payload": (
                "shop",
                task,
                {"dataref": "x.y", "datadigest": "z"},
            ),
        }
        for sender, about, changes in wrong.values():
            body = encode(Event(**{**EVENT, "task": task, **changes}))
            await kept_or_refused(stranger, event_subject(sender, about), body)
        await eventually(lambda: nothing_but_the_command(stranger), 10)
        view = await system.client.status(task)
        assert (view.status, view.version) == ("running", 2)
        release.set()
        assert (await system.client.result(task, timeout=10)).results == {"a": 1}
        reasons = [letter["reason"] for letter in await system.dead_letters()]
    assert len(reasons) == len(wrong)
    for expected in wrong:
        assert any(expected in reason for reason in reasons), (expected, reasons)


async def busy(system):
    agents = (await system.client.agents()).agents
    return any(view.in_flight for view in agents)


async def nothing_but_the_command(connection) -> bool:
    info = await connection.nc.jetstream().stream_info("HW_EVENTS")
    return info.state.messages == 0


PEOPLE = [
    "submit",
    "get",
    "list",
    "parked",
    "history",
    "cancel",
    "retry",
    "resume",
    "settle",
    "saga.register",
    "saga.get",
    "approve",
    "reject",
    "signal",
    "audit",
    "journal.read",
    "journal.settle",
    "gate.redeem",
    "gate.decide",
    "document.collection",
    "document.get",
    "document.put",
    "document.delete",
    "document.list",
    "document.history",
    "document.changes",
]
AGENTS = [
    "claim",
    "journal.open",
    "journal.append",
    "gate.request",
    "journal.read",
    "gate.redeem",
    "document.collection",
    "document.get",
    "document.put",
    "document.delete",
    "document.list",
    "document.history",
    "document.changes",
]
OPERATIONS = [
    *((each, api_subject(each)) for each in PEOPLE),
    *((each, agent_subject("shop", each)) for each in AGENTS),
]
TASK = "01a228d3-8b1d-728f-a4a8-c99741d7b99b"
NEARLY = {
    "submit": [
        {"saga": "linear", "input": {"n": 2**64}},
        {"saga": "linear", "task": TASK, "version": 2**40},
        {"saga": "lin\x00ear"},
        {"saga": "linear", "dataref": "no", "datadigest": "no"},
        {"saga": "linear", "dataref": "no such. thing*>", "datadigest": "no"},
        {"saga": "linear", "manifest": {"deadline": "0001-01-01T00:00:00+23:59"}},
        {"saga": "linear", "manifest": {"deadline": "9999-12-31T23:59:59-23:59"}},
    ],
    "audit": [
        {"since": "0001-01-01T00:00:00+23:59"},
        {"until": "9999-12-31T23:59:59-23:59"},
        {"after": f"0001-01-01T00:00:00+14:00 {TASK} x"},
    ],
    "signal": [{"task": TASK, "name": "\x00", "id": "\x00"}],
    "gate.redeem": [{"token": "e30.e30.", "tool": "\x00", "arguments_digest": "", "use": TASK}],
    "list": [
        {"created_after": "2026-01-01T00:00:00"},
        {"attributes": {"\x00": "\x00"}},
        {"saga": "\x00"},
        {"created_after": "9999-12-31T23:59:59Z", "limit": 1},
        {"cursor": "\x00"},
    ],
    "history": [{"task": TASK, "after": 2**62}, {"task": TASK, "after": -1}],
    "claim": [
        {
            "task": TASK,
            "step": "\x00",
            "phase": "action",
            "attempt": 2**70,
            "epoch": 2**70,
            "delivery": 2**70,
            "worker": "\x00",
        }
    ],
    "saga.get": [{"name": "\x00"}, {"name": "linear", "version": 2**70}],
    "saga.register": [
        {"name": "x", "version": 2**70, "steps": []},
        {"name": "x", "version": 1, "steps": [{"name": "a"}]},
    ],
}


async def test_junk_for_an_operation_is_answered_at_once_with_what_is_wrong(system, stranger, rng):
    """Never by silence, and never as if the coordinator were in trouble."""
    async with system.coordinating(), system.working():
        await registered(system.client, linear())
        for operation, subject in OPERATIONS:
            nearly = [json.dumps(body).encode() for body in NEARLY.get(operation, [])]
            for body in [*junk(rng), *nearly]:
                answer = await stranger.wire.request(subject, body, 3)
                code = (answer.headers or {}).get(ERROR_CODE, "200")
                assert code < "500", (subject, body[:100], code, answer.data[:300])
                assert b"deadline" not in body or code == "422", (body, code)
        rows = await system.fetch("SELECT count(*) FROM headway.tasks")
        await system.all_settled(rows[0]["count"])


@pytest.mark.parametrize(
    "returned",
    [object(), {1, 2}, 2**70, float, b"\xff"],
    ids=["object", "set", "large", "class", "bytes"],
)
async def test_a_result_that_cannot_be_serialised_ends_the_task_with_what_is_wrong(
    system, returned
):
    agent, undone = Agent("shop"), []

    @agent.action("a")
    async def act(ctx: Context):
        return returned

    @agent.compensation("undo-a")
    async def undo(ctx: Context) -> None:
        undone.append(ctx.outcome_unknown)

    async with system.coordinating(), working(system.nats.url, agent):
        await registered(system.client, linear("one", "a"))
        task = (await system.client.submit("one", {})).task
        view = await system.client.result(task, timeout=10)
    if returned == {1, 2}:  # a set is a JSON array
        assert view.results == {"a": [1, 2]}
        return
    assert view.status == "compensated"
    assert "InvalidResult" in view.reason
    assert undone == [True]


async def test_an_answer_that_no_coordinator_can_store_ends_its_step(system, stranger):
    """By an agent in another language: valid JSON, with a number that we cannot keep."""
    async with system.coordinating():
        await registered(system.client, linear("one", "a"))
        task = (await system.client.submit("one", {})).task
        body = json.dumps({**EVENT, "task": str(task), "data": {"result": 10**40}}).encode()
        await kept_or_refused(stranger, event_subject("shop", str(task)), body)
        await eventually(lambda: nothing_but_the_command(stranger), 10)
        async with system.working():
            view = await system.client.result(task, timeout=20)
    assert view.status == "compensated"
    assert "InvalidResult" in view.reason


def test_an_event_encodes_what_this_file_takes_for_one():
    assert orjson.loads(encode(Event(**EVENT, data=EventData())))["type"] == COMPLETED
