"""The command that looks at agents: who is there, and what waits for whom."""

from __future__ import annotations

import typer
from headway.cli import tables
from headway.cli.terminal import Terminal, command

PANEL = "Look at the system"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(agents)


def agents(terminal: Terminal) -> None:
    """List the agents: their instances, how busy they are, and what is queued for them."""
    terminal.show(terminal.ask(lambda client: client.agents()), tables.agents)
