"""A task's whole record in one document: what is asked of `export` and answered.

The format is versioned: what reads it refuses a `format_version` that it does not know.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from headway.agents.entries import Entry, Phase
from headway.agents.manifest import Manifest
from headway.agents.masks import PAYLOAD
from headway.agents.views import HistoryEntry, TaskStatus
from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ExportRequest(_Model):
    """export: all that is kept of a task, in one document."""

    task: UUID


class JournalRecord(_Model):
    """The journal of a step's action or compensation, oldest entry first. Values that were kept by
    reference are here in full, unless they are gone."""

    step: str
    phase: Phase
    entries: list[Entry]


class TaskRecord(_Model):
    """A task: its saga's definition in each version that it ran, the first one first; its input;
    its history; its journals. `status` and `version` are what the history leads to."""

    format: Literal["headway.task-record"] = "headway.task-record"
    format_version: Literal[1] = 1
    exported_at: datetime
    headway: str  # the version that wrote it
    task: UUID
    saga: str
    status: TaskStatus
    version: int
    owner: str = ""
    priority: int
    attributes: dict[str, str]
    parent: UUID | None = None
    forked_from: UUID | None = None
    manifest: Manifest | None = None
    definitions: list[dict[str, Any]] = Field(min_length=1)
    input: Annotated[Any, PAYLOAD] = None
    history: list[HistoryEntry]
    journals: list[JournalRecord]
