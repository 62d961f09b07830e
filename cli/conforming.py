"""Does the work of `headway conform`. Needs the extra `embedded`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import typer
from headway.agents.subjects import TOKEN
from headway.cli import output
from headway.cli.failures import BadInput, Exit
from headway.cli.output import printable
from headway.cli.terminal import Terminal
from headway.cli.wording import table_of
from headway.conform.report import Report, Verdict
from headway.conform.run import CHECKS, run
from headway.demo.datafolder import data_folder, log_into
from rich.console import Group, RenderableType
from rich.text import Text

_STYLES: dict[Verdict, str] = {
    "holds": "green",
    "missing": "yellow",
    "not tested": "dim",
    "FAILS": "bold red",
}


def conform(
    terminal: Terminal, agent: str, start: Sequence[str], only: Sequence[str], keep: Path | None
) -> None:
    """Test an agent and show what was found; typer.Exit if something that is demanded fails."""
    if TOKEN.fullmatch(agent) is None:
        raise BadInput(f"{agent!r} cannot name an agent: use 1 to 64 of A-Z a-z 0-9 _ and -")
    unknown = sorted({*only} - {check.name for check in CHECKS})
    if unknown:
        raise BadInput(
            f"there is no check {unknown[0]!r}; `headway conform {agent} --list` shows all"
        )
    with data_folder(keep) as folder, log_into(folder / "conform.log"):
        found = asyncio.run(run(agent, folder, start, output.narrate, only=only))
    terminal.show(found, table)
    if not found.ok:
        raise typer.Exit(Exit.OTHERWISE)


def show_checks(terminal: Terminal) -> None:
    """List what is tested."""
    rows = table_of("check", "level", "what has to hold")
    for check in CHECKS:
        if terminal.as_json:
            output.write_json({"check": check.name, "level": check.level, "says": check.says})
        rows.add_row(check.name, check.level, check.says)
    if not terminal.as_json:
        output.data_console().print(rows)


def table(found: Report) -> RenderableType:
    """For people."""
    rows = table_of("check", "level", "", "what has to hold", "what was seen")
    for each in found.findings:
        verdict = Text(each.verdict, style=_STYLES[each.verdict])
        rows.add_row(each.check, each.level, verdict, each.says, printable(each.why))
    words = [f"{found.count(verdict)} {verdict}" for verdict in _STYLES if found.count(verdict)]
    conforms = "conforms" if found.ok else "does not conform"
    return Group(rows, Text(f"agent {found.agent} {conforms}: {', '.join(words)}"))
