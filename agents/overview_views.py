"""How the whole system does: what `overview` answers, as pydantic models."""

from __future__ import annotations

from datetime import datetime

from headway.agents.views import TaskStatus
from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class OverviewRequest(_Model):
    """overview: how the whole system does, over the last hour and now."""


class MinuteView(_Model):
    """What happened in the minute that began at `at`.

    `failures` are attempts that failed or were given up, `retries` those of them that another
    attempt follows; `recoveries`: commands taken over from a worker that was gone, or published
    again because they were lost. `p50_ms`, `p95_ms`: of ended tasks, from submission to end, to
    within a tenth; None where none ended.
    """

    at: datetime
    submitted: int = 0
    succeeded: int = 0
    compensated: int = 0
    parked: int = 0
    failures: int = 0
    retries: int = 0
    recoveries: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None


class OverviewView(_Model):
    """`counts`: tasks by status, as they were at `counted_at`. `parked`: all that waits for a
    person, as the operation `parked` lists it, calls of tools included. `agents`: those with a live
    instance; `instances`: of all of them together. `oldest_dispatch_at`: since when the oldest
    command waits for its answer; `oldest_due_at`: when the timer that is due first goes off, which
    is late if it is past. `last_minute` is what happened since its `at`, 50 to 60 s before `now`;
    `minutes` are 60, oldest first, the last of them still going on.
    """

    now: datetime
    counted_at: datetime
    counts: dict[TaskStatus, int] = Field(default_factory=dict)
    parked: int = 0
    agents: int = 0
    instances: int = 0
    oldest_dispatch_at: datetime | None = None
    oldest_due_at: datetime | None = None
    last_minute: MinuteView
    minutes: list[MinuteView]
