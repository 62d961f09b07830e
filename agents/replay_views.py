"""What replaying a task's record found, as pydantic models."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from headway.agents.entries import Phase
from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class DivergenceView(_Model):
    """The first event, number `version` of the history, that is not decided now as it was:
    what is recorded (None: no more), and what the machine does instead (None: nothing)."""

    version: int
    recorded: dict[str, Any] | None = None
    decided: dict[str, Any] | None = None


class Rerun(_Model):
    """A handler that was run over its recorded journal: `calls` of tools had their results from
    it. `difference` says what it did otherwise first; empty if nothing. `skipped`: why it was not
    run."""

    step: str
    phase: Phase
    handler: str
    calls: int = 0
    difference: str = ""
    skipped: str = ""


class ReplayReport(_Model):
    """`reproduced`: each of the `events`, in `decisions` steps of the machine, was decided as it
    was, under the definition `against`, and no handler did otherwise."""

    task: UUID
    against: str
    reproduced: bool
    events: int
    decisions: int
    divergence: DivergenceView | None = None
    handlers: list[Rerun] = Field(default_factory=list)
