"""The command `console`: where the console of a running `headway up` is, and the way in."""

from __future__ import annotations

import os
import webbrowser
from typing import Annotated

import typer
from headway.agents.errors import Unavailable
from headway.cli import output
from headway.cli.addresses import DATA, data_directory, running_up
from headway.cli.terminal import Terminal, command

PANEL = "Look at the system"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL, flags=("json", "data"))(console)


def console(
    terminal: Terminal,
    show: Annotated[
        bool, typer.Option("--open", help="Open it in this machine's browser as well.")
    ] = False,
) -> None:
    """Write the address of the console, which lets in whoever has it.

    It is the one of the `headway up` whose data are in ./.headway, or where --data says. Of a
    coordinator that was started by itself, open HEADWAY_HTTP's address and give a token that
    `headway tokens create` made.
    """
    data = data_directory(terminal.given.data, os.environ)
    running = running_up(data)
    if running is None:
        raise Unavailable(
            f"no `headway up` runs in {data.absolute()}: start one there, or name where one keeps "
            f"its data with --data or {DATA}"
        )
    address = f"{running.http_url}/#token={running.console_token}"
    if terminal.as_json:
        output.write_json({"url": running.http_url, "token": running.console_token})
    else:
        output.data_console().print(address, soft_wrap=True)
    if show and not webbrowser.open(address):
        output.narrate("there is no browser here to open it in")
