"""Does the work of `headway up`. Needs the extra `embedded`."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from headway.cli import output
from headway.cli.addresses import without_secret
from headway.cli.terminal import Terminal
from headway.coordinator.connections import FILE_NAME, Connections
from headway.coordinator.embedded import Embedded, reset, serve


def up(terminal: Terminal, data: Path, coordinators: int, start_over: bool, http: str) -> None:
    """Run the embedded servers until told to stop, and leave no process behind. `http`: host:port,
    or "" for a port of its own."""
    asyncio.run(_up(terminal, data, coordinators, start_over, http))


async def _up(
    terminal: Terminal, data: Path, coordinators: int, start_over: bool, http: str
) -> None:
    if start_over:
        await reset(data)
        output.narrate(f"deleted all that was in {data}")
    output.narrate(f"starting PostgreSQL, NATS and {_count(coordinators)} in {data} …")
    embedded = Embedded(data, coordinators=coordinators, http=http)
    await serve(embedded, lambda connections: _announce(terminal, data, connections))
    output.narrate("stopped; nothing is left running")


def _announce(terminal: Terminal, data: Path, connections: Connections) -> None:
    nats, postgres = without_secret(connections.nats_url), without_secret(connections.postgres_url)
    file = (data / FILE_NAME).resolve()
    if terminal.as_json:
        http = connections.http_url
        ready: dict[str, object] = {"nats": nats, "postgres": postgres, "http": http}
        output.write_json({**ready, "connections": str(file), "pid": os.getpid()})
    output.narrate(f"ready: NATS at {nats}, PostgreSQL at {postgres}")
    output.narrate(
        f"Console and HTTP API at {connections.http_url}: `headway console` lets you in."
    )
    output.narrate(f"Commands find them, with their passwords, in {file}. Ctrl-C stops.")


def _count(coordinators: int) -> str:
    return "a coordinator" if coordinators == 1 else f"{coordinators} coordinators"
