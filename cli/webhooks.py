"""Commands for webhooks: addresses where other systems send signals for tasks."""

from __future__ import annotations

from typing import Annotated

import typer
from headway.agents.webhook_views import OVERLAP_S, WebhookList, WebhookMade, WebhookView
from headway.cli import output
from headway.cli.interventions import By, person
from headway.cli.output import printable
from headway.cli.terminal import Terminal, command
from headway.cli.wording import moment, table_of
from rich.console import RenderableType
from rich.text import Text

PANEL = "Keep it safe"
HOUR_S = 3_600

Name = Annotated[str, typer.Argument(help="Its name, and the end of its address.")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; the audit log keeps it.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `webhooks`."""
    group = typer.Typer(
        no_args_is_help=True,
        help="Addresses where other systems send signals for tasks, signed as Standard Webhooks "
        "has it.",
    )
    command(group, PANEL)(create)
    command(group, PANEL, name="list")(list_webhooks)
    command(group, PANEL)(rotate)
    command(group, PANEL)(remove)
    app.add_typer(group, name="webhooks", rich_help_panel=PANEL)


def create(
    terminal: Terminal,
    name: Name,
    task: Annotated[
        str,
        typer.Option(
            metavar="PLACE", help="The task's id: pointer:/data/task, query:task, header:X-Task."
        ),
    ] = "query:task",
    signal: Annotated[
        str, typer.Option(metavar="PLACE", help="The signal's name, likewise; or name:paid.")
    ] = "query:signal",
    payload: Annotated[
        str, typer.Option(metavar="POINTER", help="What it brings: /data; all, without it.")
    ] = "",
    saga: Annotated[str | None, typer.Option(help="Only for tasks of this saga.")] = None,
    by: By = None,
) -> None:
    """Make a webhook, and write its secret to standard output, once.

    Only the body is signed: what stands in the query or in headers is trusted as it comes.
    """
    made = terminal.ask(
        lambda client: client.create_webhook(
            name, task=task, signal=signal, payload=payload, saga=saga, by=by or person()
        )
    )
    terminal.show(made, secret_of)
    output.narrate(f"POST {made.path} at any coordinator's HTTP; the secret is not shown again")


def list_webhooks(terminal: Terminal) -> None:
    """List the webhooks, without their secrets."""
    terminal.show(terminal.ask(lambda client: client.webhooks()), table)


def rotate(
    terminal: Terminal,
    name: Name,
    overlap: Annotated[
        float,
        typer.Option(metavar="HOURS", min=0, help="How long the secret before is good as well."),
    ] = OVERLAP_S / HOUR_S,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Give a webhook another secret, and write that to standard output, once.

    It is good at once. Hand it to the sender within the overlap; with --overlap 0 the secret before
    ends now, as it must when it leaked.
    """
    overlap_s = round(overlap * HOUR_S)
    made = terminal.ask(
        lambda client: client.rotate_webhook(name, reason, overlap_s=overlap_s, by=by or person())
    )
    terminal.show(made, secret_of)
    ends = "ends now" if made.old_until is None else f"is good until {moment(made.old_until)}"
    output.narrate(f"the secret before {ends}; the new one is not shown again")


def remove(terminal: Terminal, name: Name, reason: Reason = "", by: By = None) -> None:
    """Take nothing there any more."""
    gone = terminal.ask(lambda client: client.remove_webhook(name, reason, by=by or person()))
    terminal.show(gone, lambda each: Text(f"no webhook {each.name} any more"))


def secret_of(made: WebhookMade) -> RenderableType:
    return Text(made.secret, no_wrap=True)


def table(listed: WebhookList) -> RenderableType:
    found = table_of("webhook", "saga", "task", "signal", "payload", "since")
    for hook in listed.webhooks:
        found.add_row(
            Text(hook.name),
            Text(printable(hook.saga or "")),
            Text(printable(hook.task)),
            Text(printable(hook.signal)),
            Text(printable(hook.payload)),
            Text(printable(_since(hook)), no_wrap=True),
        )
    return found


def _since(hook: WebhookView) -> str:
    by = f" by {hook.created_by}" if hook.created_by else ""
    return f"{moment(hook.created_at)}{by}"
