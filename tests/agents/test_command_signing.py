"""Signed commands: what a worker takes, what it takes out, and what a copy of a command does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from harness.eventually import eventually
from headway.agents import Agent, Context
from headway.agents.command_key import UNSIGNED, WRONGLY_SIGNED
from headway.agents.command_signing import has_signature, is_signed, signed
from headway.agents.messages import Command, encode
from headway.agents.subjects import COMMANDS_STREAM, DEAD, command_subject
from headway.agents.views import ClaimReply

KEY = bytes(range(32))
SUBJECT = "hw.commands.payments.charge.t.pay"

StandIn = Any
Work = Callable[..., Any]


def test_a_signed_command_is_still_json_and_its_signature_comes_first() -> None:
    body = signed(KEY, SUBJECT, b'{"id":"a","data":{}}')
    assert list(orjson.loads(body)) == ["sig", "id", "data"]
    assert is_signed(KEY, SUBJECT, body)


def test_any_other_byte_key_or_subject_does_not_fit() -> None:
    body = signed(KEY, SUBJECT, b'{"id":"a"}')
    for place in range(len(body)):
        changed = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]
        assert not is_signed(KEY, SUBJECT, changed)
    assert not is_signed(KEY, SUBJECT + "2", body)
    assert not is_signed(KEY[::-1], SUBJECT, body)
    assert not is_signed(KEY, SUBJECT, body + b" ")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b'{"sig":"', b'{"sig":"short",', b'{"id":"a","sig":"x"}', b"\xff" * 99],
)
def test_what_has_no_signature_in_front_is_not_signed(body: bytes) -> None:
    assert not has_signature(body)
    assert not is_signed(KEY, SUBJECT, body)


def test_text_cannot_be_shifted_between_subject_and_body() -> None:
    body = signed(KEY, "hw.commands.a", b'{"x":1}')
    rest = body[len(body) - len(b'"x":1}') :]
    assert not is_signed(KEY, "hw.commands.a" + rest.decode()[:1], body[:-6] + rest[1:])


class Letters:
    """What was put among the dead letters, and why it was taken out."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.taken_out: list[str] = []

    @property
    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.kept]


@pytest.fixture
async def letters(standin: StandIn) -> Letters:
    found = Letters()
    await standin.connection.nc.jetstream().add_stream(name="HW_DEAD", subjects=[DEAD])
    await standin.wire.subscribe(
        DEAD, lambda _subject, _reply, _headers, body: found.kept.append(orjson.loads(body))
    )
    await standin.wire.subscribe(
        f"$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.{COMMANDS_STREAM}.payments",
        lambda _s, _r, _h, body: found.taken_out.append(orjson.loads(body)["reason"]),
    )
    return found


@pytest.fixture
def ran(agent: Agent) -> list[str]:
    """The tasks whose handler was run, in order."""
    tasks: list[str] = []

    @agent.action("charge")
    async def charge(ctx: Context) -> None:
        tasks.append(str(ctx.task))

    return tasks


@pytest.fixture
def agent() -> Agent:
    return Agent("payments")


def subject_of(command: Command, agent: str = "payments", step: str = "pay") -> str:
    return command_subject(agent, "charge", command.task, step)


async def test_an_unsigned_command_is_taken_out_with_the_reason(
    standin: StandIn, work: Work, agent: Agent, ran: list[str], letters: Letters
) -> None:
    await work(agent)
    honest = await standin.command("payments", "charge")
    await standin.event(honest, "completed")
    await standin.all_acked()
    forged = encode(honest)
    await standin.publish(subject_of(honest), forged)
    await eventually(lambda: letters.reasons == [UNSIGNED] and letters.taken_out == [UNSIGNED])
    assert letters.kept[0]["body"] == forged.decode()
    assert ran == [honest.task]
    assert standin.keys_given == 1  # what is not signed at all is no reason to ask


async def test_a_command_moved_to_another_subject_is_taken_out(
    standin: StandIn, work: Work, agent: Agent, ran: list[str], letters: Letters
) -> None:
    await work(agent)
    honest = await standin.command("payments", "charge")
    await standin.event(honest, "completed")
    moved = signed(standin.key, subject_of(honest), encode(honest))
    await standin.publish(subject_of(honest, step="again"), moved)
    await eventually(lambda: letters.reasons == [WRONGLY_SIGNED])
    assert ran == [honest.task]


async def test_a_flood_of_wrong_signatures_is_taken_out_and_asks_for_the_key_once(
    standin: StandIn,
    work: Work,
    agent: Agent,
    ran: list[str],
    letters: Letters,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await work(agent)
    await eventually(lambda: standin.keys_given == 1)
    monkeypatch.setattr("headway.agents.command_key.ASK_AGAIN_S", 0.0)
    first = await standin.command("payments", "charge")
    await standin.event(first, "completed")
    monkeypatch.setattr("headway.agents.command_key.ASK_AGAIN_S", 10.0)
    for number in range(300):
        subject = command_subject("payments", "charge", f"t{number}", "pay")
        await standin.publish(subject, signed(KEY, subject, b'{"id":"x"}'))
    honest = await standin.command("payments", "charge")
    await standin.event(honest, "completed")
    await eventually(lambda: letters.reasons == [WRONGLY_SIGNED] * 300)
    await standin.all_acked()
    assert ran == [first.task, honest.task]
    assert standin.keys_given == 1  # the wrong ones came within ASK_AGAIN_S of the start


async def test_a_new_key_is_learnt_from_the_first_command_that_has_it(
    standin: StandIn,
    work: Work,
    agent: Agent,
    ran: list[str],
    letters: Letters,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await work(agent)
    await eventually(lambda: standin.keys_given == 1)
    monkeypatch.setattr("headway.agents.command_key.ASK_AGAIN_S", 0.0)
    standin.key = KEY
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    assert standin.keys_given == 2
    assert letters.kept == []


async def test_no_command_is_looked_at_before_the_key_is_known(
    standin: StandIn, work: Work, agent: Agent, ran: list[str], letters: Letters
) -> None:
    standin.key = b""  # which is no key, so it is asked for again
    await work(agent)
    await eventually(lambda: standin.keys_given > 2)
    standin.key = KEY
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    assert letters.kept == []


async def test_a_copy_of_a_command_is_claimed_before_anything_runs(
    standin: StandIn, work: Work, agent: Agent, ran: list[str]
) -> None:
    """Whoever can read and write the stream sends the very same bytes again, at once."""
    standin.decide = lambda claim: ClaimReply(granted=False, reason="answered already")
    await work(agent)
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    await standin.all_acked()
    await standin.send(subject_of(command), encode(command))
    await eventually(lambda: len(standin.claims) == 1)
    await standin.all_acked()
    assert ran == [command.task]


async def test_a_copy_that_another_instance_gets_later_is_claimed_too(
    standin: StandIn,
    work: Work,
    agent: Agent,
    ran: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It remembers nothing, but the command was signed long before it was stored."""
    standin.decide = lambda claim: ClaimReply(granted=False, reason="answered already")
    first = await work(agent)
    command = await standin.command("payments", "charge")
    await standin.event(command, "completed")
    await standin.all_acked()
    await first.end()
    monkeypatch.setattr("headway.agents.repeats.STORED_WITHIN_MS", 50)
    await work(agent)
    await asyncio.sleep(0.1)  # the very thing under test: time passes
    await standin.send(subject_of(command), encode(command))
    await eventually(lambda: len(standin.claims) == 1)
    await standin.all_acked()
    assert ran == [command.task]
