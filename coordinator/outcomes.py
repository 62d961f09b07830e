"""From wire events to the machine's inputs. Pure; refuses what does not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headway.agents import messages, payloads, plainjson
from headway.agents.errors import InvalidInput
from headway.agents.heartbeats import PROGRESS_MAX_BYTES
from headway.agents.messages import (
    HANDOFF_MAX_BYTES,
    INPUT_MAX_BYTES,
    Event,
    EventData,
    FailureData,
)
from headway.agents.subjects import parse_stored_event_subject, payloads_by
from headway.coordinator.errors import Refusal
from headway.coordinator.taskid import task_id
from headway.sagas import inputs as i
from headway.sagas.step import Step
from headway.sagas.task import Failure, Phase

ERROR_TYPE_MAX_CHARS = 200
ERROR_MESSAGE_MAX_CHARS = 4_000

_PHASES = {phase.value: phase for phase in Phase}


def sender(subject: str, event: Event) -> tuple[str, UUID]:
    """The agent that the server let publish this, and the task; Refusal if the body differs."""
    try:
        named = parse_stored_event_subject(subject)
        task = task_id(named.task)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if event.task != named.task:
        raise Refusal("the event's task is not the one in its subject")
    return named.agent, task


def decode(body: bytes) -> Event:
    """Parse an event; Refusal names the field that does not fit."""
    try:
        return messages.decode_event(body)
    except InvalidInput as error:
        raise Refusal(str(error), 422) from error


def check_payload(agent: str, event: Event) -> None:
    """Refuse an event whose payload is not one that its agent wrote for this task."""
    if not event.dataref:
        return
    try:
        named = payloads.read(event.dataref)
    except payloads.PayloadLost as error:
        raise Refusal(str(error), 422) from error
    if (named.space, named.task) != (payloads_by(agent), event.task):
        raise Refusal(f"dataref: not a payload that agent {agent!r} wrote for this task", 403)


def to_input(event: Event, data: EventData, at: int, jitter: float) -> i.Input:
    """What the machine is told. `data` is the event's payload, wherever it travelled."""
    phase = _PHASES[event.phase]
    match event.type:
        case messages.COMPLETED:
            inputs = [each.input for each in data.handoff] if data.handoff else ()
            unstorable = _unstorable(data.result, inputs)
            if unstorable is not None:
                return _failed(event, unstorable, at, jitter)
            return i.Succeeded(
                at, event.step, phase, event.attempt, data.result, data.empty, _handoff(data)
            )
        case messages.STARTED:
            return i.Started(at, event.step, phase, event.attempt, event.epoch)
        case messages.HEARTBEAT:
            progress = _progress(data)
            where = (at, event.step, phase, event.attempt, event.epoch)
            return i.Heartbeat(*where, progress, data.waiting)
        case messages.HANDED_BACK:
            return i.HandedBack(at, event.step, phase, event.attempt, event.epoch)
        case messages.TIMED_OUT:
            return i.TimedOut(at, event.step, phase, event.attempt, event.epoch, jitter)
        case _:
            return _failed(event, data, at, jitter)


def _handoff(data: EventData) -> tuple[Step, ...]:
    """The steps that are handed off to."""
    if not data.handoff:
        return ()
    return tuple(
        Step(
            each.name,
            each.action,
            each.compensate,
            read_only=each.read_only,
            input=each.input,
        )
        for each in data.handoff
    )


def _progress(data: EventData) -> Any:
    """How far an attempt is, for people; None if that cannot be kept, or is more than anybody wants
    in a task's state and, each time, in its history."""
    try:
        body = plainjson.encode(data.progress)
    except plainjson.NotPlain:
        return None
    return data.progress if len(body) <= PROGRESS_MAX_BYTES else None


def _unstorable(result: Any, inputs: Sequence[Any]) -> EventData | None:
    """What to make of a result, and the inputs that go with it, that cannot be kept; None if they
    can."""
    try:
        size = len(plainjson.encode(result))
        if not inputs and size <= INPUT_MAX_BYTES:
            return None
        sizes = [size, *(len(plainjson.encode(value)) for value in inputs)]
        if max(sizes) > INPUT_MAX_BYTES or sum(sizes[1:]) > HANDOFF_MAX_BYTES:
            raise plainjson.NotPlain(_too_large(sizes))
    except plainjson.NotPlain as error:
        why = f"the result cannot be kept: {error}"
        return EventData(error=FailureData("InvalidResult", why, retryable=False))
    return None


def _too_large(sizes: list[int]) -> str:
    return (
        f"{max(sizes)} bytes of JSON in its largest value, {sum(sizes[1:])} in all inputs; "
        f"taken are {INPUT_MAX_BYTES} and {HANDOFF_MAX_BYTES}; keep it elsewhere and return a "
        "reference"
    )


def _text(said: str, limit: int) -> str:
    """An agent's words, so that PostgreSQL takes them."""
    return said[:limit].replace("\0", "\N{REPLACEMENT CHARACTER}")


def _failed(event: Event, data: EventData, at: int, jitter: float) -> i.Failed:
    error = data.error
    if error is None:
        raise Refusal("data.error: a failed attempt must say why", 422)
    return i.Failed(
        at,
        event.step,
        _PHASES[event.phase],
        event.attempt,
        event.epoch,
        Failure(
            _text(error.type, ERROR_TYPE_MAX_CHARS), _text(error.message, ERROR_MESSAGE_MAX_CHARS)
        ),
        error.retryable,
        error.noeffect,
        error.retryafterms if error.retryafterms >= 0 else None,
        jitter,
        error.hold,
    )
