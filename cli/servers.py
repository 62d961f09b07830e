"""Commands that run something: up, coordinator, agent."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from headway.agents import runner
from headway.agents.credentials import read as read_credentials
from headway.agents.worker import CONCURRENCY
from headway.cli.addresses import data_directory
from headway.cli.extras import load
from headway.cli.logformat import log_to_standard_error
from headway.cli.terminal import PostgresUrl, Terminal, command, payload_keys

PANEL = "Run"
CREDS = "HEADWAY_CREDS"
HTTP = "HEADWAY_HTTP"
COORDINATORS_MAX = 16


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    command(app, PANEL, flags=("json", "data"))(up)
    command(app, PANEL)(coordinator)
    command(app, PANEL)(agent)


def up(
    terminal: Terminal,
    coordinators: Annotated[
        int, typer.Option(min=1, max=COORDINATORS_MAX, help="Coordinators side by side.")
    ] = 1,
    reset: Annotated[
        bool, typer.Option("--reset", help="First delete everything in the data directory.")
    ] = False,
    http: Annotated[
        str,
        typer.Option(
            help=f"Where to serve HTTP and the console; else {HTTP}, else a port of its own on "
            "127.0.0.1, from 7480 on.",
            metavar="HOST:PORT",
        ),
    ] = "",
) -> None:
    """Run NATS, PostgreSQL and a coordinator here, until Ctrl-C.

    Their data are kept in ./.headway, or where --data says. Commands in the same folder find them;
    `headway console` opens the console.
    """
    log_to_standard_error(os.environ)
    data = data_directory(terminal.given.data, os.environ)
    load("headway.cli.hosting", "up").up(
        terminal, data, coordinators, reset, http or os.environ.get(HTTP, "")
    )


def coordinator(
    terminal: Terminal,
    postgres_url: PostgresUrl = None,
) -> None:
    """Run a coordinator against existing servers, until SIGTERM. Run as many as you like.

    HEADWAY_HTTP=HOST:PORT: serve the HTTP API and the console there, for this machine or a proxy
    that does TLS; or with HEADWAY_HTTP_CERT and HEADWAY_HTTP_KEY (PEM files) on TLS.
    HEADWAY_REPLICAS: copies of each stream, 3 or 5 on a NATS cluster (else 1).
    HEADWAY_REQUIRE_TOKENS=1: people need a token even while none has been made.
    """
    log_to_standard_error(os.environ)
    load("headway.cli.serving", "coordinator").coordinator(terminal, postgres_url)


def agent(
    terminal: Terminal,
    agents: Annotated[
        list[str],
        typer.Argument(metavar="MODULE:NAME...", help="Agents in Python, e.g. shop.pay:payments"),
    ],
    concurrency: Annotated[
        int, typer.Option(min=1, max=10_000, help="Handlers of one agent at a time.")
    ] = CONCURRENCY,
    creds: Annotated[
        list[Path] | None,
        typer.Option(
            help=f"Credentials of an agent; once for each. Else {CREDS}, separated by "
            f"{os.pathsep!r}.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Run agents in this process, until SIGTERM. Run as many of each as you like."""
    log_to_standard_error(os.environ)
    loaded = [runner.load(one) for one in agents]
    files = creds or [Path(each) for each in os.environ.get(CREDS, "").split(os.pathsep) if each]
    credentials = [read_credentials(file) for file in files]
    url = terminal.addresses(who="agents").nats_url
    runner.run(
        loaded, url, credentials=credentials, concurrency=concurrency, keyring=payload_keys()
    )
