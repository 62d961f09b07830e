"""Commands for API tokens: create, list, revoke. They need the database, not a coordinator."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from headway.cli.extras import load
from headway.cli.terminal import PostgresUrl, Terminal, with_flags

PANEL = "Keep it safe"
WORK = "headway.cli.token_keeping"

Name = Annotated[str, typer.Argument(help="Whose token it is; its tasks and acts bear this name.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    group = typer.Typer(
        help="Tokens with which people and programs may ask coordinators for something.",
        no_args_is_help=True,
    )
    for function in (create, list_, revoke):
        name = function.__name__.rstrip("_")
        group.command(name)(with_flags(function, ("json", "nats_url", "data")))
    app.add_typer(group, name="tokens", rich_help_panel=PANEL)


def create(
    terminal: Terminal,
    name: Name,
    role: Annotated[
        Literal["view", "submit", "operate"],
        typer.Option(help="view sees all; submit has its own tasks; operate may do everything."),
    ],
    postgres_url: PostgresUrl = None,
) -> None:
    """Make a token, and write it to standard output, once.

    From the first one on, whoever shows none is refused.
    """
    load(WORK, "tokens").create(terminal, postgres_url, name, role)


def list_(terminal: Terminal, postgres_url: PostgresUrl = None) -> None:
    """List all tokens that were ever made, without their secrets."""
    load(WORK, "tokens").show_all(terminal, postgres_url)


def revoke(terminal: Terminal, name: Name, postgres_url: PostgresUrl = None) -> None:
    """Revoke a token: within a second no coordinator takes it any more."""
    load(WORK, "tokens").revoke(terminal, postgres_url, name)
