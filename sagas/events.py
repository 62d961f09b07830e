"""What can be in a task's history. State is the fold of these; `at` is ms since 1970, UTC.

Everything timed or random has been decided before and is recorded here as a value, so that
folding the same history always gives the same state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headway.sagas.task import Failure, Phase, StepStatus


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    at: int


@dataclass(frozen=True, slots=True)
class AttemptDispatched:
    at: int
    step: str
    phase: Phase
    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptStarted:
    at: int
    step: str
    phase: Phase
    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptHeartbeat:
    at: int
    step: str
    phase: Phase
    attempt: int


@dataclass(frozen=True, slots=True)
class AttemptClaimed:
    """A worker was granted a redelivered, re-published or old command."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    command_epoch: int
    delivery: int
    worker: str


@dataclass(frozen=True, slots=True)
class AttemptRepublished:
    """The command was lost and is published again, under a new epoch."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@dataclass(frozen=True, slots=True)
class StepCompleted:
    at: int
    step: str
    attempt: int
    result: Any = None


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """An attempt ended in failure. `status` is the step's from here on; `retry_at` if again."""

    at: int
    step: str
    phase: Phase
    attempt: int
    error: Failure
    no_effect: bool
    status: StepStatus
    retry_at: int = 0


@dataclass(frozen=True, slots=True)
class AttemptTimedOut:
    """An attempt was given up without an answer: its outcome is unknown."""

    at: int
    step: str
    phase: Phase
    attempt: int
    timeout: str
    status: StepStatus
    retry_at: int = 0


@dataclass(frozen=True, slots=True)
class RecoveryStarted:
    """From here the task is undone. `stopping` maps running steps to when they are given up,
    `closing` maps steps that waited for a retry to the status in which they end."""

    at: int
    reason: str
    step: str = ""
    by: str = ""
    stopping: dict[str, int] = field(default_factory=dict)
    closing: dict[str, StepStatus] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepCompensated:
    at: int
    step: str
    attempt: int
    empty: bool = False


@dataclass(frozen=True, slots=True)
class LateSuccess:
    """An action's success that came when its task had gone on without it.

    `incident`: its compensation had found nothing to undo, or it had been reported to have left
    nothing; `again`: it is therefore to be compensated once more.
    """

    at: int
    step: str
    attempt: int
    incident: bool = False
    again: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class EmptyDoubted:
    """A compensation's answer that there was nothing to undo, though it may have been sent before
    the action's success, which is known by now. An incident; the step is compensated once more.
    """

    at: int
    step: str
    attempt: int


@dataclass(frozen=True, slots=True)
class TaskSucceeded:
    at: int


@dataclass(frozen=True, slots=True)
class TaskCompensated:
    at: int


@dataclass(frozen=True, slots=True)
class TaskParked:
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskFailedToCompensate:
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaskResumed:
    """A parked task goes on. `steps` get another series of attempts."""

    at: int
    reason: str
    by: str = ""
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepSettled:
    """A person stated how a stuck step really ended. `empty`: there was nothing to compensate."""

    at: int
    step: str
    status: StepStatus
    by: str
    reason: str = ""
    result: Any = None
    empty: bool = False


Event = (
    TaskSubmitted
    | AttemptDispatched
    | AttemptStarted
    | AttemptHeartbeat
    | AttemptClaimed
    | AttemptRepublished
    | StepCompleted
    | AttemptFailed
    | AttemptTimedOut
    | RecoveryStarted
    | StepCompensated
    | LateSuccess
    | EmptyDoubted
    | TaskSucceeded
    | TaskCompensated
    | TaskParked
    | TaskFailedToCompensate
    | TaskResumed
    | StepSettled
)
