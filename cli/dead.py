"""Commands for dead letters: what was refused, and why; replay it, or drop it."""

from __future__ import annotations

from typing import Annotated

import typer
from headway.agents.deadletter_views import (
    LETTERS_PAGE_MAX,
    LetterKind,
    LetterPage,
    LetterReceipt,
    LetterRow,
    LetterView,
)
from headway.cli import output
from headway.cli.interventions import By, person
from headway.cli.output import printable
from headway.cli.terminal import Terminal, command
from headway.cli.wording import (
    KEY_CHARACTERS_MAX,
    REASON_CHARACTERS_MAX,
    cut,
    labelled,
    moment,
    table_of,
)
from rich.console import Group, RenderableType
from rich.text import Text

PANEL = "Step in"

Number = Annotated[int, typer.Argument(metavar="LETTER", min=1, help="The letter's number.")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; the audit log keeps it.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `dead`."""
    group = typer.Typer(no_args_is_help=True, help="Messages that were refused, and why.")
    command(group, PANEL, name="list")(list_letters)
    command(group, PANEL)(show)
    command(group, PANEL)(replay)
    command(group, PANEL)(drop)
    app.add_typer(group, name="dead", rich_help_panel=PANEL)


def list_letters(
    terminal: Terminal,
    kind: Annotated[
        LetterKind | None, typer.Option(help="Only these; without it, all but advisories.")
    ] = None,
    dealt_with: Annotated[
        bool, typer.Option("--all", help="Also what was replayed or dropped.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=LETTERS_PAGE_MAX, help="Letters a page.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="The next page, as the last one named it.")
    ] = None,
) -> None:
    """List what was refused, newest first."""
    page = terminal.ask(
        lambda client: client.dead_letters(
            kind=kind, dealt_with=dealt_with, limit=limit, cursor=cursor
        )
    )
    if not page.letters and page.cursor is None and not terminal.as_json:
        output.narrate("there are no dead letters")
        return
    terminal.show(page, letters)


def show(terminal: Terminal, letter: Number) -> None:
    """Show a letter, and the message that was refused."""
    terminal.show(terminal.ask(lambda client: client.dead_letter(letter)), whole)


def replay(terminal: Terminal, letter: Number, reason: Reason = "", by: By = None) -> None:
    """Publish a submission or an event again, once what was wrong is mended.

    It cannot run twice: a submission keeps the id of its task, an event that of its attempt.
    """
    receipt = terminal.ask(lambda client: client.replay_letter(letter, reason, by=by or person()))
    terminal.show(receipt, dealt)


def drop(terminal: Terminal, letter: Number, reason: Reason = "", by: By = None) -> None:
    """Say that a letter is of no interest any more: `headway dead list` leaves it out."""
    receipt = terminal.ask(lambda client: client.drop_letter(letter, reason, by=by or person()))
    terminal.show(receipt, dealt)


def letters(page: LetterPage) -> RenderableType:
    """A page of letters, and how to ask for the next one."""
    table = table_of("letter", "at", "kind", "agent", "subject", "what became of it", "reason")
    for row in page.letters:
        table.add_row(
            Text(str(row.sequence), justify="right"),
            Text(moment(row.at), no_wrap=True),
            Text(row.kind),
            Text(cut(row.agent, KEY_CHARACTERS_MAX)),
            Text(cut(row.subject, KEY_CHARACTERS_MAX)),
            Text("" if row.fate is None else row.fate.fate),
            Text(cut(row.reason, REASON_CHARACTERS_MAX)),
        )
    if page.cursor is None:
        return table
    return Group(table, Text(f"more: --cursor {page.cursor}", style="dim"))


def whole(view: LetterView) -> RenderableType:
    """A letter, its message, and what a person can do about it."""
    parts: list[RenderableType] = [
        Text(f"letter {view.sequence}  {view.kind}  {moment(view.at)}"),
        labelled("subject", view.subject),
        labelled("reason", view.reason),
    ]
    if view.agent:
        parts.append(labelled("agent", view.agent))
    if view.task is not None:
        parts.append(labelled("task", str(view.task)))
    parts += [labelled(f"header {name}", value) for name, value in sorted(view.headers.items())]
    encoding = "" if view.body_base64 is None else " in base64"
    there = "" if view.whole else ", cut"
    parts.append(labelled("body", f"{view.size} bytes{there}{encoding}"))
    body = view.body if view.body is not None else view.body_base64 or ""
    parts += [Text(printable(line)) for line in body.splitlines()]
    return Group(*parts, *_open(view))


def _open(row: LetterRow) -> list[Text]:
    """What is open to a person, or what became of it."""
    if row.fate is not None and row.fate.fate != "replaying":
        why = f": {row.fate.reason}" if row.fate.reason else ""
        told = f"{row.fate.fate} by {row.fate.by} at {moment(row.fate.at)}{why}"
        return [labelled("what became of it", told)]
    replay = [labelled("kept", row.kept)] if row.kept else []
    commands = [] if row.kept else [f"  headway dead replay {row.sequence}"]
    commands += [] if row.fate is not None else [f"  headway dead drop {row.sequence}"]
    return [*replay, Text("open to you:", style="dim"), *map(Text, commands)]


def dealt(receipt: LetterReceipt) -> RenderableType:
    about = "" if receipt.task is None else f", of task {receipt.task}"
    return Text(f"letter {receipt.sequence}{about}: {receipt.fate.fate}")
