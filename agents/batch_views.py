"""What the API takes and answers about one act on many tasks (`batch`), as pydantic models."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from headway.agents.views import TaskFilter
from pydantic import BaseModel, ConfigDict, Field

BATCH_MAX = 200  # tasks in one request

BatchAction = Literal["cancel", "retry", "resume"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BatchRequest(_Model):
    """batch: do the same to each task that a filter means, newest first, at most `limit` of them;
    the cursor goes on with the next ones. With `dry_run` only find out what would be done.

    A filter without statuses means those of the statuses that the action can be for. Which tasks it
    means is found out for each request anew: a task that came after the first page is not among
    them, and one that is otherwise by now is judged as it is then. So asking again does no harm.
    """

    action: BatchAction
    filter: TaskFilter
    dry_run: bool = False
    by: str = ""
    reason: str = ""
    limit: int = Field(default=100, ge=1, le=BATCH_MAX)
    cursor: str | None = None


class BatchRefusal(_Model):
    """A task to which it was not done. `code` is an HTTP-like status; 503: nobody knows yet."""

    task: UUID
    reason: str
    code: int


class BatchReply(_Model):
    """Of this request: how many tasks the filter meant, to how many of them it was done, or would
    be, and the others with the reason. `cursor` goes on; None: there are no more."""

    matched: int
    done: int
    tasks: list[UUID]
    refused: list[BatchRefusal]
    cursor: str | None = None
