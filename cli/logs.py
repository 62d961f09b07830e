"""Commands that look back: the journal of a step, and who did what, when and why."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import typer
from headway.agents.client import Client
from headway.agents.entries import Entry
from headway.cli import output, traces
from headway.cli.parsing import in_utc, task_id
from headway.cli.tasks import PANEL, TaskId
from headway.cli.terminal import Terminal, command


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    register = command(app, PANEL)
    register(journal)
    register(audit)


def journal(
    terminal: Terminal,
    task: TaskId,
    step: Annotated[str, typer.Argument(help="The step whose agent kept it.")],
    phase: Annotated[
        Literal["action", "compensation"], typer.Option(help="Which journal of the step.")
    ] = "action",
) -> None:
    """Show what a step did, call by call; --json has what was passed and returned, too."""

    async def read(client: Client) -> list[Entry]:
        entries = []
        async for entry in client.journal(task, step, phase):
            if terminal.as_json:
                output.write_json(entry)
            else:
                entries.append(traces.in_short(entry))
        return entries

    entries = terminal.ask(read)
    if entries:
        output.data_console().print(traces.journal(entries))
    elif not terminal.as_json:
        output.narrate(f"the {phase} of step {step!r} has no journal")


def audit(
    terminal: Terminal,
    task: Annotated[
        UUID | None,
        typer.Argument(metavar="TASK", help="A task's id; all tasks, without it.", parser=task_id),
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only from this moment on, in local time.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(help="Only before this moment, in local time.")
    ] = None,
) -> None:
    """Show who did what, when and why, oldest first; --json exports it, an entry a line.

    Every tool call, gate, approval and manual act is in it.
    """

    first, last = in_utc(since), in_utc(until)

    async def export(client: Client) -> None:
        async for entry in client.audit(task, since=first, until=last):
            terminal.show(entry, traces.act)

    terminal.ask(export)
