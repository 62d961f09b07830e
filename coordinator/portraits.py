"""From stored tasks to what people and programs see of them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import asyncpg
import orjson
from headway.agents import catalogue_views, views
from headway.agents.codec import is_sealed_body
from headway.agents.identity import operation_id
from headway.agents.step_views import StepDetail
from headway.agents.timeline_views import BarView
from headway.coordinator.census import Counted
from headway.coordinator.commands import agent_of
from headway.coordinator.family import child_id
from headway.coordinator.records import Loaded
from headway.sagas.checks import results_of
from headway.sagas.circumstances import OUTPUT
from headway.sagas.deadlines import wakes_at
from headway.sagas.recovery import stuck
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
        parent=None if loaded.parent is None else loaded.parent.task,
        forked_from=forked_from(task),
        owner=loaded.owner,
        encrypted=is_sealed_body(loaded.input),
        manifest=loaded.manifest,
        created_at=loaded.created_at,
        updated_at=loaded.updated_at,
        due_at=loaded.due_at,
        attributes=loaded.attributes,
        priority=loaded.priority,
        steps=[
            _step_view(loaded, definition.steps[name], state, present)
            for name, state in task.steps.items()
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
        owner=row["owner"],
    )


def history_entry(row: asyncpg.Record) -> views.HistoryEntry:
    return views.HistoryEntry(
        version=row["version"], type=row["type"], at=row["at"], data=orjson.loads(row["data"])
    )


def saga_view(row: asyncpg.Record) -> catalogue_views.SagaView:
    """A saga with its definition."""
    return _saga_view(row).model_copy(update={"definition": orjson.loads(row["body"])})


def saga_in_list(row: asyncpg.Record, counted: Counted) -> catalogue_views.SagaView:
    """A saga with the counts of its tasks."""
    counts = dict(counted.of(row["name"], row["version"]))
    return _saga_view(row).model_copy(update={"counts": counts})


def _saga_view(row: asyncpg.Record) -> catalogue_views.SagaView:
    return catalogue_views.SagaView(
        name=row["name"],
        version=row["version"],
        digest=row["digest"],
        registered_at=row["registered_at"],
    )


def forked_from(task: Task) -> UUID | None:
    """The task of which this one keeps results."""
    return UUID(task.beside.forked_from) if task.beside.forked_from else None


def _step_view(
    loaded: Loaded, step: Step, state: StepState, present: Container[str]
) -> views.StepView:
    phase = state.phase
    has_child = step.kind == "child" and state.actions > 0
    child = child_id(loaded.id, step.name, state.actions) if has_child else None
    return views.StepView(
        name=step.name,
        action=step.action,
        kind=step.kind,
        child=child,
        status=state.status.value,
        attempt=state.attempt,
        phase=cast(Any, phase.value),
        compensation=step.compensate,
        error=_failure_view(state),
        result=state.result,
        kept_from=forked_from(loaded.task) if state.kept else None,
        waiting_for=_waiting_for(step, state, child, present),
        progress=state.progress,
        next_attempt_at=_moment(state.retry_at),
    )


def step_detail(loaded: Loaded, name: str, phase: Phase, bars: Sequence[BarView]) -> StepDetail:
    """One step in one phase; `bars` are all of the step's."""
    step, state = loaded.definition.steps[name], loaded.task.steps[name]
    results = {
        before: loaded.task.steps[before].result
        for before in loaded.definition.steps
        if before in loaded.definition.ancestors[name] and loaded.task.steps[before].known
    }
    asked = step.kind in ("action", "child")  # others are not given anything
    own = step.input if step.input is not None else orjson.loads(loaded.input)
    return StepDetail(
        task=loaded.id,
        step=name,
        phase=cast(Any, phase.value),
        kind=step.kind,
        action=(step.action if phase is Phase.ACTION else step.compensate) or "",
        status=state.status.value,
        operation=operation_id(loaded.id, name, phase.value),
        input=own if asked else None,
        results=results,
        result=state.result,
        progress=state.progress,
        error=_failure_view(state),
        attempts=[bar for bar in bars if bar.phase == phase.value],
    )


def _failure_view(state: StepState) -> views.FailureView | None:
    if state.error is None:
        return None
    return views.FailureView(type=state.error.type, message=state.error.message)


def _waiting_for(
    step: Step, state: StepState, child: UUID | None, present: Container[str]
) -> str | None:
    if not state.outstanding:
        return None
    match step.kind:
        case "approval":
            return "a person's approval"
        case "wait":
            return f"signal {step.waits_for!r}"
        case "sleep":
            woken = datetime.fromtimestamp((wakes_at(step, state) or 0) / 1000, UTC)
            return f"the time, until {woken:%Y-%m-%d %H:%M:%SZ}"
        case "child":
            return f"task {child}"
        case _ if state.waits:
            return "a person's approval of a call"
        case _:
            agent = agent_of(step, state.phase)
            there = "" if agent in present else f" ({views.ABSENT})"
            return f"agent {agent!r}{there}"


def _moment(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _open_actions(loaded: Loaded) -> list[str]:
    task: Task = loaded.task
    pivot = loaded.definition.pivot
    returns = pivot is None or not task.steps[pivot].begun
    cancel = ["cancel"] if returns else []
    if task.parked:
        kept = _kept_waiting(task)
        again = ["retry"] if kept else []
        settle = ["settle"] if kept else []
        forward = task.status is TaskStatus.PARKED
        return [*again, "resume", *settle, *(cancel if forward else [])]
    if task.status is TaskStatus.RUNNING:
        return [*(["approve", "reject"] if _approvals(loaded) else []), *cancel]
    return []


def _kept_waiting(task: Task) -> tuple[str, ...]:
    """The steps that a person may have tried again, or state the end of; empty where a task is held
    for what was done already: a hand-off, an output, a deadline."""
    held = task.beside.hold
    if held is not None and held.step and task.steps[held.step].retry_at:
        return (held.step,)
    return stuck(task)


def _redone(loaded: Loaded) -> str:
    """The step that gave an output which was not accepted, if it can be done again; else ""."""
    held, last = loaded.task.beside.hold, loaded.definition.last
    if held is None or held.kind != OUTPUT or len(last) != 1:
        return ""
    return last[0] if loaded.definition.steps[last[0]].kind == "action" else ""


def _approvals(loaded: Loaded) -> list[str]:
    """The steps that wait for a person's approval."""
    return [
        name
        for name, state in loaded.task.steps.items()
        if state.outstanding and loaded.definition.steps[name].kind == "approval"
    ]


def waiting_views(loaded: Loaded) -> list[views.WaitingView]:
    """What of a task waits for a person, but for single calls of tools."""
    task, found = loaded.task, []
    if task.parked:
        held, redone = task.beside.hold, _redone(loaded)
        found.append(
            views.WaitingView(
                task=loaded.id,
                saga=loaded.definition.name,
                kind=cast(Any, task.status.value),
                step=redone or (held.step if held else ", ".join(stuck(task))),
                reason=task.reason,
                since=loaded.updated_at,
                actions=[*(["retry"] if redone else []), *_open_actions(loaded)],
                context=_context(loaded, task.reason),
            )
        )
    for name in _approvals(loaded):
        found.append(
            views.WaitingView(
                task=loaded.id,
                saga=loaded.definition.name,
                kind="approval",
                step=name,
                reason=f"step {name!r} waits for a person's approval",
                since=_moment(task.steps[name].dispatched_at) or loaded.updated_at,
                actions=["approve", "reject"],
                context=_context(loaded, name),
            )
        )
    return found


def _context(loaded: Loaded, about: str) -> str:
    """A digest of what a person decides on: the input, the results so far, and what it is about."""
    known = orjson.dumps([about, results_of(loaded.task)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(loaded.input_digest + known).hexdigest()[:16]
