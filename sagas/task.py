"""A task's state: what the fold of its history gives. Times are milliseconds since 1970, UTC.

A step is *active* while an attempt of it is outstanding or a further one is due. `violations`
states what must hold of any state; it is asserted by tests and never consulted for decisions.
States and sets of statuses are tuples: that is what Python makes and asks fastest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headway.sagas.definition import Definition


class TaskStatus(StrEnum):
    RUNNING = "running"
    COMPENSATING = "compensating"
    SUCCEEDED = "succeeded"
    COMPENSATED = "compensated"
    PARKED = "parked"
    FAILED_TO_COMPENSATE = "failed_to_compensate"


class StepStatus(StrEnum):
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
        claims, claim: how often the attempt was claimed, and by whom last.
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
    claims: int = 0
    claim: Claim | None = None
    error: Failure | None = None

    @property
    def phase(self) -> Phase:
        return Phase.COMPENSATION if self.status in UNDER_COMPENSATION else Phase.ACTION

    @property
    def outstanding(self) -> bool:
        return self.dispatched_at > 0


UNTOUCHED = StepState()
"""A step that waits; one value for all of them."""


class Task(NamedTuple):
    """A task's state. `version` is the number of events in its history.

    `reason` says why it stands where it does; `cause` why it was ever turned around.
    """

    status: TaskStatus
    version: int
    steps: dict[str, StepState]
    reason: str = ""
    incident: str = ""
    cause: str = ""

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
    return (
        task.steps[step].status in MAY_HAVE_EFFECT and definition.steps[step].compensate is not None
    )


def violations(definition: Definition, task: Task) -> list[str]:
    """What does not hold of this state though it must; empty when all is well."""
    found = [
        f"step {name}: {wrong}"
        for name, state in task.steps.items()
        for wrong in _step_violations(task, state)
    ]
    if list(task.steps) != list(definition.steps):
        found.append("the steps are not the definition's")
    active = [name for name, state in task.steps.items() if state.status in ACTIVE]
    if task.ended or task.parked:
        found += [f"step {name} is active in a task that is {task.status}" for name in active]
    elif not active and task.version > 0:
        found.append(f"nothing is outstanding and no timer is set in a task that is {task.status}")
    if task.status is TaskStatus.SUCCEEDED:
        found += [
            f"step {name} is {state.status} in a task that succeeded"
            for name, state in task.steps.items()
            if state.status is not StepStatus.COMPLETED
        ]
    if task.status is TaskStatus.COMPENSATED:
        found += [
            f"step {name} may have an effect left in a task that is compensated"
            for name in task.steps
            if may_need_compensation(definition, task, name)
        ]
    for name, state in task.steps.items():
        step = definition.steps[name]
        if state.actions and any(
            task.steps[before].actions == 0 for before in definition.ancestors[name]
        ):
            found.append(f"step {name} was dispatched before a step that it comes after")
        if state.status in UNDER_COMPENSATION and step.compensate is None:
            found.append(f"step {name} is under compensation but has none")
    return found


def _step_violations(task: Task, state: StepState) -> list[str]:
    found = []
    if state.outstanding and state.retry_at:
        found.append("an attempt is outstanding and another one is due")
    if state.status in ACTIVE and not state.outstanding and not state.retry_at:
        found.append("active without an attempt outstanding or due")
    if state.status not in ACTIVE and (state.outstanding or state.retry_at):
        found.append("an attempt is outstanding or due in a step that is not active")
    if state.status is StepStatus.COMPLETED and not state.known:
        found.append("completed without a result")
    if state.status is StepStatus.FAILED and state.uncertain:
        found.append("failed though its effect is uncertain")
    if state.status is StepStatus.COMPENSATING and task.status is TaskStatus.RUNNING:
        found.append("compensating in a task that is running")
    if state.status is StepStatus.SKIPPED and state.actions:
        found.append("skipped though it was dispatched")
    if state.status is StepStatus.SCHEDULED and state.attempt != state.actions:
        found.append("its attempt is not the last one dispatched")
    return found
