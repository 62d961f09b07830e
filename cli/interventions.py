"""Commands by which a person steps in: with a word, a signal, another try, or another version."""

from __future__ import annotations

import getpass
import os
import platform
from typing import Annotated, Literal
from uuid import UUID

import typer
from headway.cli import output, tables, waiting
from headway.cli.failures import BadInput
from headway.cli.parsing import json_from
from headway.cli.tasks import TaskId
from headway.cli.terminal import Terminal, command

PANEL = "Step in"

Reason = Annotated[
    str, typer.Option("--reason", "-r", help="Why; it is kept in the task's history.")
]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who says so; else you, at this host.")
]
Waiting = Annotated[str | None, typer.Argument(metavar="STEP", help="The step that waits.")]
Invocation = Annotated[
    UUID | None,
    typer.Option(metavar="ID", help="Instead of a step: the call of a tool that waits."),
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    register = command(app, PANEL)
    register(approve)
    register(reject)
    register(signal)
    register(cancel)
    register(retry)
    register(settle)
    register(resume)
    register(move)
    register(fork)


def approve(
    terminal: Terminal,
    task: TaskId,
    step: Waiting = None,
    invocation: Invocation = None,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Approve a step that waits for that, or the call of a tool."""
    _check_one_of(step, invocation)
    view = terminal.ask(
        lambda client: client.approve(
            task, step, invocation=invocation, reason=reason, by=by or person()
        )
    )
    terminal.show(view, tables.task)


def reject(
    terminal: Terminal,
    task: TaskId,
    step: Waiting = None,
    invocation: Invocation = None,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Reject a step that waits for approval, or the call of a tool."""
    _check_one_of(step, invocation)
    view = terminal.ask(
        lambda client: client.reject(
            task, step, invocation=invocation, reason=reason, by=by or person()
        )
    )
    terminal.show(view, tables.task)


def signal(
    terminal: Terminal,
    task: TaskId,
    name: Annotated[str, typer.Argument(help="What the task's step waits for.")],
    payload: Annotated[
        str | None,
        typer.Argument(metavar="JSON", help="What it brings; `-` reads standard input."),
    ] = None,
    id: Annotated[
        str | None, typer.Option(help="The signal's id: sending it again changes nothing.")
    ] = None,
    by: By = None,
) -> None:
    """Send a signal to a task, for the step that waits for it now or later."""
    brought = json_from(payload, "the payload")
    view = terminal.ask(
        lambda client: client.signal(task, name, brought, id=id or "", by=by or person())
    )
    terminal.show(view, tables.task)


def cancel(terminal: Terminal, task: TaskId, reason: Reason = "", by: By = None) -> None:
    """Stop a task and undo what it did so far; refused past its pivot."""
    view = terminal.ask(lambda client: client.cancel(task, reason, by=by or person()))
    terminal.show(view, tables.task)


def retry(
    terminal: Terminal,
    task: TaskId,
    step: Annotated[
        str | None, typer.Argument(help="The step to try again; all that are stuck, without it.")
    ] = None,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Give the stuck steps of a parked task another series of attempts."""
    view = terminal.ask(lambda client: client.retry(task, step, reason=reason, by=by or person()))
    terminal.show(view, tables.task)


def settle(  # noqa: PLR0913, PLR0917  # each is a word of the command
    terminal: Terminal,
    task: TaskId,
    step: Annotated[str, typer.Argument(help="The step that is stuck.")],
    outcome: Annotated[
        Literal["happened", "did-not-happen"],
        typer.Argument(help="How its action, its compensation or its call really ended."),
    ],
    result: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The result of an action or call that happened."),
    ] = None,
    call: Annotated[
        str | None, typer.Option(metavar="KEY", help="Instead of the step: a tool's call in it.")
    ] = None,
    phase: Annotated[
        Literal["action", "compensation"], typer.Option(help="Of the step, with --call.")
    ] = "action",
    reason: Reason = "",
    by: By = None,
) -> None:
    """State how a stuck step really ended, after looking at the downstream system.

    `happened`: the action or call took effect, or the compensation is done.
    `did-not-happen`: the action or call left no effect behind.
    """
    known = json_from(result, "--result")
    stated: Literal["happened", "did_not_happen"] = (
        "happened" if outcome == "happened" else "did_not_happen"
    )
    if call is None:
        view = terminal.ask(
            lambda client: client.settle(task, step, stated, known, reason, by=by or person())
        )
        terminal.show(view, tables.task)
        return
    settled = terminal.ask(
        lambda client: client.settle_call(
            task, step, call, stated, known, reason, phase=phase, by=by or person()
        )
    )
    terminal.show(settled, lambda _: waiting.settled(task, call))


def resume(terminal: Terminal, task: TaskId, reason: Reason = "", by: By = None) -> None:
    """Let a parked task go on from where it stands."""
    view = terminal.ask(lambda client: client.resume(task, reason=reason, by=by or person()))
    terminal.show(view, tables.task)


def move(
    terminal: Terminal,
    task: TaskId,
    to: Annotated[int, typer.Option("--to", min=1, help="The version of its saga to go on under.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only find out whether its history fits.")
    ] = False,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Have a task go on under another version of its saga, if its history fits that one."""
    view = terminal.ask(
        lambda client: client.move(task, to, dry_run=dry_run, reason=reason, by=by or person())
    )
    if dry_run:
        output.narrate(f"the history of {task} fits version {to}; nothing was changed")
    terminal.show(view, tables.task)


def fork(
    terminal: Terminal,
    task: TaskId,
    step: Annotated[str, typer.Option("--from", metavar="STEP", help="The first step to do anew.")],
    new_task: Annotated[
        UUID | None, typer.Option("--task", help="The new task's id: forking again is harmless.")
    ] = None,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Begin a new task that keeps what another one finished, and does it anew from a step on.

    It has the same saga version and input. It never undoes what it keeps: that stays with the
    task that did it, which must have ended or be parked.
    """
    receipt = terminal.ask(
        lambda client: client.fork(task, step, new_task=new_task, reason=reason, by=by or person())
    )
    keeps = ", ".join(receipt.kept) or "nothing"
    output.narrate(f"kept from {task}: {keeps}; done anew: {', '.join(receipt.anew)}")
    terminal.show(receipt, tables.receipt)


def person() -> str:
    """Who steps in, for the task's history: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user often has no name
        user = str(os.getuid())
    return f"{user}@{platform.node()}"


def _check_one_of(step: str | None, invocation: UUID | None) -> None:
    if (step is None) == (invocation is None):
        raise BadInput(
            "name either the step that waits, or with --invocation the call; "
            "`headway parked` lists both"
        )
