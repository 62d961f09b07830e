"""The command `batch`: cancel, retry or resume all tasks that a filter means."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Annotated, Any

import typer
from headway.agents.batch_views import BATCH_MAX, BatchAction, BatchRefusal
from headway.agents.client import Client
from headway.cli import output
from headway.cli.failures import Exit
from headway.cli.interventions import By, Reason, person
from headway.cli.output import printable
from headway.cli.tasks import (
    AgentName,
    Attributes,
    SagaName,
    Since,
    Statuses,
    Until,
    filter_of,
)
from headway.cli.terminal import Terminal, command
from headway.cli.wording import REASON_CHARACTERS_MAX, cut, table_of
from rich.console import Group, RenderableType
from rich.text import Text

PANEL = "Step in"
DONE = {"cancel": "cancelled", "retry": "retried", "resume": "resumed"}
REASONS_SHOWN_MAX = 10

Owner = Annotated[str | None, typer.Option(help="Only tasks submitted with this token.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(batch)


def batch(  # noqa: PLR0913, PLR0917  # each is a word of the command
    terminal: Terminal,
    action: Annotated[BatchAction, typer.Argument(help="cancel, retry or resume.")],
    status: Statuses = None,
    saga: SagaName = None,
    agent: AgentName = None,
    attribute: Attributes = None,
    since: Since = None,
    until: Until = None,
    owner: Owner = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell to how many it would be done.")
    ] = False,
    reason: Reason = "",
    by: By = None,
) -> None:
    """Cancel, retry or resume all tasks that the filters mean, newest first, each by itself.

    At least one filter is needed. Exits with 1 if some task refused it; doing it again is harmless.
    """
    asked = {
        **filter_of(status, saga, agent, attribute, since, until),
        "owner": owner,
        "dry_run": dry_run,
        "reason": reason,
        "by": by or person(),
    }
    done, refused = terminal.ask(partial(_all, terminal, action, asked))
    if not terminal.as_json:
        output.data_console().print(told(action, done, refused, dry_run=dry_run))
    if refused:
        raise typer.Exit(Exit.OTHERWISE)


async def _all(
    terminal: Terminal, action: BatchAction, asked: dict[str, Any], client: Client
) -> tuple[int, list[BatchRefusal]]:
    """Page by page; each is written at once if JSON is asked for."""
    done, refused, cursor = 0, list[BatchRefusal](), None
    while True:
        reply = await client.batch(action, limit=BATCH_MAX, cursor=cursor, **asked)
        done, refused, cursor = done + reply.done, refused + reply.refused, reply.cursor
        if terminal.as_json:
            output.write_json(reply)
        elif cursor is not None:
            output.narrate(f"{done + len(refused)} tasks so far")
        if cursor is None:
            return done, refused


def told(
    action: BatchAction, done: int, refused: list[BatchRefusal], *, dry_run: bool
) -> RenderableType:
    """To how many it was done, and why not to the others."""
    were = "would be " if dry_run else ""
    lines: list[RenderableType] = [Text(f"{done} {were}{DONE[action]}")]
    if not refused:
        return lines[0]
    lines.append(Text(f"{len(refused)} {'would refuse' if dry_run else 'refused'} it"))
    table = table_of("tasks", "one of them", "reason")
    reasons = Counter(each.reason for each in refused)
    for reason, count in reasons.most_common(REASONS_SHOWN_MAX):
        one = next(each.task for each in refused if each.reason == reason)
        shown = Text(cut(printable(reason), REASON_CHARACTERS_MAX))
        table.add_row(Text(str(count), justify="right"), Text(str(one), no_wrap=True), shown)
    return Group(*lines, table)
