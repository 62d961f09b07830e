"""What is asked of `fork` and answered, as pydantic models."""

from __future__ import annotations

from uuid import UUID

from headway.agents.views import SubmitReceipt, TaskRequest
from pydantic import Field


class ForkRequest(TaskRequest):
    """fork: begin a new task of the same saga version with the same input, that keeps the results
    of all steps which do not come after `step`. With the id `new_task` asking again is harmless."""

    step: str = Field(min_length=1)
    new_task: UUID | None = None


class ForkReceipt(SubmitReceipt):
    """The new task. `kept` are the steps whose results it has from `forked_from`; `anew` are the
    others, done under operation ids of its own."""

    forked_from: UUID
    kept: list[str]
    anew: list[str]
