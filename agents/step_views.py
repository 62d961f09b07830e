"""One step of a task, whole: what is asked of `step` and answered, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from headway.agents.masks import PAYLOAD
from headway.agents.timeline_views import BarView, Phase
from headway.agents.views import FailureView, StepStatus
from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StepLook(_Model):
    """step: what went into a step and came out; of its action or its compensation, or of the one
    that it is in."""

    task: UUID
    step: str
    phase: Phase | None = None


class StepDetail(_Model):
    """A step in one phase. `input` and `results` (of the steps before) are what its agent gets;
    `result` is the action's, if it is known; `error` is that of the latest attempt that failed.
    `attempts` are the bars of that phase, oldest first; `operation` is the id that all of them have
    in common."""

    task: UUID
    step: str
    phase: Phase
    kind: str
    action: str
    status: StepStatus
    operation: UUID
    input: Annotated[Any, PAYLOAD] = None
    results: Annotated[dict[str, Any], PAYLOAD] = Field(default_factory=dict)
    result: Annotated[Any, PAYLOAD] = None
    progress: Annotated[Any, PAYLOAD] = None
    error: FailureView | None = None
    attempts: list[BarView] = Field(default_factory=list)
