"""The command `drill`: causes faults on purpose, and tells what recovered."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Annotated

import typer
from headway.agents.client import Client
from headway.cli import output
from headway.cli.addresses import DATA, NATS_URL, data_directory
from headway.cli.extras import load
from headway.cli.failures import BadInput, Exit
from headway.cli.output import printable
from headway.cli.terminal import Terminal, command
from headway.drills.faults import FAULTS, Fault
from headway.drills.report import FaultList, FaultView, Report
from headway.drills.run import run
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

PANEL = "Look at the system"
ROUNDS_MAX = 1_000
_STYLES = {"recovered": "green", "late": "yellow", "FAILED": "bold red"}


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(drill)


def drill(
    terminal: Terminal,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this fault; may be repeated.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=ROUNDS_MAX, help="Each so many times.")] = 1,
    list_faults: Annotated[
        bool, typer.Option("--list", help="Only list the faults, and do nothing.")
    ] = False,
    staging: Annotated[
        bool,
        typer.Option(
            "--staging",
            help="Also harm the servers of the `headway up` on this machine: all its work waits.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --staging: do not ask.")] = False,
) -> None:
    """Cause faults in the running system, with tasks and agents of the drill's own.

    Exits with 0 only if all recovered, and what was done agrees with the tasks' histories.
    """
    data = data_directory(terminal.given.data, os.environ).absolute()
    faults = _chosen(fault, staging or list_faults, data)
    if list_faults:
        terminal.show(_list_of(faults), _listed)
        return
    if staging and not yes:
        typer.confirm(
            f"Kill the servers of the `headway up` in {data}, and delete its JetStream store?",
            abort=True,
            err=True,
        )
    found = _drilled(terminal, faults, rounds, data)
    terminal.show(found, _table)
    if not found.ok:
        raise typer.Exit(Exit.OTHERWISE)


def _drilled(terminal: Terminal, faults: list[Fault], rounds: int, data: Path) -> Report:
    """The whole drill; SIGTERM and Ctrl-C have it clear up first."""

    async def ask(client: Client) -> Report:
        drilling = asyncio.current_task()
        assert drilling is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, drilling.cancel)
        return await run(
            client,
            faults,
            rounds=rounds,
            environment=_environment(terminal, data),
            tell=output.narrate,
        )

    try:
        return terminal.ask(ask)
    except asyncio.CancelledError:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _chosen(names: list[str] | None, with_staging: bool, data: Path) -> list[Fault]:
    """The faults of these names, or all; BadInput names those that there are."""
    faults = list(FAULTS)
    if with_staging:
        faults += load("headway.drills.staging", "drill --staging").staging_faults(data)
    known = {one.name: one for one in faults}
    for name in names or []:
        if name not in known:
            raise BadInput(
                f"there is no fault {name!r}; `headway drill --list` shows those that there are, "
                "some of them with --staging only"
            )
    return [known[name] for name in names] if names else faults


def _environment(terminal: Terminal, data: Path) -> dict[str, str]:
    """What tells `headway agent` the servers that this command uses."""
    if terminal.given.nats_url:
        return {NATS_URL: terminal.given.nats_url}
    return {DATA: str(data)}


def _list_of(faults: list[Fault]) -> FaultList:
    shown = ("name", "does", "how", "why", "bound_s")
    return FaultList(
        faults=[FaultView(**{key: getattr(one, key) for key in shown}) for one in faults]
    )


def _listed(found: FaultList) -> RenderableType:
    table = Table("fault", "what is done", "what must come of it", "within", box=None)
    for one in found.faults:
        table.add_row(one.name, one.does, one.how, f"{one.bound_s:g} s")
    return table


def _table(found: Report) -> RenderableType:
    table = Table(
        "fault", "round", "", "seconds", "bound", "what happened", "why it counts", box=None
    )
    for trial in found.trials:
        took = "-" if trial.took_s is None else f"{trial.took_s:.2f}"
        table.add_row(
            trial.fault,
            str(trial.round),
            Text(trial.verdict, style=_STYLES[trial.verdict]),
            took,
            f"{trial.bound_s:g}",
            printable(trial.how),
            trial.why,
        )
    failed = sum(not trial.recovered for trial in found.trials)
    verdict = (
        f"{len(found.trials) - failed} of {len(found.trials)} recovered; {found.tasks} tasks; "
        f"{len(found.differences)} differences between what was done and the histories"
    )
    return Group(table, *(Text(printable(one)) for one in found.differences), Text(verdict))
