"""What is asked of the feed on HTTP (`GET /api/feed`) and what its events hold.

On NATS the feed is the subjects `hw.feed.<saga>.<task>.<kind>`, and the stream `HW_FEED`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from headway.agents.subjects import TOKEN
from headway.agents.views import TaskStatus
from pydantic import BaseModel, ConfigDict, Field

NewsKind = Literal[
    "submitted",
    "progressed",
    "succeeded",
    "compensating",
    "compensated",
    "parked",
    "failed_to_compensate",
]
POSITION_MAX_CHARS = 64


class FeedRequest(BaseModel):
    """The news of all tasks, of a saga's, or of one; of these kinds, or of all.

    `last_event_id` goes on after that event, as the header `Last-Event-ID` does.
    """

    model_config = ConfigDict(extra="forbid")

    task: UUID | None = None
    saga: Annotated[str, Field(pattern=f"^{TOKEN.pattern}$")] | None = None
    kind: list[NewsKind] = Field(default_factory=list)
    last_event_id: str | None = Field(default=None, max_length=POSITION_MAX_CHARS)


class News(BaseModel):
    """The data of an event: where a task stood then. Of two, the one with the lower `version` is
    older, in whatever order they come."""

    model_config = ConfigDict(extra="forbid")

    task: UUID
    saga: str
    status: TaskStatus
    version: int
    at: datetime
