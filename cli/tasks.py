"""Commands that look at tasks: status, watch, list, history, parked."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, get_args
from uuid import UUID

import typer
from headway.agents.client import Client
from headway.agents.errors import NotFound
from headway.agents.views import PAGE_LIMIT_MAX, History, TaskStatus, TaskView
from headway.agents.waiting import UNKNOWN_FOR_S
from headway.cli import completing, output, standstill, tables, waiting
from headway.cli.failures import BadInput, Exit
from headway.cli.parsing import attributes_from, in_utc, task_id
from headway.cli.terminal import Terminal, command
from headway.cli.watching import watch_live

PANEL = "Look at tasks"
PAGE = 50
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)

TaskId = Annotated[
    UUID,
    typer.Argument(
        metavar="TASK", help="The task's id.", parser=task_id, autocompletion=completing.tasks
    ),
]
SagaName = Annotated[
    str | None,
    typer.Option("--saga", help="Only tasks of this saga.", autocompletion=completing.sagas),
]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="Only tasks of sagas that have steps for this agent.")
]
Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="Only tasks with this attribute."),
]
Statuses = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        "-s",
        metavar="STATUS",
        help=f"One of {', '.join(STATUSES)}.",
        autocompletion=completing.statuses,
    ),
]
Since = Annotated[
    datetime | None, typer.Option(help="Only tasks created after this, in local time.")
]
Until = Annotated[
    datetime | None, typer.Option(help="Only tasks created before this, in local time.")
]
Limit = Annotated[int, typer.Option(min=1, max=PAGE_LIMIT_MAX, help="Tasks on a page.")]
Cursor = Annotated[str | None, typer.Option(help="The next page, as the last one named it.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    register = command(app, PANEL)
    register(status)
    register(watch)
    command(app, PANEL, name="list")(list_tasks)
    register(history)
    register(parked)


def status(terminal: Terminal, task: TaskId) -> None:
    """Show a task: its steps, whom it waits for, and what a person can do."""
    terminal.show(terminal.ask(lambda client: client.status(task)), tables.task)


def watch(terminal: Terminal, task: TaskId) -> None:
    """Show a task until it ends or is parked: in a terminal as a live timeline, else line by line.

    Exits with 0 if the task succeeded, with 1 if it ended otherwise or is parked.
    """

    live = output.is_for_a_person() and not terminal.as_json

    async def follow(client: Client) -> TaskView:
        if not terminal.as_json:
            await _introduce(client, task)
        if live:
            return await watch_live(client, task)
        async with standstill.told(client, task):
            async for view in client.watch(task):
                terminal.show(view, tables.change)
                last = view
        return last

    seen = terminal.ask(follow)
    exit_by_outcome([seen.status])


async def _introduce(client: Client, task: UUID) -> None:
    try:
        await client.status(task)
    except NotFound:
        output.narrate(f"no task {task} is known; it may come within {UNKNOWN_FOR_S:g} s")
    output.narrate(f"watching {task}; Ctrl-C stops watching, not the task")


def list_tasks(  # noqa: PLR0913, PLR0917  # each is a word of the command
    terminal: Terminal,
    status: Statuses = None,
    saga: SagaName = None,
    agent: AgentName = None,
    attribute: Attributes = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> None:
    """List tasks, newest first."""
    meant = filter_of(status, saga, agent, attribute, since, until)
    page = terminal.ask(lambda client: client.list(**meant, limit=limit, cursor=cursor))
    terminal.show(page, tables.tasks)


def filter_of(
    status: list[str] | None,
    saga: str | None,
    agent: str | None,
    attribute: list[str] | None,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, Any]:
    """The fields of a `views.TaskFilter` that these flags mean; BadInput names the one that does
    not fit."""
    return {
        "status": statuses_from(status),
        "saga": saga,
        "agent": agent,
        "attributes": attributes_from(attribute),
        "created_after": in_utc(since),
        "created_before": in_utc(until),
    }


def history(terminal: Terminal, task: TaskId) -> None:
    """Show all that happened to a task, oldest first.

    --json writes its whole record, for `headway replay`: definition, input, history, journals.
    """
    if terminal.as_json:
        output.write_json(terminal.ask(lambda client: client.export(task)))
        return
    entries = terminal.ask(lambda client: client.history(task))
    output.data_console().print(tables.history(History(task=task, entries=entries)))


def parked(
    terminal: Terminal,
    saga: SagaName = None,
    task: Annotated[UUID | None, typer.Option(help="Only what waits in this task.")] = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> None:
    """List all that waits for a person: why, since when, and what to type about it."""
    page = terminal.ask(
        lambda client: client.parked(saga=saga, task=task, limit=limit, cursor=cursor)
    )
    if not page.waiting and page.cursor is None and not terminal.as_json:
        output.narrate("nothing waits for a person")
        return
    terminal.show(page, waiting.queue)


def exit_by_outcome(statuses: list[TaskStatus]) -> None:
    """End with OTHERWISE unless every task succeeded."""
    if any(status != "succeeded" for status in statuses):
        raise typer.Exit(Exit.OTHERWISE)


def statuses_from(names: list[str] | None) -> list[TaskStatus]:
    """The statuses that were named, in the order in which they are declared."""
    unknown = set(names or ()).difference(STATUSES)
    if unknown:
        raise BadInput(f"no status is called {min(unknown)!r}: use {', '.join(STATUSES)}")
    return [status for status in STATUSES if status in (names or ())]
