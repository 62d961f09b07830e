"""Checks of NATS, of the streams, and of the coordinators behind it. Changes nothing."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from headway.agents import subjects
from headway.agents.client import Client
from headway.agents.connection import Connection, connect
from headway.agents.errors import HeadwayError, Unavailable
from headway.agents.views import AgentView
from headway.cli.addresses import Addresses
from headway.cli.findings import Finding, clock, note, ok, wrong
from headway.coordinator import streams
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.jetstream import JetStreamError, ask

NATS_VERSION_MIN = (2, 12)  # persist_mode

ANSWER_TIMEOUT_S = 3.0
READ_ITS_LOG = "if one runs, its log says why (of `headway up`: logs/ in its data directory)"
START_A_COORDINATOR = "start one: `headway up`, or `headway coordinator` beside your servers"


async def examine_nats(addresses: Addresses) -> list[Finding]:
    """All that can be found out through NATS."""
    try:
        connection = await connect(addresses.nats_url, name="headway-doctor")
    except Unavailable as error:
        remedy = f"start the server, or correct the address from {addresses.origin}"
        return [wrong("NATS", str(error), remedy)]
    async with connection:
        findings = [_server(connection)]
        findings += await _streams(connection)
        findings += await _coordinators(Client(connection, timeout=ANSWER_TIMEOUT_S))
        return findings


def _server(connection: Connection) -> Finding:
    version = connection.nc.connected_server_version
    found = f"nats-server {version.major}.{version.minor}.{version.patch}"
    if (version.major, version.minor) >= NATS_VERSION_MIN:
        return ok("NATS", found)
    wanted = ".".join(map(str, NATS_VERSION_MIN))
    return wrong("NATS", f"{found} is too old", f"upgrade it to {wanted} or later")


async def _streams(connection: Connection) -> list[Finding]:
    asked_at = time.time()
    try:
        tasks = await ask(connection.wire, f"STREAM.INFO.{subjects.TASKS_STREAM}")
        answered_at = time.time()
        replicas = tasks["config"]["num_replicas"]
        findings = [await _stream(connection, wanted) for wanted in streams.streams(replicas)]
    except BusUnavailable as error:
        remedy = "enable JetStream: `jetstream { store_dir: … }` in the server's configuration"
        return [wrong("JetStream", str(error), remedy)]
    except JetStreamError as error:
        return [wrong("streams", str(error), f"a coordinator makes them: {START_A_COORDINATOR}")]
    told = datetime.fromisoformat(tasks["ts"]).timestamp()
    return [*findings, clock("NATS", asked_at, told, answered_at)]


async def _stream(connection: Connection, wanted: dict[str, Any]) -> Finding:
    name = wanted["name"]
    check = f"stream {name}"
    info = await ask(connection.wire, f"STREAM.INFO.{name}")
    held = info["config"]
    different = [
        f"{key} is {held.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if (held.get(key) or None) != (value or None)
    ]
    if different:
        remedy = "restart a coordinator, which sets it right; if it cannot, its log says why"
        return wrong(check, "; ".join(different), remedy)
    return ok(check, f"{info['state']['messages']} messages, R{held['num_replicas']}")


async def _coordinators(client: Client) -> list[Finding]:
    asked_at = time.time()
    try:
        health = await client.health()
        answered_at = time.time()
        agents = await client.agents()
    except HeadwayError as error:
        return [wrong("coordinator", str(error), READ_ITS_LOG)]
    return [
        ok("coordinator", f"headway {health.version} answers"),
        clock("the coordinator", asked_at, health.now.timestamp(), answered_at),
        *(_absent(agent) for agent in agents.agents if agent.queued and not agent.instances),
    ]


def _absent(agent: AgentView) -> Finding:
    found = f"is not there, and {agent.queued} commands wait for it"
    return note(f"agent {agent.agent}", found, "start it: `headway agent MODULE:NAME`")
