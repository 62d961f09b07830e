"""What an agent with its own key may try against the rest, and what comes of it: nothing.

A server does not check on which subject somebody wants his answer, so it can be made to send one
where its asker may not publish; most of these attacks are of that kind.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

import orjson
import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.agents import NotFound
from headway.agents.connection import Connection
from headway.agents.messages import COMPLETED, Event, EventData, encode
from headway.agents.subjects import (
    COMMANDS_STREAM,
    EVENTS_STREAM,
    PAYLOADS_STREAM,
    command_subject,
    dead_subject,
    event_subject,
    payloads_by,
)
from headway.sagas import Saga
from security.attackers import Attacker

pytestmark = pytest.mark.usefixtures("running")

ASTRAY = "nobody published this: it is an answer of nats-server sent astray"
UNSIGNED = "not signed: commands come from a coordinator, which signs them"


async def reasons(system: System, part: object) -> list[str]:
    """Why what was on the subject with this part was refused, as far as dead letters tell."""
    letters = [letter for letter in await system.dead_letters() if "size" in letter]
    return [letter["reason"] for letter in letters if str(part) in letter["subject"]]


async def is_refused(system: System, part: object, reason: str) -> None:
    async def told() -> bool:
        found = await reasons(system, part)
        assert reason in found, f"for {part} there is {found}"
        return True

    await eventually(told)


async def done(system: System, task: UUID) -> None:
    """The task does what it should, whatever was tried on it."""
    assert (await system.client.result(task, timeout=30)).status == "succeeded"


async def succeeds(system: System) -> None:
    """The system does what it should, still."""
    view = await system.client.run("linear", {"number": 1}, timeout=15)
    assert view.status == "succeeded"


def completed(task: UUID, step: str = "a", result: object = "forged") -> bytes:
    """An event that is right in all but who sends it."""
    return encode(
        Event(
            id=str(uuid4()),
            task=str(task),
            step=step,
            phase="action",
            attempt=1,
            epoch=0,
            type=COMPLETED,
            source="/mallory",
            data=EventData(result=result),
        )
    )


async def is_queued(owner: Connection, task: UUID) -> bool:
    """Whether the command of a task's first step is in its stream."""
    subject = command_subject("shop", "a", str(task), "a")
    found = await owner.nc.jetstream().stream_info(COMMANDS_STREAM, subjects_filter=subject)
    return found.state.subjects == {subject: 1}


async def test_a_puback_that_lands_on_anothers_command_subject_is_refused_by_its_worker(
    system: System, mallory: Attacker
) -> None:
    task = str(uuid4())
    target = command_subject("shop", "a", task, "a")
    async with system.working():
        await mallory.publish(event_subject("mallory", task), b"x", reply=target)
        await is_refused(system, target, UNSIGNED)
        await succeeds(system)
    assert system.downstream.calls(UUID(task)) == []


async def test_bytes_that_the_server_is_made_to_send_are_no_command(
    system: System, mallory: Attacker
) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    stream = system.client.connection.nc.jetstream()

    async def stored() -> bytes:
        subject = command_subject("shop", "a", str(receipt.task), "a")
        return (await stream.get_last_msg(COMMANDS_STREAM, subject)).data

    command = orjson.loads(await eventually(stored))
    task = str(uuid4())
    target = command_subject("shop", "a", task, "a")
    forged = {**command, "task": task}
    async with system.working():
        await mallory.have_sent(target, orjson.dumps(forged))
        wrong = "the signature does not fit: no coordinator wrote this for this subject"
        await is_refused(system, target, wrong)
        await done(system, receipt.task)
    assert system.downstream.calls(UUID(task)) == []


async def test_an_event_that_the_server_is_made_to_send_in_anothers_name_is_refused(
    system: System, mallory: Attacker
) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    await mallory.have_sent(event_subject("shop", str(receipt.task)), completed(receipt.task))
    await is_refused(system, receipt.task, ASTRAY)
    view = await system.client.status(receipt.task)
    assert [step.status for step in view.steps if step.name == "a"] == ["scheduled"]
    async with system.working():
        await done(system, receipt.task)


async def test_a_command_of_ones_own_that_is_pulled_onto_anothers_subject_changes_nothing(
    system: System, mallory: Attacker
) -> None:
    saga = Saga("bait").step("a", "mallory.a", read_only=True)
    await registered(system.client, saga)
    bait = await system.client.submit("bait", {"number": 1})
    receipt = await system.client.submit("linear", {"number": 1})
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{COMMANDS_STREAM}.mallory"
    for target in (
        event_subject("shop", str(receipt.task)),
        command_subject("shop", "a", str(bait.task), "a"),
    ):
        await mallory.publish(pull, b'{"batch":5,"expires":1000000}', reply=target)
    async with system.working():
        await succeeds(system)
        await done(system, receipt.task)
    assert system.downstream.calls(bait.task) == []


async def test_a_submission_that_the_server_is_made_to_send_is_refused(
    system: System, mallory: Attacker
) -> None:
    await registered(system.client, linear("never"))
    await mallory.have_sent("hw.tasks.never", b'{"number":666}')
    await is_refused(system, "hw.tasks.never", ASTRAY)
    assert (await system.client.list(saga="never")).tasks == []


async def test_no_handler_is_stopped_by_a_hint_that_the_server_is_made_to_send(
    system: System, mallory: Attacker, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with system.working():
        receipt = await system.client.submit("linear", {"a": f"until={go}"})
        await system.called(receipt.task)
        await mallory.have_sent(f"hw.stop.shop.{receipt.task}.a", b"1")
        go.touch()
        await done(system, receipt.task)
    assert len(system.downstream.calls(receipt.task)) == 3


async def test_nobody_is_on_the_roll_by_a_presence_that_the_server_is_made_to_send(
    system: System, mallory: Attacker
) -> None:
    presence = {
        "agent": "ghost",
        "worker": "w",
        "actions": [],
        "host": "h",
        "pid": 1,
        "busy": 0,
        "slots": 1,
        "stopping": False,
    }
    body = orjson.dumps(presence)
    await mallory.have_sent("hw.presence.ghost", body)
    other = body.replace(b"ghost", b"other")
    await system.client.connection.nc.publish("hw.presence.other", other)

    async def listed() -> set[str]:
        return {view.agent for view in (await system.client.agents()).agents}

    async def second_is() -> bool:
        return "other" in await listed()

    await eventually(second_is)
    assert "ghost" not in await listed()


async def test_what_nobody_asked_for_is_not_carried_out(system: System, mallory: Attacker) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    before = len(await system.client.history(receipt.task))
    of = {"task": str(receipt.task), "step": "a", "phase": "action", "attempt": 1, "epoch": 0}
    cancel = {"task": str(receipt.task), "reason": "mine", "by": "ann"}
    await mallory.have_sent("hw.api.cancel", orjson.dumps(cancel))
    claim = {**of, "delivery": 2, "worker": "mallory"}
    await mallory.have_sent("hw.agents.shop.claim", orjson.dumps(claim))
    await system.client.connection.wire.flush()
    assert (await system.client.health()).status == "ok"
    assert len(await system.client.history(receipt.task)) == before
    async with system.working():
        await done(system, receipt.task)


async def test_no_coordinator_is_made_to_send_its_answer_where_the_asker_may_not(
    system: System, mallory: Attacker, owner: Connection
) -> None:
    """It may do everything, so its answer would be taken."""
    receipt = await system.client.submit("linear", {"number": 1})
    await eventually(lambda: is_queued(owner, receipt.task))
    heard: list[str] = []
    for target in (
        f"$JS.API.STREAM.PURGE.{COMMANDS_STREAM}",
        f"$JS.API.STREAM.DELETE.{EVENTS_STREAM}",
        f"$JS.ACK.{COMMANDS_STREAM}.shop.1.1.1.1700000000000000000.0",
        "hw.commands.shop.a.T.a",
        "hw.feed.linear.T.succeeded",
    ):
        await owner.wire.subscribe(target, lambda subject, *_: heard.append(subject))
        for operation in ("key", "document.list", "gate.keys", "no-such", "claim"):
            await mallory.publish(f"hw.agents.mallory.{operation}", b"{}", reply=target)
    assert (await mallory.ask("key", b""))[0] == 200
    await owner.wire.flush()
    assert heard == []
    assert await is_queued(owner, receipt.task)
    assert mallory.refused == []


HEADERS = [
    {"Nats_Rollup": "all"},
    {"Nats_Rollup": "sub"},
    {"Nats_TTL": "1s"},
    {"Nats_Schedule": "@at 2020-01-01T00:00:00Z", "Nats_Schedule_Target": "hw.events.shop.T"},
    {"Nats_Batch_Id": "x", "Nats_Batch_Sequence": "1", "Nats_Batch_Commit": "1"},
    {"Nats_Incr": "1"},
    {"Nats_Marker_Reason": "Purge"},
    {"Nats_Trace_Dest": "hw.commands.shop.a.T.a"},
    {"Nats_Trace_Dest": "hw.api.cancel", "Nats_Trace_Only": "true"},
]


async def test_no_header_lets_an_agent_remove_or_write_what_is_anothers(
    system: System, mallory: Attacker, owner: Connection
) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    heard: list[str] = []
    for watched in ("hw.events.shop.>", "hw.commands.shop.a.T.a", "hw.api.cancel"):
        await owner.wire.subscribe(watched, lambda subject, *_: heard.append(subject))
    kept = f"{payloads_by('shop')}.T.{'0' * 64}.1.0"
    letter = dead_subject("HW_TASKS")
    assert await owner.wire.store_all([(kept, b"x"), (letter, b"{}")]) == [None, None]
    stream = owner.nc.jetstream()
    for headers in HEADERS:
        for subject in (
            event_subject("mallory", str(receipt.task)),
            f"{payloads_by('mallory')}.{uuid4()}.{'0' * 64}.1.0",
            dead_subject(COMMANDS_STREAM, "mallory"),
        ):
            await mallory.store(subject, b"{}", **headers)
        await owner.wire.flush()
        assert (await stream.get_last_msg(PAYLOADS_STREAM, kept)).data == b"x", headers
        assert (await stream.get_last_msg("HW_DEAD", letter)).data == b"{}", headers
        assert heard == [], headers
    async with system.working():
        await succeeds(system)


async def test_what_an_agent_stored_is_replaced_and_deleted_by_nobody(
    mallory: Attacker, owner: Connection
) -> None:
    subject = f"{payloads_by('mallory')}.T.{'0' * 64}.1.0"
    assert await mallory.store(subject, b"first") != {}
    again = await mallory.store(subject, b"second")
    assert again["error"]["err_code"] == 10077
    stream = owner.nc.jetstream()
    sequence = (await stream.get_last_msg(PAYLOADS_STREAM, subject)).seq
    for order, body in (
        (f"STREAM.PURGE.{PAYLOADS_STREAM}", b""),
        (f"STREAM.MSG.DELETE.{PAYLOADS_STREAM}", orjson.dumps({"seq": sequence})),
        (f"STREAM.PURGE.{EVENTS_STREAM}", b""),
    ):
        answer = await owner.nc.request(f"$JS.API.{order}", body)
        assert "not permitted" in orjson.loads(answer.data)["error"]["description"]


async def test_no_message_id_keeps_anothers_event_or_a_submission_out(
    system: System, mallory: Attacker
) -> None:
    """Events are stored without ids, and submissions are in a stream where no agent writes."""
    task, name = uuid4(), "order-17"
    for squatted in (str(task), name, f"{task}/a/action/1/0"):
        answer = await mallory.store(
            event_subject("mallory", str(task)), b"{}", Nats_Msg_Id=squatted
        )
        assert "seq" in answer
    async with system.working():
        await system.client.publish("linear", {"number": 1}, task=task)
        await succeeds(system)
        await done(system, task)


async def test_no_ack_that_an_agent_can_send_settles_anothers_command(
    system: System, mallory: Attacker, owner: Connection
) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    stream = owner.nc.jetstream()

    inbox = owner.wire.new_inbox()
    acks: list[str] = []
    await owner.wire.subscribe(inbox, lambda _subject, reply, *_: acks.append(reply))
    pull = f"$JS.API.CONSUMER.MSG.NEXT.{COMMANDS_STREAM}.shop"
    await owner.nc.publish(pull, b'{"batch":1,"expires":10000000000}', reply=inbox)
    await eventually(lambda: acks)
    words = acks[0].split(".")[-5:]
    for subject in (
        ("HW_COMMANDS", "shop", *words),
        ("HW_COMMANDS", "mallory", *words),
        ("HW_COMMANDS", "mallory", "HW_COMMANDS", "shop", *words[:3]),
        ("_", "x", "HW_COMMANDS", "mallory", *words),
        ("_", "mallory", "HW_COMMANDS", "shop", *words),
    ):
        for answer in (b"+ACK", b"+TERM mine", b"-NAK", b"+NXT"):
            await mallory.publish(f"$JS.ACK.{'.'.join(subject)}", answer)
    info = await stream.consumer_info(COMMANDS_STREAM, "shop")
    assert (info.num_ack_pending, info.num_redelivered) == (1, 0)
    assert await is_queued(owner, receipt.task)
    async with system.working():
        await done(system, receipt.task)


async def test_a_flood_of_letters_leaves_those_of_others(
    mallory: Attacker, owner: Connection
) -> None:
    """An agent keeps no more than so many, and none that is too large."""
    config = (await owner.nc.jetstream().stream_info("HW_DEAD")).config
    assert (config.max_msgs_per_subject, config.max_msg_size) == (1_000, 262_144)
    answer = await mallory.store(dead_subject(COMMANDS_STREAM, "mallory"), b"x" * 262_145)
    assert answer["error"]["code"] == 400


async def test_a_task_that_is_not_there_stays_so_whatever_its_events_say(
    system: System, mallory: Attacker
) -> None:
    task = uuid4()
    await mallory.store(event_subject("mallory", str(task)), completed(task))
    await is_refused(system, task, f"there is no task {task}")
    with pytest.raises(NotFound):
        await system.client.status(task)


async def test_an_agent_answers_no_step_that_is_anothers(system: System, mallory: Attacker) -> None:
    receipt = await system.client.submit("linear", {"number": 1})
    await mallory.store(event_subject("mallory", str(receipt.task)), completed(receipt.task))
    reason = "agent 'mallory' answered a command of step 'a' that was for 'shop'"
    await is_refused(system, receipt.task, reason)
    async with system.working():
        await done(system, receipt.task)


async def test_an_event_tells_only_what_its_own_agent_stored(
    system: System, mallory: Attacker, owner: Connection
) -> None:
    """A reference to another's payload would make a result of what the agent may not read."""
    await registered(system.client, Saga("bait").step("a", "mallory.a", read_only=True))
    bait = await system.client.submit("bait", {"number": 1})
    event = orjson.loads(completed(bait.task))
    del event["data"]
    for reference in (
        f"hw.payloads.by.shop.{bait.task}.{'0' * 64}.1",
        f"hw.payloads.to.mallory.{bait.task}.{'0' * 64}.1",
        f"hw.payloads.by.mallory.{uuid4()}.{'0' * 64}.1",
    ):
        body = orjson.dumps({**event, "dataref": reference, "datadigest": "0" * 64})
        await mallory.store(event_subject("mallory", str(bait.task)), body)
    reason = "dataref: not a payload that agent 'mallory' wrote for this task"

    async def three() -> bool:
        return (await reasons(system, bait.task)).count(reason) == 3

    await eventually(three)
