"""Commands that show what Headway does: an order desk, a support desk, and a travel agency."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from headway.cli.extras import load
from headway.cli.terminal import Terminal, command, with_flags

PANEL = "Run"
LANES_MAX = 32

Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Keep the data and logs in this directory.")
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands, as one group."""
    group = typer.Typer(invoke_without_command=True)
    group.callback()(with_flags(demo, ("json",)))
    command(group, PANEL, flags=("json",))(support)
    command(group, PANEL, flags=("json",))(languages)
    app.add_typer(group, name="demo", rich_help_panel=PANEL)


def demo(
    terminal: Terminal,
    orders: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Your own orders, as JSON lines.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Orders to generate.")] = 300,
    seed: Annotated[int, typer.Option(help="Decides the orders and the kills.")] = 1,
    kills: Annotated[int, typer.Option(min=0, help="Processes to kill on the way.")] = 12,
    keep: Keep = None,
) -> None:
    """Run an order desk while its processes are being killed, then audit what is left.

    Exits with 0 only if no effect was lost and none was applied twice.
    """
    run = load("headway.demo.run", "demo")
    raise typer.Exit(
        run.run_demo(
            orders=orders, count=count, seed=seed, kills=kills, as_json=terminal.as_json, keep=keep
        )
    )


def support(
    terminal: Terminal,
    lanes: Annotated[int, typer.Option(min=1, max=LANES_MAX, help="Tasks at a time.")] = 6,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="One task, and you are who approves its refund.")
    ] = False,
    keep: Keep = None,
) -> None:
    """Kill an agent that answers customers at each place of its journal, then audit what is left.

    A scripted model answers; set OPENAI_BASE_URL (OPENAI_API_KEY, HEADWAY_DEMO_MODEL) for another
    one. Exits with 0 only if each task ended as if nobody had been killed, with one payment, one
    mail, and each model call billed once.
    """
    run = load("headway.demo.support.run", "demo support")
    raise typer.Exit(
        run.run_support(lanes=lanes, interactive=interactive, as_json=terminal.as_json, keep=keep)
    )


def languages(
    terminal: Terminal,
    count: Annotated[int, typer.Option(min=1, help="Trips to book.")] = 60,
    seed: Annotated[int, typer.Option(help="Decides the trips and the kills.")] = 1,
    kills: Annotated[int, typer.Option(min=0, help="Processes to kill on the way.")] = 10,
    keep: Keep = None,
) -> None:
    """Book trips by agents in three languages while they are being killed, then audit what is left.

    One agent is in TypeScript, which needs Node.js and npm, one is on bare nats-py, one uses the
    SDK. Exits with 0 only if no booking was lost, left over or made twice.
    """
    run = load("headway.demo.languages.run", "demo languages")
    raise typer.Exit(
        run.run_languages(count=count, seed=seed, kills=kills, as_json=terminal.as_json, keep=keep)
    )
