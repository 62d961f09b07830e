"""From stored tasks to what people and programs see of them. Pure."""

from __future__ import annotations

from collections.abc import Container
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
import orjson
from headway.agents import views
from headway.coordinator.commands import target
from headway.coordinator.records import Loaded
from headway.sagas.step import Step
from headway.sagas.task import Phase, StepState, Task, TaskStatus


def task_view(loaded: Loaded, present: Container[str]) -> views.TaskView:
    """A task, step by step. `present` are the agents with a live instance."""
    task, definition = loaded.task, loaded.definition
    return views.TaskView(
        task=loaded.id,
        saga=definition.name,
        saga_version=definition.version,
        status=task.status.value,
        version=task.version,
        reason=task.reason,
        incident=task.incident,
        created_at=loaded.created_at,
        updated_at=loaded.updated_at,
        due_at=loaded.due_at,
        attributes=loaded.attributes,
        steps=[
            _step_view(definition.steps[name], state, present) for name, state in task.steps.items()
        ],
        actions=_open_actions(loaded),
    )


def row_view(row: asyncpg.Record) -> views.TaskRow:
    return views.TaskRow(
        task=row["id"],
        saga=row["saga"],
        saga_version=row["saga_version"],
        status=row["status"],
        version=row["version"],
        reason=row["reason"] or "",
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def history_entry(row: asyncpg.Record) -> views.HistoryEntry:
    return views.HistoryEntry(
        version=row["version"], type=row["type"], at=row["at"], data=orjson.loads(row["data"])
    )


def saga_view(row: asyncpg.Record, *, whole: bool) -> views.SagaView:
    return views.SagaView(
        name=row["name"],
        version=row["version"],
        digest=row["digest"],
        registered_at=row["registered_at"],
        definition=orjson.loads(row["body"]) if whole else None,
    )


def _step_view(step: Step, state: StepState, present: Container[str]) -> views.StepView:
    phase = state.phase
    return views.StepView(
        name=step.name,
        action=step.action,
        status=state.status.value,
        attempt=state.attempt,
        phase=cast(Any, phase.value),
        compensation=step.compensate,
        error=(
            views.FailureView(type=state.error.type, message=state.error.message)
            if state.error
            else None
        ),
        result=state.result,
        waiting_for=_waiting_for(step, state, phase, present),
        next_attempt_at=_moment(state.retry_at),
    )


def _waiting_for(step: Step, state: StepState, phase: Phase, present: Container[str]) -> str | None:
    if not state.outstanding:
        return None
    agent = target(step, phase).partition(".")[0]
    there = "" if agent in present else " (no instance is connected)"
    return f"agent {agent!r}{there}"


def _moment(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _open_actions(loaded: Loaded) -> list[str]:
    task: Task = loaded.task
    if task.parked:
        return ["retry", "resume", "settle"]
    if task.status is TaskStatus.RUNNING:
        pivot = loaded.definition.pivot
        if pivot is None or not task.steps[pivot].actions:
            return ["cancel"]
    return []
