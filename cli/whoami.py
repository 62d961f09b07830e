"""The command `whoami`: whom coordinators take this shell for."""

from __future__ import annotations

import typer
from headway.agents.whoami_views import Whoami
from headway.cli.terminal import Terminal, command
from rich.console import RenderableType
from rich.text import Text

PANEL = "Keep it safe"
NOBODY = "nobody in particular: coordinators ask for no token, and let everybody do everything"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(whoami)


def whoami(terminal: Terminal) -> None:
    """Show whose token this is, its role, and what it may ask for."""
    terminal.show(terminal.ask(lambda client: client.whoami()), told)


def told(who: Whoami) -> RenderableType:
    known = f"{who.name}, role {who.role}" if who.role else NOBODY
    return Text(f"{known}\nmay ask for: {', '.join(who.operations)}")
