"""Everything that can happen to a task from outside. `at` is ms since 1970, UTC.

`jitter` is a number from -1 to 1, drawn by the caller, for a retry that the input may cause.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from headway.sagas.task import Claim, Failure, Phase


@dataclass(frozen=True, slots=True)
class Submit:
    at: int


@dataclass(frozen=True, slots=True)
class Started:
    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Succeeded:
    """An agent reports success. `empty`: its compensation found nothing to undo."""

    at: int
    step: str
    phase: Phase
    attempt: int
    result: Any = None
    empty: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """An agent reports failure. `no_effect`: it states that nothing was left behind."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    error: Failure
    retryable: bool
    no_effect: bool
    retry_after_ms: int | None = None
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A worker stopped a handler at its `start_to_close`."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class Tick:
    """The task's timer went off."""

    at: int
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class ClaimAsked:
    """A worker asks whether it may run a redelivered, re-published or old command."""

    at: int
    step: str
    phase: Phase
    attempt: int
    claim: Claim
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class DispatchLost:
    """The command of an outstanding attempt is in no stream any more, nor is its answer."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Cancel:
    at: int
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class RetryStuck:
    """A person asks for another series of attempts: of one stuck step, or of all."""

    at: int
    by: str
    reason: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Settle:
    """A person states how a stuck step really ended."""

    at: int
    step: str
    outcome: Literal["happened", "did_not_happen"]
    by: str
    reason: str
    result: Any = None


Input = (
    Submit
    | Started
    | Heartbeat
    | Succeeded
    | Failed
    | TimedOut
    | Tick
    | ClaimAsked
    | DispatchLost
    | Cancel
    | RetryStuck
    | Settle
)
