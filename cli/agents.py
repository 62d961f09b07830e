"""Commands for agents: who is there and what waits for whom; pause one and resume it; let one in
with a key of its own, and shut it out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from headway.agents.client import Client
from headway.agents.limit_views import BreakerView
from headway.cli import completing, output, tables
from headway.cli.extras import load
from headway.cli.interventions import person
from headway.cli.terminal import PostgresUrl, Terminal, with_flags

PANEL = "Look at the system"
WORK = "headway.cli.granting"
FLAGS = ("json", "nats_url", "data")

Name = Annotated[str, typer.Argument(help="The agent's name.", autocompletion=completing.agents)]
Reason = Annotated[str, typer.Option("--reason", "-r", help="Why; `headway agents` shows it.")]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `agents`."""
    group = typer.Typer(invoke_without_command=True)
    group.callback()(with_flags(agents, FLAGS))
    for function in (pause, resume, grant, revoke, keys):
        group.command(function.__name__)(with_flags(function, FLAGS))
    app.add_typer(group, name="agents", rich_help_panel=PANEL)


def agents(terminal: Terminal) -> None:
    """List the agents: their instances, how busy they are, and what is queued for them."""
    terminal.show(terminal.ask(lambda client: client.agents()), tables.agents)


def pause(terminal: Terminal, agent: Name, reason: Reason = "") -> None:
    """Give an agent nothing more, until it is resumed; what it has in hand goes on."""

    async def paused(client: Client) -> tuple[BreakerView, bool]:
        view = await client.pause_agent(agent, reason, by=person())
        return view, agent in {one.agent for one in (await client.agents()).agents}

    view, known = terminal.ask(paused)
    terminal.show(view, tables.breaker)
    if not known:
        output.narrate(
            f"no agent {agent!r} was here so far: if that is not its name, resume it; "
            "`headway agents` lists those that were"
        )


def resume(terminal: Terminal, agent: Name, reason: Reason = "") -> None:
    """Give an agent its commands again, whether a person paused it or its failures did."""
    view = terminal.ask(lambda client: client.resume_agent(agent, reason, by=person()))
    terminal.show(view, tables.breaker)


def grant(
    terminal: Terminal,
    agent: Name,
    creds: Annotated[
        Path | None,
        typer.Option(help="Write the credentials to this new file.", metavar="FILE"),
    ] = None,
    postgres_url: PostgresUrl = None,
) -> None:
    """Make a key with which workers may be this agent, and nothing else.

    Its secret goes to --creds, or to standard output, once. A second key can replace the first.
    """
    load(WORK, "agents grant").grant(terminal, postgres_url, agent, creds)


def revoke(
    terminal: Terminal,
    agent: Name,
    key: Annotated[str, typer.Option(help="Only this public key (U…).", metavar="KEY")] = "",
    postgres_url: PostgresUrl = None,
) -> None:
    """Shut out whoever has a key of this agent."""
    load(WORK, "agents revoke").revoke(terminal, postgres_url, agent, key)


def keys(terminal: Terminal, postgres_url: PostgresUrl = None) -> None:
    """List all keys that were ever granted: whose, by whom, and until when."""
    load(WORK, "agents keys").show_all(terminal, postgres_url)
