"""The command `conform`: drives an agent through the agent contract, and tells what fails."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from headway.cli.extras import load
from headway.cli.terminal import Terminal, command

PANEL = "Look at the system"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL, flags=("json",))(conform)


def conform(
    terminal: Terminal,
    agent: Annotated[str, typer.Argument(help="The agent's name.")],
    start: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND …]", help="What starts it; else you do, as told."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="CHECK", help="Only this check; may be repeated.")
    ] = None,
    list_checks: Annotated[
        bool, typer.Option("--list", help="Only list the checks, and test nothing.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep the logs in this directory.")
    ] = None,
) -> None:
    """Drive an agent of any language through the agent contract, on a nats-server of its own.

    `headway conform hotels -- python -m shop.hotels` starts the agent, tests it and stops it. It
    finds the server by HEADWAY_NATS_URL and its key by HEADWAY_CREDS, and has the conformance
    actions of agents/asyncapi.yaml. One that is connected elsewhere, to a running system, is not
    tested: some checks kill the server. Exits with 0 only if all holds that the contract demands.
    """
    work = load("headway.cli.conforming", "conform")
    if list_checks:
        work.show_checks(terminal)
        return
    work.conform(terminal, agent, start or [], only or [], keep)
