"""Commands for agents: who is there and what waits for whom; pause one, and resume it."""

from __future__ import annotations

from typing import Annotated

import typer
from headway.cli import tables
from headway.cli.interventions import person
from headway.cli.terminal import Terminal, with_flags

PANEL = "Look at the system"
FLAGS = ("json", "nats_url", "data")

Name = Annotated[str, typer.Argument(help="The agent's name.")]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; `headway agents` shows it.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `agents`."""
    group = typer.Typer(invoke_without_command=True)
    group.callback()(with_flags(agents, FLAGS))
    for function in (pause, resume):
        group.command(function.__name__)(with_flags(function, FLAGS))
    app.add_typer(group, name="agents", rich_help_panel=PANEL)


def agents(terminal: Terminal) -> None:
    """List the agents: their instances, how busy they are, and what is queued for them."""
    terminal.show(terminal.ask(lambda client: client.agents()), tables.agents)


def pause(terminal: Terminal, agent: Name, reason: Reason = "") -> None:
    """Give an agent nothing more, until it is resumed; what it has in hand goes on."""
    view = terminal.ask(lambda client: client.pause_agent(agent, reason, by=person()))
    terminal.show(view, tables.breaker)


def resume(terminal: Terminal, agent: Name, reason: Reason = "") -> None:
    """Give an agent its commands again, whether a person paused it or its failures did."""
    view = terminal.ask(lambda client: client.resume_agent(agent, reason, by=person()))
    terminal.show(view, tables.breaker)
