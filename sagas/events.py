"""What can be in a task's history. State is the fold of these; `at` is ms since 1970, UTC.

Everything timed or random has been decided before and is recorded here as a value, so that
folding the same history always gives the same state.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from headway.sagas.circumstances import Bounds
from headway.sagas.step import Step
from headway.sagas.task import Failure, Phase, StepStatus
from headway.sagas.values import value


@value
class TaskSubmitted:
    at: int
    bounds: Bounds | None = None
    child: bool = False


@value
class AttemptDispatched:
    at: int
    step: str
    phase: Phase
    attempt: int


@value
class AttemptStarted:
    at: int
    step: str
    phase: Phase
    attempt: int


@value
class AttemptHeartbeat:
    at: int
    step: str
    phase: Phase
    attempt: int
    progress: Any = None
    waiting: bool = False


@value
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


@value
class AttemptHandedBack:
    """A worker that was told to stop gave the command back: whoever takes it next is no sign that
    it killed anybody."""

    at: int
    step: str
    phase: Phase
    attempt: int


@value
class AttemptRepublished:
    """The command was lost and is published again, under a new epoch.

    If `fenced`, a copy of the former publication that turns up late is not granted to anybody.
    """

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    fenced: bool = False


@value
class StepCompleted:
    at: int
    step: str
    attempt: int
    result: Any = None


@value
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


@value
class AttemptTimedOut:
    """An attempt was given up without an answer: its outcome is unknown."""

    at: int
    step: str
    phase: Phase
    attempt: int
    timeout: str
    status: StepStatus
    retry_at: int = 0


@value
class RecoveryStarted:
    """From here the task is undone. `stopping` maps running steps to when they are given up,
    `closing` maps steps that waited for a retry to the status in which they end."""

    at: int
    reason: str
    step: str = ""
    by: str = ""
    stopping: dict[str, int] = field(default_factory=dict)
    closing: dict[str, StepStatus] = field(default_factory=dict)


@value
class StepCompensated:
    at: int
    step: str
    attempt: int
    empty: bool = False


@value
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


@value
class EmptyDoubted:
    """A compensation's answer that there was nothing to undo, though it may have been sent before
    the action's success, which is known by now. An incident; the step is compensated once more.
    """

    at: int
    step: str
    attempt: int


@value
class StepSkipped:
    """A step's condition was false."""

    at: int
    step: str


@value
class ConditionFailed:
    """A step's condition could not be told."""

    at: int
    step: str
    error: Failure


@value
class StepApproved:
    """A person approved; without `by`, nobody did in time and that is the default."""

    at: int
    step: str
    by: str = ""
    reason: str = ""


@value
class StepRejected:
    """A person rejected; without `by`, nobody approved in time and that is the default."""

    at: int
    step: str
    by: str = ""
    reason: str = ""


@value
class SignalReceived:
    at: int
    name: str
    id: str
    payload: Any = None
    by: str = ""


@value
class SignalTaken:
    """A step that waited got this signal; what it brought is the step's result."""

    at: int
    step: str
    id: str


@value
class StepsAppended:
    """A step handed off to others. `trail` are the signatures of the last hand-offs."""

    at: int
    by: str
    steps: tuple[Step, ...]
    trail: tuple[str, ...] = ()


@value
class TaskHeld:
    """Nothing new is begun until a person has looked."""

    at: int
    kind: str
    reason: str
    step: str = ""


@value
class OutputRejected:
    """The output was not accepted; these steps are done again."""

    at: int
    reason: str
    steps: tuple[str, ...]
    by: str = ""


@value
class TaskMoved:
    """From here on the task runs another version of its saga, which its history fits."""

    at: int
    origin: int
    target: int
    by: str = ""
    reason: str = ""


@value
class TaskForked:
    """The task keeps what the task `origin` finished, but for `step` and all that comes after."""

    at: int
    origin: str
    step: str
    by: str = ""
    reason: str = ""


@value
class StepKept:
    """A step counts as completed: the task that this one was forked from did it."""

    at: int
    step: str
    result: Any = None


@value
class TaskSucceeded:
    at: int


@value
class TaskCompensated:
    at: int


@value
class TaskParked:
    at: int
    reason: str


@value
class TaskFailedToCompensate:
    at: int
    reason: str


@value
class TaskResumed:
    """A parked task goes on. `steps` get another series of attempts; what it was held for ends, or
    what it was held for because of `step`."""

    at: int
    reason: str
    by: str = ""
    steps: tuple[str, ...] = ()
    step: str = ""


@value
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
    | AttemptHandedBack
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
    | StepSkipped
    | ConditionFailed
    | StepApproved
    | StepRejected
    | SignalReceived
    | SignalTaken
    | StepsAppended
    | TaskHeld
    | OutputRejected
    | TaskMoved
    | TaskForked
    | StepKept
)
