"""What an attempt reports: the event that follows from a command and what its handler did."""

from __future__ import annotations

import math
from typing import cast

from headway.agents.codec import Undecryptable
from headway.agents.errors import Halted, InvalidInput, Reject, Retry, ToolFailed
from headway.agents.messages import Command, Event, EventData, EventType, FailureData, Phase
from headway.agents.payloads import PayloadLost

MESSAGE_MAX_CHARS = 2_000  # of a failure's message

INVALID_INPUT = "InvalidInput"
INVALID_RESULT = "InvalidResult"
RESULT_TOO_LARGE = "ResultTooLarge"
UNKNOWN_ACTION = "UnknownAction"
PAYLOAD_LOST = "PayloadLost"


def event(
    command: Command, epoch: int, source: str, kind: str, data: EventData | None = None
) -> Event:
    """An event of `command`'s attempt; told twice, it has the same id."""
    return Event(
        id=f"{command.id}.{epoch}.{kind.rpartition('.')[2]}",
        task=command.task,
        step=command.step,
        phase=command.phase,
        attempt=command.attempt,
        epoch=epoch,
        type=cast(EventType, kind),
        source=source,
        data=data,
    )


def failure(kind: str, message: str, *, retryable: bool, no_effect: bool = False) -> EventData:
    """A failure that this SDK found itself; `no_effect`: the handler was never called."""
    return EventData(error=FailureData(kind, _short(message), retryable, no_effect))


def unknown_action(agent: str, action: str, phase: Phase) -> EventData:
    """No handler here; another instance of the agent, of another version, may have one."""
    text = f"agent {agent!r} has no {phase} named {action!r} in this process"
    return failure(UNKNOWN_ACTION, text, retryable=True, no_effect=True)


def unusable(error: InvalidInput | PayloadLost) -> EventData:
    """What the handler was to be given does not fit, or is gone (it may come back)."""
    if isinstance(error, InvalidInput):
        return failure(INVALID_INPUT, str(error), retryable=False, no_effect=True)
    return failure(PAYLOAD_LOST, str(error), retryable=True, no_effect=True)


def undecryptable(error: Undecryptable, *, no_effect: bool = False) -> EventData:
    """A person must see to the keys before it is tried again."""
    kind = type(error).__name__
    return EventData(error=FailureData(kind, _short(str(error)), noeffect=no_effect, hold=True))


def failure_of(error: BaseException) -> EventData:
    """What an exception of a handler means: refused, later please, halted, or a fault."""
    if isinstance(error, Undecryptable):
        return undecryptable(error)
    if isinstance(error, Reject):
        return failure(_short(error.kind), error.reason, retryable=False, no_effect=True)
    if isinstance(error, Retry):
        after_ms = -1 if error.after is None else max(0, math.ceil(error.after * 1000))
        data = FailureData("Retry", _short(error.reason), retryafterms=after_ms)
        return EventData(error=data)
    if isinstance(error, Halted):
        return EventData(error=FailureData(_short(error.kind), _short(error.reason), hold=True))
    if isinstance(error, ToolFailed):  # not retryable: another attempt would find the same end
        return failure(_short(error.kind), str(error), retryable=error.retryable)
    return failure(type(error).__name__, str(error), retryable=True)


def _short(text: str) -> str:
    """`text` as any store can keep it: bounded, valid UTF-8, without NUL."""
    kept = text[:MESSAGE_MAX_CHARS].replace("\0", "")
    return kept.encode("utf-8", "replace").decode()
