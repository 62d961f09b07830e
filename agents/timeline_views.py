"""What happened to a task, in time: what is asked of `timeline` and answered, as pydantic models.

A bar is a stretch of time in which one thing went on. Without `ended_at` it still goes on. An
attempt's `began_at` is when it was dispatched, `started_at` when a worker was known to have begun.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from headway.agents.masks import REASON
from headway.agents.views import StepStatus, TaskStatus
from pydantic import BaseModel, ConfigDict, Field

Phase = Literal["action", "compensation"]
BarKind = Literal["attempt", "wait", "retry_wait", "hold"]
Outcome = Literal[
    "running",
    "completed",
    "empty",  # a compensation that found nothing to undo
    "doubted",  # one that may have come before what it was to undo; it is done again
    "failed",
    "timed_out",
    "superseded",  # another attempt's success came first
    "approved",
    "rejected",
    "cancelled",  # the task turned around meanwhile
    "settled",  # a person said how it ended
    "over",  # a pause that is done with
]
TakeOverKind = Literal["claimed", "republished", "handed_back"]
MarkKind = Literal[
    "submitted",
    "fork",  # `name` is the task of which it keeps results, `step` the first one done anew
    "signal",
    "approval",
    "rejection",
    "hand_off",
    "skipped",
    "condition_failed",
    "hold",
    "cancel",
    "recovery",  # the task turned around: from here on it is undone
    "late_success",
    "output_rejected",
    "move",
    "parked",
    "failed_to_compensate",
    "resume",
    "settle",
    "succeeded",
    "compensated",
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class TimelineRequest(_Model):
    """timeline: what happened to a task, as bars and marks."""

    task: UUID


class TakeOverView(_Model):
    """An attempt went on elsewhere: `claimed` by a worker from one that was gone, `republished`
    because its command was lost, or `handed_back` by a worker that was told to stop."""

    at: datetime
    kind: TakeOverKind
    worker: str = ""
    epoch: int = 0


class BarView(_Model):
    """kind: an `attempt` by an agent or a child task; a `wait` for a person, a signal or the time;
    a `retry_wait` until the next attempt, due at `due_at`; a `hold`, until a person looks.

    `worker` and `started_at` where they are known. `late`: it ended after the task had gone on
    without it. `error` is a type, never a text.
    """

    kind: BarKind
    phase: Phase = "action"
    attempt: int = 0
    agent: str = ""
    worker: str = ""
    child: UUID | None = None
    began_at: datetime
    started_at: datetime | None = None
    due_at: datetime | None = None
    ended_at: datetime | None = None
    outcome: Outcome = "running"
    error: str = ""
    late: bool = False
    reason: Annotated[str, REASON] = ""  # of a hold
    take_overs: list[TakeOverView] = Field(default_factory=list)


class StepLine(_Model):
    """A step with its bars, in the order in which they began. `handed_off_by`: the step that
    appended it to the plan; `kept_from`: the task that did it, of which this one was forked."""

    name: str
    kind: str
    action: str = ""
    compensation: str | None = None
    after: list[str] = Field(default_factory=list)
    pivot: bool = False
    handed_off_by: str = ""
    kept_from: UUID | None = None
    status: StepStatus
    bars: list[BarView] = Field(default_factory=list)


class CompensationLink(_Model):
    """One compensation of the chain, in the order in which they are, or will be, begun.

    It undoes the action of `step`; `empty`: there was nothing to undo.
    """

    order: int
    step: str
    compensation: str
    undoes: str
    status: Literal["waiting", "compensating", "compensated", "failed_to_compensate"]
    empty: bool = False
    attempts: int = 0
    began_at: datetime | None = None
    ended_at: datetime | None = None


class MarkView(_Model):
    """Something that happened at a moment. `name` is what it is about: a signal's name, a hold's
    kind, a version, steps. `by` and `reason` as a person gave them, or the machine's own reason."""

    at: datetime
    kind: MarkKind
    step: str = ""
    name: str = ""
    by: str = ""
    reason: Annotated[str, REASON] = ""


class TimelineView(_Model):
    """`now` is the coordinator's clock: where open bars end for the moment. `settled_at`: since
    when the task is ended, or parked. `holds` are those of the whole task; a step's are among its
    bars."""

    task: UUID
    saga: str
    saga_version: int
    status: TaskStatus
    version: int
    now: datetime
    began_at: datetime
    settled_at: datetime | None = None
    steps: list[StepLine]
    holds: list[BarView] = Field(default_factory=list)
    compensations: list[CompensationLink] = Field(default_factory=list)
    marks: list[MarkView] = Field(default_factory=list)
