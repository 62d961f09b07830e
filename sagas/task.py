"""A task's state: what the fold of its history gives. Times are milliseconds since 1970, UTC.

A step is *active* while an attempt of it is outstanding or a further one is due. `violations`
states what must hold of any state; it is asserted by tests and never consulted for decisions.
States and sets of statuses are tuples: that is what Python makes and asks fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headway.sagas.circumstances import ORDINARY, Circumstances
from headway.sagas.definition import Definition
from headway.sagas.values import value


class TaskStatus(StrEnum):
    """Where a task stands. It ends succeeded or compensated; parked or failed_to_compensate, it
    waits for a person."""

    RUNNING = "running"
    COMPENSATING = "compensating"
    SUCCEEDED = "succeeded"
    COMPENSATED = "compensated"
    PARKED = "parked"
    FAILED_TO_COMPENSATE = "failed_to_compensate"


class StepStatus(StrEnum):
    """Where a step stands. `unknown`: nobody can tell whether its action took effect."""

    WAITING = "waiting"
    SCHEDULED = "scheduled"
    COMPLETED = "completed"
    FAILED = "failed"  # ended, and known to have left no effect
    UNKNOWN = "unknown"  # ended, and may have taken effect
    SKIPPED = "skipped"
    COMPENSATING = "compensating"
    COMPENSATED = "compensated"
    FAILED_TO_COMPENSATE = "failed_to_compensate"


class Phase(StrEnum):
    """Which of a step's two handlers is meant."""

    ACTION = "action"
    COMPENSATION = "compensation"


ENDED = (TaskStatus.SUCCEEDED, TaskStatus.COMPENSATED)
PARKED = (TaskStatus.PARKED, TaskStatus.FAILED_TO_COMPENSATE)
ACTIVE = (StepStatus.SCHEDULED, StepStatus.COMPENSATING)
MAY_HAVE_EFFECT = (StepStatus.COMPLETED, StepStatus.UNKNOWN)
UNSUCCESSFUL = (StepStatus.FAILED, StepStatus.UNKNOWN)
UNDER_COMPENSATION = (
    StepStatus.COMPENSATING,
    StepStatus.COMPENSATED,
    StepStatus.FAILED_TO_COMPENSATE,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed: an error's type and text, or a timeout's name."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Claim:
    """Which delivery of which publication was granted last, and to which worker."""

    command_epoch: int
    delivery: int
    worker: str

    def precedes(self, other: Claim) -> bool:
        mine = (self.command_epoch, self.delivery)
        return mine < (other.command_epoch, other.delivery)


class StepState(NamedTuple):
    """One step of one task.

    Attributes:
        attempt: number of the current phase's latest attempt; 0 before the first.
        epoch: raised by each claim and re-publication of that attempt.
        dispatched_at: when it was dispatched; 0 when no attempt is outstanding.
        started_at: when an agent was known to begin with it; 0 if nobody said so.
        heartbeat_at: when its handler was last heard of; 0 if never.
        retry_at: when the next attempt is due; 0 when none is.
        scheduled_at: when the phase was first dispatched.
        stop_by: when a running attempt that was asked to stop is given up; 0 if not asked.
        spent: attempts before a person asked for another series; the policy counts from there.
        actions: how many attempts of the action were ever dispatched.
        uncertain: some attempt of the action ended, or was taken over from a worker that is gone,
            without its effect being known.
        known: whether `result` is the action's result.
        empty: the compensation found nothing to undo.
        doubted: compensation attempts up to this one may have come before the action's effect, so
            that they do not count if they find nothing to undo.
        discounted: successes of the action's attempts up to this one do not count any more: their
            output was not accepted.
        progress: what its handler said last of how far it is.
        waits: its handler waits for a person, so that `start_to_close` does not run.
        claims, claim: how often the attempt was claimed, and by whom last; by nobody yet, but only
            that publication can be, if its worker is empty.
        handed_back: its worker was told to stop and gave it back, so that the next claim does not
            count.
        kept: another task did it, of which this one was forked; so there is nothing here to undo.
    """

    status: StepStatus = StepStatus.WAITING
    attempt: int = 0
    actions: int = 0
    scheduled_at: int = 0
    dispatched_at: int = 0
    known: bool = False
    result: Any = None
    epoch: int = 0
    started_at: int = 0
    heartbeat_at: int = 0
    retry_at: int = 0
    stop_by: int = 0
    spent: int = 0
    uncertain: bool = False
    empty: bool = False
    doubted: int = 0
    discounted: int = 0
    claims: int = 0
    claim: Claim | None = None
    error: Failure | None = None
    progress: Any = None
    waits: bool = False
    handed_back: bool = False
    kept: bool = False

    @property
    def phase(self) -> Phase:
        return Phase.COMPENSATION if self.status in UNDER_COMPENSATION else Phase.ACTION

    @property
    def begun(self) -> bool:
        """Whether its action was ever dispatched, here or in the task that did it."""
        return self.actions > 0 or self.kept

    @property
    def outstanding(self) -> bool:
        return self.dispatched_at > 0


UNTOUCHED = StepState()
"""A step that waits; one value for all of them."""


@value
class Task:
    """A task's state. `version` is the number of events in its history.

    `reason` says why it stands where it does; `cause` why it was ever turned around.
    """

    status: TaskStatus
    version: int
    steps: dict[str, StepState]
    reason: str = ""
    incident: str = ""
    cause: str = ""
    beside: Circumstances = ORDINARY

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def parked(self) -> bool:
        return self.status in PARKED


def unborn(definition: Definition) -> Task:
    """The state before a task's first event."""
    return Task(TaskStatus.RUNNING, 0, dict.fromkeys(definition.steps, UNTOUCHED))


def may_need_compensation(definition: Definition, task: Task, step: str) -> bool:
    """Whether recovery must compensate this step: it has, or may have, an effect to undo."""
    state = task.steps[step]
    if state.status not in MAY_HAVE_EFFECT or state.kept:
        return False
    return definition.steps[step].undoable
