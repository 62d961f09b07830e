"""How tasks, sagas and agents look to a person: one function from a view to a table each."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import orjson
from headway.agents.views import (
    AgentList,
    History,
    HistoryEntry,
    SagaList,
    SagaView,
    StepView,
    SubmitReceipt,
    TaskPage,
    TaskRow,
    TaskView,
)
from headway.cli.output import printable
from headway.sagas.definition import Definition
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

DETAIL_CHARACTERS_MAX = 160  # of a history entry's data on its line; --json shows it whole
REASON_CHARACTERS_MAX = 300

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S

_STYLES = {
    "succeeded": "green",
    "completed": "green",
    "compensated": "yellow",
    "compensating": "yellow",
    "parked": "bold red",
    "failed_to_compensate": "bold red",
    "failed": "red",
    "unknown": "magenta",
    "waiting": "dim",
    "skipped": "dim",
}


def task(view: TaskView) -> RenderableType:
    """One task with its steps, and what a person can do about it."""
    parts: list[RenderableType] = [_headline(view)]
    if view.reason:
        parts.append(_labelled("reason", view.reason))
    if view.incident:
        parts.append(_labelled("incident", view.incident))
    if view.attributes:
        named = ", ".join(f"{key}={value}" for key, value in sorted(view.attributes.items()))
        parts.append(_labelled("attributes", named))
    parts.append(_steps(view.steps))
    if view.actions:
        parts.append(Text("open to you:", style="dim"))
        parts += [_call(action, view) for action in view.actions]
    return Group(*parts)


def change(view: TaskView) -> RenderableType:
    """One line about a task that is being watched."""
    line = Text(f"{_moment(view.updated_at)}  ")
    line.append_text(status_text(view.status))
    busy = [
        f"{step.name} {step.status}"
        for step in view.steps
        if step.status in {"scheduled", "compensating", "unknown"}
    ]
    line.append(f"  {', '.join(busy)}" if busy else "")
    line.append(f"  {cut(view.reason, REASON_CHARACTERS_MAX)}" if view.reason else "")
    return line


def receipt(accepted: SubmitReceipt) -> RenderableType:
    """The id of a task that was accepted, and nothing else."""
    return Text(str(accepted.task), no_wrap=True)


def tasks(page: TaskPage) -> RenderableType:
    """A page of tasks, and how to ask for the next one."""
    table = _table("task", "saga", "status", "created", "for", "reason")
    for row in page.tasks:
        table.add_row(
            Text(str(row.task), no_wrap=True),
            Text(f"{row.saga} v{row.saga_version}"),
            status_text(row.status),
            Text(_moment(row.created_at), no_wrap=True),
            Text(_age(row), no_wrap=True),
            Text(cut(row.reason, REASON_CHARACTERS_MAX)),
        )
    if page.cursor is None:
        return table
    return Group(table, Text(f"more: --cursor {page.cursor}", style="dim"))


def history(entries: History) -> RenderableType:
    """What happened to a task, oldest first."""
    table = _table("version", "at", "what", "details")
    for entry in entries.entries:
        table.add_row(
            Text(str(entry.version), justify="right"),
            Text(_moment(entry.at), no_wrap=True),
            Text(entry.type, no_wrap=True),
            Text(_details(entry)),
        )
    return table


def sagas(listed: SagaList) -> RenderableType:
    table = _table("saga", "version", "digest", "registered")
    for saga in listed.sagas:
        table.add_row(
            Text(saga.name),
            Text(str(saga.version), justify="right"),
            Text(saga.digest[:12]),
            Text(_moment(saga.registered_at), no_wrap=True),
        )
    return table


def saga(view: SagaView) -> RenderableType:
    """One definition: its steps in an order that can run, and their policies."""
    definition = Definition.from_json(orjson.dumps(view.definition))
    headline = f"{view.name} v{view.version}  digest {view.digest[:12]}"
    table = _table("step", "action", "after", "undone by", "attempts", "limit", "remarks")
    for step in definition.steps.values():
        limit = step.timeouts.start_to_close
        table.add_row(
            Text(step.name),
            Text(step.action),
            Text(", ".join(step.after)),
            Text(step.compensate or ""),
            Text(str(step.retry.maximum_attempts or "no limit"), justify="right"),
            Text("" if limit is None else f"{limit:g} s", justify="right"),
            Text("pivot" if step.pivot else "read only" if step.read_only else ""),
        )
    return Group(Text(headline), table)


def agents(listed: AgentList) -> RenderableType:
    """Who is there, how busy they are, and what waits for them."""
    table = _table("agent", "instances", "busy", "in flight", "queued", "where")
    for agent in listed.agents:
        here = [one for one in agent.instances if not one.stopping]
        table.add_row(
            Text(agent.agent),
            Text(str(len(here)), style="" if here else "bold red", justify="right"),
            Text(f"{sum(i.busy for i in here)}/{sum(i.slots for i in here)}", justify="right"),
            Text(str(agent.in_flight), justify="right"),
            Text(str(agent.queued), justify="right"),
            Text(printable(", ".join(f"{one.host}:{one.pid}" for one in here))),
        )
    return table


def outcomes(counts: dict[str, int]) -> RenderableType:
    """How many tasks ended how."""
    table = _table("outcome", "tasks")
    for status, count in sorted(counts.items()):
        table.add_row(status_text(status), Text(str(count), justify="right"))
    return table


def _headline(view: TaskView) -> Text:
    line = Text(f"{view.task}  {view.saga} v{view.saga_version}  ")
    line.append_text(status_text(view.status))
    line.append(f"  since {_moment(view.updated_at)}")
    if view.due_at is not None and not view.settled:
        line.append(f", next look {_moment(view.due_at)}", style="dim")
    return line


def _call(action: str, view: TaskView) -> Text:
    """The command for an action, to be copied."""
    more = " STEP happened|did-not-happen" if action == "settle" else ""
    return Text(f"  headway {action} {view.task}{more}", no_wrap=True)


def _labelled(label: str, text: str) -> Text:
    return Text(f"{label}: ", style="dim").append(printable(text), style="not dim")


def _steps(steps: Iterable[StepView]) -> Table:
    table = _table("step", "action", "status", "attempt", "remarks")
    for step in steps:
        undoing = step.phase == "compensation" and step.compensation is not None
        table.add_row(
            Text(step.name),
            Text(str(step.compensation) if undoing else step.action),
            status_text(step.status),
            Text(str(step.attempt) if step.attempt else "", justify="right"),
            Text(_remarks(step)),
        )
    return table


def _remarks(step: StepView) -> str:
    remarks = []
    if step.error is not None:
        remarks.append(f"{step.error.type}: {step.error.message}")
    if step.waiting_for:
        remarks.append(f"waits for {step.waiting_for}")
    if step.next_attempt_at is not None:
        remarks.append(f"next attempt {_moment(step.next_attempt_at)}")
    return cut("; ".join(remarks), REASON_CHARACTERS_MAX)


def _details(entry: HistoryEntry) -> str:
    return cut(orjson.dumps(entry.data).decode() if entry.data else "", DETAIL_CHARACTERS_MAX)


def status_text(status: str) -> Text:
    """A status, or a kind of waiting, in its colour."""
    return Text(status.replace("_", " "), style=_STYLES.get(status, ""), no_wrap=True)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _age(row: TaskRow) -> str:
    """How long the task took, or how old it is by now."""
    until = row.updated_at if row.status in {"succeeded", "compensated"} else datetime.now(UTC)
    return elapsed(max(0.0, (until - row.created_at).total_seconds()))


def elapsed(seconds: float) -> str:
    """A time span in the units that people think in."""
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S:.0f} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"
    return f"{seconds // DAY_S:.0f} d {seconds % DAY_S // HOUR_S:.0f} h"


def cut(text: str, characters_max: int) -> str:
    """On one line, without control characters, and not longer than that."""
    shown = printable(text)
    return shown if len(shown) <= characters_max else f"{shown[: characters_max - 1]}…"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column)
    return table
