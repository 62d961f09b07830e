"""How tasks, documents, sagas and agents look to a person: one function from a view to a table
each."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import orjson
from headway.agents.catalogue_views import AgentList, InstanceView
from headway.agents.document_views import (
    CollectionView,
    Document,
    DocumentHistory,
    DocumentPage,
    DocumentVersion,
    Written,
)
from headway.agents.limit_views import BreakerView
from headway.agents.manifest import Manifest
from headway.agents.views import (
    PARKED,
    PRIORITY,
    History,
    HistoryEntry,
    StepView,
    SubmitReceipt,
    TaskPage,
    TaskRow,
    TaskView,
    UsageView,
)
from headway.cli.delivering import delivery
from headway.cli.offers import offer
from headway.cli.output import printable
from headway.cli.standstill import awaited
from headway.cli.wording import (
    DETAIL_CHARACTERS_MAX,
    KEY_CHARACTERS_MAX,
    REASON_CHARACTERS_MAX,
    cut,
    elapsed,
    labelled,
    moment,
    status_text,
    table_of,
)
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def task(view: TaskView) -> RenderableType:
    """One task with its steps, and what a person can do about it."""
    parts: list[RenderableType] = [_headline(view)]
    if view.reason:
        parts.append(labelled("reason", view.reason))
    if view.incident:
        parts.append(labelled("incident", view.incident))
    if view.parent is not None:
        parts.append(labelled("child of", str(view.parent)))
    if view.forked_from is not None:
        parts.append(labelled("forked from", str(view.forked_from)))
    if view.forks:
        parts.append(labelled("forks", ", ".join(str(fork) for fork in view.forks)))
    if view.encrypted:
        parts.append(labelled("payloads", "encrypted"))
    if view.owner:
        parts.append(labelled("owner", view.owner))
    if view.priority != PRIORITY:
        parts.append(labelled("priority", str(view.priority)))
    if view.attributes:
        named = ", ".join(f"{key}={value}" for key, value in sorted(view.attributes.items()))
        parts.append(labelled("attributes", named))
    if view.manifest is not None:
        parts += _manifest(view.manifest, view.usage or UsageView())
    parts.append(_steps(view))
    if view.actions:
        parts.append(Text("open to you:", style="dim"))
        parts += [
            Text(f"  {command}", no_wrap=True)
            for action in view.actions
            for command in _offers(action, view)
        ]
    return Group(*parts)


def change(view: TaskView) -> RenderableType:
    """One line about a task that is being watched."""
    line = Text(f"{moment(view.updated_at)}  ")
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
    table = table_of("task", "saga", "status", "created", "for", "reason")
    for row in page.tasks:
        table.add_row(
            Text(str(row.task), no_wrap=True),
            Text(f"{row.saga} v{row.saga_version}"),
            status_text(row.status),
            Text(moment(row.created_at), no_wrap=True),
            Text(_age(row), no_wrap=True),
            Text(cut(row.reason, REASON_CHARACTERS_MAX)),
        )
    if page.cursor is None:
        return table
    return Group(table, Text(f"more: --cursor {page.cursor}", style="dim"))


def history(entries: History) -> RenderableType:
    """What happened to a task, oldest first."""
    table = table_of("version", "at", "what", "details")
    for entry in entries.entries:
        table.add_row(
            Text(str(entry.version), justify="right"),
            Text(moment(entry.at), no_wrap=True),
            Text(entry.type, no_wrap=True),
            Text(_details(entry)),
        )
    return table


def agents(listed: AgentList) -> RenderableType:
    """Who is there, how busy they are, and what waits for them."""
    table = table_of(
        "agent", "instances", "busy", "in flight", "queued", "last minute", "state", "where"
    )
    for agent in listed.agents:
        here = [one for one in agent.instances if not one.stopping]
        table.add_row(
            Text(agent.agent),
            Text(str(len(here)), style="" if here else "bold red", justify="right"),
            Text(f"{sum(i.busy for i in here)}/{sum(i.slots for i in here)}", justify="right"),
            Text(str(agent.in_flight), justify="right"),
            Text(str(agent.queued + agent.waiting), justify="right"),
            Text(f"{agent.ended} ended, {agent.failed} failed" if agent.ended else ""),
            Text("" if agent.breaker is None else delivery(agent.breaker), style="bold red"),
            Text(printable(", ".join(map(_instance, here)))),
        )
    return table


def _instance(one: InstanceView) -> str:
    """Where an instance is, and what it runs on, if it tells."""
    about = ", ".join(filter(None, (one.sdk, one.config[:8])))
    return f"{one.host}:{one.pid}" + (f" ({about})" if about else "")


def breaker(view: BreakerView) -> RenderableType:
    """Whether an agent gets its commands, on one line."""
    return Text(f"{view.agent}: {delivery(view)}")


def outcomes(counts: dict[str, int]) -> RenderableType:
    """How many tasks ended how."""
    table = table_of("outcome", "tasks")
    for status, count in sorted(counts.items()):
        table.add_row(status_text(status), Text(str(count), justify="right"))
    return table


def document(found: Document) -> RenderableType:
    """A document's version, and its body."""
    headline = Text(f"{cut(found.key, KEY_CHARACTERS_MAX)}  version {found.version}")
    headline.append(f"  since {moment(found.at)}  digest {found.digest[:12]}", style="dim")
    body = orjson.dumps(found.body, option=orjson.OPT_INDENT_2).decode()
    return Group(headline, *(Text(printable(line)) for line in body.splitlines()))


def written(made: Written) -> RenderableType:
    """The version that a write made."""
    return Text(f"version {made.version}")


def documents(page: DocumentPage) -> RenderableType:
    """A page of documents, and how to ask for the next one."""
    table = table_of("key", "version", "since", "digest")
    for row in page.documents:
        table.add_row(
            Text(cut(row.key, KEY_CHARACTERS_MAX)),
            Text(str(row.version), justify="right"),
            Text(moment(row.at), no_wrap=True),
            Text(row.digest[:12]),
        )
    if page.after is None:
        return table
    return Group(table, Text(printable(f"more: --after {shlex.quote(page.after)}"), style="dim"))


def versions(found: DocumentHistory) -> RenderableType:
    """Every version of a document, oldest first."""
    table = table_of("version", "at", "by", "body")
    for version in found.versions:
        body = "deleted" if version.deleted else orjson.dumps(version.body).decode()
        table.add_row(
            Text(str(version.version), justify="right"),
            Text(moment(version.at), no_wrap=True),
            Text(cut(_author(version), KEY_CHARACTERS_MAX)),
            Text(cut(body, DETAIL_CHARACTERS_MAX)),
        )
    return table


def collection(view: CollectionView) -> RenderableType:
    return Text(f"{view.name}: rules of version {view.version}, from {moment(view.registered_at)}")


def _author(version: DocumentVersion) -> str:
    step = "" if version.task is None else f"task {version.task} step {version.step}"
    return ", ".join(part for part in (version.by, step) if part)


def _headline(view: TaskView) -> Text:
    line = Text(f"{view.task}  {view.saga} v{view.saga_version}  ")
    line.append_text(status_text(view.status))
    line.append(f"  since {moment(view.updated_at)}")
    if view.due_at is not None and not view.settled:
        line.append(f", next look {moment(view.due_at)}", style="dim")
    return line


def _manifest(manifest: Manifest, usage: UsageView) -> Iterator[Text]:
    """The bounds of a task, and how much of them is used."""
    if manifest.goal:
        yield labelled("goal", cut(manifest.goal, REASON_CHARACTERS_MAX))
    bounds = [
        f"{what} {', '.join(names) or 'none'}"
        for what, names in (("agents", manifest.agents), ("tools", manifest.tools))
        if names is not None
    ]
    if manifest.max_steps is not None:
        bounds.append(f"{manifest.max_steps} steps")
    if manifest.max_tool_failures is not None:
        bounds.append(f"{manifest.max_tool_failures} failing calls in a row")
    if manifest.deadline is not None:
        bounds.append(f"deadline {moment(manifest.deadline)}")
    if manifest.acceptance is not None:
        bounds.append(f"its output is checked, else {manifest.on_rejection}")
    if bounds:
        yield labelled("bounds", cut("; ".join(bounds), REASON_CHARACTERS_MAX))
    tokens, cost = manifest.max_tokens, manifest.max_cost_usd
    if tokens is not None or cost is not None or usage.tokens or usage.cost_usd:
        of_tokens = "" if tokens is None else f" of {tokens}"
        of_cost = "" if cost is None else f" of {cost:g}"
        used = f"{usage.tokens}{of_tokens} tokens, {usage.cost_usd:g}{of_cost} US dollars"
        yield labelled("used", used)


def _offers(action: str, view: TaskView) -> Iterator[str]:
    """The commands for an action, to be copied."""
    if action in ("approve", "reject"):
        for step in view.steps:
            if step.kind == "approval" and step.waiting_for:
                yield offer(action, view.task, step=step.name)
    else:
        yield offer(action, view.task, step=_stuck(view.steps))


def _stuck(steps: Iterable[StepView]) -> str:
    """The one step that keeps a parked task from going on; "" if there are several, or none."""
    undone = [step.name for step in steps if step.status == "failed_to_compensate"]
    open_ = [
        step.name
        for step in steps
        if step.status in {"unknown", "failed"} or step.next_attempt_at is not None
    ]
    names = undone or open_
    return names[0] if len(names) == 1 else ""


def _steps(view: TaskView) -> Table:
    table = table_of("step", "kind", "action", "status", "attempt", "remarks")
    for step in view.steps:
        undoing = step.phase == "compensation" and step.compensation is not None
        table.add_row(
            Text(step.name),
            Text(step.kind),
            Text(str(step.compensation) if undoing else step.action),
            status_text(step.status),
            Text(str(step.attempt) if step.attempt else "", justify="right"),
            Text(_remarks(step, parked=view.status in PARKED)),
        )
    return table


def _remarks(step: StepView, *, parked: bool) -> str:
    remarks = []
    if step.error is not None:
        remarks.append(f"{step.error.type}: {step.error.message}")
    if step.waiting_for:
        remarks.append(f"waits for {awaited(step)}")
    elif step.kept_from is not None:
        remarks.append(f"kept from task {step.kept_from}")
    elif step.child is not None:
        remarks.append(f"task {step.child}")
    if step.progress is not None:
        remarks.append(f"progress {orjson.dumps(step.progress).decode()}")
    if step.next_attempt_at is not None and not parked:
        remarks.append(f"next attempt {moment(step.next_attempt_at)}")
    return cut("; ".join(remarks), REASON_CHARACTERS_MAX)


def _details(entry: HistoryEntry) -> str:
    return cut(orjson.dumps(entry.data).decode() if entry.data else "", DETAIL_CHARACTERS_MAX)


def _age(row: TaskRow) -> str:
    """How long the task took, or how old it is by now."""
    until = row.updated_at if row.status in {"succeeded", "compensated"} else datetime.now(UTC)
    return elapsed(max(0.0, (until - row.created_at).total_seconds()))
