"""The wire messages: CloudEvents 1.0 in structured mode, one JSON object, no NATS headers.

Commands go from a coordinator to an agent, events from an agent to the coordinators,
submissions from anybody to `HW_TASKS`. Extension attributes are lower-case letters and digits
only, as CloudEvents wants. A payload over `INLINE_MAX_BYTES` travels as `dataref` (which
is in the stream `HW_PAYLOADS`) with `datadigest`, the SHA-256 of its bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from headway.agents.errors import InvalidInput
from pydantic import TypeAdapter, ValidationError

SPEC_VERSION = "1.0"
CONTENT_TYPE = "application/cloudevents+json"

INPUT_MAX_BYTES = 1_048_576  # a task's input, and a step's result: 1 MiB
HANDOFF_MAX_BYTES = 4 * INPUT_MAX_BYTES  # of the inputs of all steps that are handed off to
INLINE_MAX_BYTES = 262_144  # payloads above 256 KiB travel by reference

EXECUTE = "headway.command.execute"
COMPENSATE = "headway.command.compensate"

STARTED = "headway.attempt.started"
HEARTBEAT = "headway.attempt.heartbeat"
HANDED_BACK = "headway.attempt.handedback"
COMPLETED = "headway.attempt.completed"
FAILED = "headway.attempt.failed"
TIMED_OUT = "headway.attempt.timedout"

Phase = Literal["action", "compensation"]
EventType = Literal[
    "headway.attempt.started",
    "headway.attempt.heartbeat",
    "headway.attempt.handedback",
    "headway.attempt.completed",
    "headway.attempt.failed",
    "headway.attempt.timedout",
]


@dataclass(slots=True)
class CommandData:
    """What an attempt works on.

    `results` holds the results of the completed steps that this one comes after, directly or
    not. `result` and `outcome_unknown` are for compensations: the action's result if it is
    known, and whether it is unknown if the action took effect at all. `input` is the task's, or the
    step's own if it was handed one.
    """

    input: Any = None
    results: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    outcome_unknown: bool = False
    goal: str = ""  # of the task's manifest
    rejection: str = ""  # why the task's output was not accepted, when it is done again
    sealed: bool = False  # the task's input is encrypted, and so is all that is reported


@dataclass(slots=True)
class Command:
    """One attempt of one step's action or compensation, for an agent to carry out."""

    id: str
    task: str
    saga: str
    step: str
    phase: Phase
    attempt: int
    epoch: int
    traceparent: str
    type: Literal["headway.command.execute", "headway.command.compensate"]
    sentms: int = 0  # when it was signed, in ms: a copy that is stored later is no news
    source: str = "/headway/coordinator"
    specversion: Literal["1.0"] = "1.0"
    starttoclosems: int = 0  # 0: no limit
    heartbeatms: int = 0  # 0: no heartbeats wanted
    reportstart: bool = False  # whether the agent says when it starts
    late: bool = False  # it was held up, and may have been published again before: it is claimed
    paced: bool = False  # something limits it: it waits for its turn
    dataref: str = ""
    datadigest: str = ""
    data: CommandData | None = None


@dataclass(slots=True)
class FailureData:
    """Why an attempt failed. `noeffect`: the agent states that nothing was left behind. `hold`: a
    person must look before it is tried again."""

    type: str
    message: str
    retryable: bool = True
    noeffect: bool = False
    retryafterms: int = -1  # -1: by the step's policy
    hold: bool = False


@dataclass(slots=True)
class NextStep:
    """A step that an action hands off to: appended to the running plan, after the action's own."""

    action: str  # agent.action
    name: str = ""  # default: made from the action
    compensate: str | None = None
    read_only: bool = False
    input: Any = None  # None: the task's


@dataclass(slots=True)
class EventData:
    result: Any = None
    empty: bool = False  # a compensation found nothing to undo
    error: FailureData | None = None
    handoff: list[NextStep] = field(default_factory=list)
    progress: Any = None  # of a heartbeat, for people
    waiting: bool = False  # a heartbeat: it waits for a person, which is no work


@dataclass(slots=True)
class Event:
    """How an attempt went on or ended. The agent's name is in the subject, not here."""

    id: str
    task: str
    step: str
    phase: Phase
    attempt: int
    epoch: int
    type: EventType
    source: str
    specversion: Literal["1.0"] = "1.0"
    dataref: str = ""
    datadigest: str = ""
    data: EventData | None = None


# Validators alone: the methods of an adapter take a third of a microsecond to get there.
_COMMAND = TypeAdapter(Command).validator
_EVENT = TypeAdapter(Event).validator
_COMMAND_DATA = TypeAdapter(CommandData).validator
_EVENT_DATA = TypeAdapter(EventData).validator


def encode(message: Command | Event) -> bytes:
    """The message's JSON. Results and inputs may be `orjson.Fragment`s."""
    return orjson.dumps(message) if isinstance(message, Command) else _encode_event(message)


def _encode_event(event: Event) -> bytes:
    """An event's JSON; what is at its default is left out."""
    written: dict[str, Any] = {
        "specversion": event.specversion,
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "task": event.task,
        "step": event.step,
        "phase": event.phase,
        "attempt": event.attempt,
        "epoch": event.epoch,
    }
    if event.dataref:
        written["dataref"], written["datadigest"] = event.dataref, event.datadigest
    if event.data is not None:
        written["data"] = _written(event.data)
    return orjson.dumps(written)


def _written(data: EventData) -> dict[str, Any]:
    written: dict[str, Any] = {}
    if data.result is not None:
        written["result"] = data.result
    if data.empty:
        written["empty"] = True
    if data.error is not None:
        written["error"] = data.error
    if data.handoff:
        written["handoff"] = data.handoff
    if data.progress is not None:
        written["progress"] = data.progress
    if data.waiting:
        written["waiting"] = True
    return written


def decode_command(body: bytes) -> Command:
    """Parse a command; InvalidInput names the field that does not fit."""
    try:
        command: Command = _COMMAND.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"not a command: {describe(error)}") from error
    return command


def decode_event(body: bytes) -> Event:
    """Parse an event; InvalidInput names the field that does not fit."""
    try:
        event: Event = _EVENT.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"not an event: {describe(error)}") from error
    return event


def decode_command_data(body: bytes) -> CommandData:
    try:
        data: CommandData = _COMMAND_DATA.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"not a command's data: {describe(error)}") from error
    return data


def decode_event_data(body: bytes) -> EventData:
    try:
        data: EventData = _EVENT_DATA.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"not an event's data: {describe(error)}") from error
    return data


def describe(error: ValidationError) -> str:
    """The first few complaints of a validation, by field and without the offending values."""
    complaints = [
        f"{'.'.join(str(part) for part in item['loc']) or 'body'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:3]
    ]
    return "; ".join(complaints)
