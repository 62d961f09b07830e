"""The command `doctor`: looks at everything, and says what to do about each thing that is wrong."""

from __future__ import annotations

import asyncio

import typer
from headway.cli import output
from headway.cli.addresses import POSTGRES_URL, Addresses
from headway.cli.checkup import examine_nats
from headway.cli.extras import load
from headway.cli.failures import Exit, MissingExtra
from headway.cli.findings import Finding, lines, note, report
from headway.cli.terminal import PostgresUrl, Terminal, command, token

PANEL = "Look at the system"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(doctor)


def doctor(terminal: Terminal, postgres_url: PostgresUrl = None) -> None:
    """Check servers, streams, schema, coordinators and clocks, and say what to do.

    Exits with 1 if anything is wrong.
    """
    addresses = terminal.addresses(postgres_url)
    if not terminal.as_json:
        output.narrate(f"looking at the servers of {addresses.origin}")
    output.narrate_warnings()
    examined = report(asyncio.run(_examine(addresses)))
    terminal.show(examined, lines)
    if not examined.healthy:
        raise typer.Exit(Exit.OTHERWISE)


async def _examine(addresses: Addresses) -> list[Finding]:
    findings, made = await examine_nats(addresses, token())
    silent = any((one.check, one.state) == ("coordinator", "wrong") for one in findings)
    return [*findings, *await _postgres(addresses.postgres_url, made, silent)]


async def _postgres(url: str | None, streams_made: dict[str, str], silent: bool) -> list[Finding]:
    if url is None:
        remedy = f"set --postgres-url or {POSTGRES_URL} to check it, too"
        return [note("PostgreSQL", "not checked: no address is known here", remedy)]
    try:
        database = load("headway.cli.database", "doctor")
    except MissingExtra as missing:
        return [note("PostgreSQL", "not checked", str(missing))]
    findings: list[Finding] = await database.examine_postgres(url, streams_made, silent=silent)
    return findings
