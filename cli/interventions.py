"""Commands by which a person steps in: cancel, retry, settle, resume."""

from __future__ import annotations

import getpass
import os
import platform
from typing import Annotated, Literal

import typer
from headway.cli import tables
from headway.cli.parsing import json_from
from headway.cli.tasks import TaskId
from headway.cli.terminal import Terminal, command

PANEL = "Step in"

Reason = Annotated[
    str, typer.Option("--reason", "-r", help="Why; it is kept in the task's history.")
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    register = command(app, PANEL)
    register(cancel)
    register(retry)
    register(settle)
    register(resume)


def cancel(terminal: Terminal, task: TaskId, reason: Reason = "") -> None:
    """Stop a task and undo what it did so far; refused past its pivot."""
    view = terminal.ask(lambda client: client.cancel(task, reason, by=person()))
    terminal.show(view, tables.task)


def retry(
    terminal: Terminal,
    task: TaskId,
    step: Annotated[
        str | None, typer.Argument(help="The step to try again; all that are stuck, without it.")
    ] = None,
    reason: Reason = "",
) -> None:
    """Give the stuck steps of a parked task another series of attempts."""
    view = terminal.ask(lambda client: client.retry(task, step, reason=reason, by=person()))
    terminal.show(view, tables.task)


def settle(
    terminal: Terminal,
    task: TaskId,
    step: Annotated[str, typer.Argument(help="The step that is stuck.")],
    outcome: Annotated[
        Literal["happened", "did-not-happen"],
        typer.Argument(help="How its action, or its compensation, really ended."),
    ],
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="The result of an action that happened.")
    ] = None,
    reason: Reason = "",
) -> None:
    """State how a stuck step really ended, after looking at the downstream system.

    `happened`: the action took effect, or the compensation is done.
    `did-not-happen`: the action left no effect behind.
    """
    known = json_from(result, "--result")
    stated: Literal["happened", "did_not_happen"] = (
        "happened" if outcome == "happened" else "did_not_happen"
    )
    view = terminal.ask(
        lambda client: client.settle(task, step, stated, known, reason, by=person())
    )
    terminal.show(view, tables.task)


def resume(terminal: Terminal, task: TaskId, reason: Reason = "") -> None:
    """Let a parked task go on from where it stands."""
    view = terminal.ask(lambda client: client.resume(task, reason=reason, by=person()))
    terminal.show(view, tables.task)


def person() -> str:
    """Who steps in, for the task's history: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        user = str(os.getuid())
    return f"{user}@{platform.node()}"
