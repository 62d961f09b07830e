"""Checks of NATS, of the streams, and of the coordinators behind it. Changes nothing."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

from headway.agents import subjects
from headway.agents.catalogue_views import AgentList, AgentView
from headway.agents.client import Client
from headway.agents.connection import Connection, connect
from headway.agents.errors import HeadwayError, Refused, Unavailable
from headway.agents.isolation import serves
from headway.agents.limit_views import BreakerView
from headway.cli import copies
from headway.cli.addresses import Addresses
from headway.cli.answering import poll
from headway.cli.delivering import delivery
from headway.cli.findings import Finding, clock, note, ok, wrong
from headway.coordinator import streams
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.jetstream import JetStreamError, ask

NATS_VERSION_MIN = (2, 14)

NO_META_LEADER = 10008  # err_code of JetStream
SHARED = (subjects.TASKS_STREAM, subjects.EVENTS_STREAM)  # whose consumer is all coordinators'

ANSWER_TIMEOUT_S = 3.0
AGENTS_TIMEOUT_S = 10.0
AGENTS_TRY_S = 0.5
CUT_OFF_SERVER = (
    "mend the network between its cluster port and the other servers; whoever is connected to it "
    "goes elsewhere by itself"
)
LEADERLESS = (
    "start the servers of the cluster that are down, or mend the network between them: more than "
    "half must hear each other, and then elect a leader within 10 s"
)
READ_ITS_LOG = "if one runs, its log says why (of `headway up`: logs/ in its data directory)"
TO_SEE_THEM = "set HEADWAY_TOKEN; role view is enough"
START_A_COORDINATOR = "start one: `headway up`, or `headway coordinator` beside your servers"


async def examine_nats(
    addresses: Addresses, token: str = ""
) -> tuple[list[Finding], dict[str, str]]:
    """All that can be found out through NATS, and from coordinators that are shown this token; and
    when each stream was made, by its name."""
    try:
        connection = await connect(addresses.nats_url, name="headway-doctor")
    except Unavailable as error:
        remedy = f"start the server, or correct the address from {addresses.origin}"
        return [wrong("NATS", str(error), remedy)], {}
    async with connection:
        findings, best = await _servers(connection)
        if best != connection.place:
            async with await connection.beside(best) as there:
                return await _examine(there, findings, token)
        return await _examine(connection, findings, token)


async def _examine(
    connection: Connection, findings: list[Finding], token: str
) -> tuple[list[Finding], dict[str, str]]:
    streams_found, made = await _streams(connection)
    return [*findings, *streams_found, *await _coordinators(connection, token)], made


async def _servers(connection: Connection) -> tuple[list[Finding], str]:
    """Each server that we know of, and which of them to ask: one that is not cut off."""
    findings = [await _server(connection)]
    best = connection.place
    for place in connection.others:
        try:
            async with await connection.beside(place) as there:
                findings.append(await _server(there))
                if findings[-1].state == "ok" and findings[0].state != "ok":
                    best = place
        except Unavailable:
            found = f"{place} does not let us in"
            findings.append(note("NATS", found, f"{copies.MISSING}: its log says why"))
    return findings, best


async def _server(connection: Connection) -> Finding:
    version = connection.nc.connected_server_version
    found = f"nats-server {version.major}.{version.minor}.{version.patch}"
    if connection.others:
        found = f"{connection.server} at {connection.place}, {found}"
    if (version.major, version.minor) < NATS_VERSION_MIN:
        wanted = ".".join(map(str, NATS_VERSION_MIN))
        return wrong("NATS", f"{found} is too old", f"upgrade it to {wanted} or later")
    if connection.others and not await serves(connection, f"STREAM.INFO.{subjects.EVENTS_STREAM}"):
        return note("NATS", f"{found}: JetStream does not work through it", CUT_OFF_SERVER)
    return ok("NATS", found)


async def _streams(connection: Connection) -> tuple[list[Finding], dict[str, str]]:
    asked_at = time.time()
    try:
        await ask(connection.wire, "INFO")
        tasks = await ask(connection.wire, f"STREAM.INFO.{subjects.TASKS_STREAM}")
        answered_at = time.time()
    except BusUnavailable as error:
        remedy = "enable JetStream: `jetstream { store_dir: … }` in the server's configuration"
        return [wrong("JetStream", str(error), remedy if not connection.others else LEADERLESS)], {}
    except JetStreamError as error:
        if error.code == NO_META_LEADER:
            return [wrong("JetStream", "has no leader", LEADERLESS)], {}
        remedy = f"a coordinator makes them: {START_A_COORDINATOR}"
        return [wrong("streams", str(error), remedy)], {}
    clocks = clock("NATS", asked_at, datetime.fromisoformat(tasks["ts"]).timestamp(), answered_at)
    declared = tasks["config"]["num_replicas"]
    wanted = streams.streams(declared)
    made: dict[str, str] = {}
    looks = await asyncio.gather(*(_stream(connection, one, declared, made) for one in wanted))
    consumers = await asyncio.gather(
        *(_consumer(connection, stream, subjects.COORDINATOR) for stream in SHARED)
    )
    return [*looks, *(one for found in consumers for one in found), clocks], made


async def _stream(
    connection: Connection, wanted: dict[str, Any], declared: int, made: dict[str, str]
) -> Finding:
    name = wanted["name"]
    check = f"stream {name}"
    try:
        info = await ask(connection.wire, f"STREAM.INFO.{name}")
    except BusUnavailable as error:
        return wrong(check, str(error), copies.NO_LEADER)
    except JetStreamError as error:
        return wrong(check, str(error), f"a coordinator makes it: {START_A_COORDINATOR}")
    made[name] = info["created"]
    held = info["config"]
    different = [
        f"{key} is {held.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if (held.get(key) or None) != (value or None)
    ]
    if different:
        remedy = "restart a coordinator, which sets it right; if it cannot, its log says why"
        return wrong(check, "; ".join(different), remedy)
    return copies.copies(check, info, declared, f"{info['state']['messages']} messages")


async def _consumer(
    connection: Connection, stream: str, name: str, withheld: bool = False
) -> list[Finding]:
    """What is wrong with a consumer, if anything: it does not deliver, or soon may not. Of one that
    is known to be `withheld` a pause is not told."""
    check = f"consumer {name} of {stream}"
    try:
        info = await ask(connection.wire, f"CONSUMER.INFO.{stream}.{name}")
    except BusUnavailable as error:
        return [wrong(check, str(error), copies.NO_LEADER)]
    except JetStreamError as error:
        return [wrong(check, str(error), f"a coordinator makes it: {START_A_COORDINATOR}")]
    looked = copies.copies(check, info, info["config"].get("num_replicas") or 0, "")
    pause = None if withheld else copies.paused(check, info)
    return [*([looked] if looked.state != "ok" else []), *([pause] if pause else [])]


async def _coordinators(connection: Connection, token: str) -> list[Finding]:
    client = Client(connection, timeout=ANSWER_TIMEOUT_S, token=token)
    try:
        polled = await poll(client)
    except HeadwayError as error:
        return [wrong("coordinator", str(error), READ_ITS_LOG)]
    return [*polled.findings(), *await _agents(client, connection, polled.silent)]


async def _agents(client: Client, connection: Connection, some_silent: bool) -> list[Finding]:
    """Which agents get nothing done, and why; a consumer that is paused with its agent is not told
    of twice. Where some coordinators are silent, soon another one is asked."""
    client.timeout = AGENTS_TIMEOUT_S
    try_s = AGENTS_TRY_S if some_silent else None
    try:
        agents = (await client.ask("agents", b"{}", AgentList, try_s=try_s)).agents
    except Refused as error:
        return [note("agents", f"not looked at: {error}", TO_SEE_THEM)]
    except HeadwayError as error:
        return [wrong("agents", str(error), READ_ITS_LOG)]
    withheld = {one.agent for one in agents if one.breaker is not None}
    consumers = await asyncio.gather(
        *(
            _consumer(connection, subjects.COMMANDS_STREAM, one.agent, one.agent in withheld)
            for one in agents
        )
    )
    return [
        *(_absent(agent) for agent in agents if _wanted(agent) and not agent.instances),
        *(_withheld(agent.breaker) for agent in agents if agent.breaker is not None),
        *(one for found in consumers for one in found),
    ]


def _absent(agent: AgentView) -> Finding:
    count = _wanted(agent)
    waiting = "1 command waits" if count == 1 else f"{count} commands wait"
    found = f"is not there, and {waiting} for it"
    return note(f"agent {agent.agent}", found, "start it: `headway agent MODULE:NAME`")


def _wanted(agent: AgentView) -> int:
    """Commands that wait for it, in the stream or before it."""
    return agent.queued + agent.waiting


def _withheld(breaker: BreakerView) -> Finding:
    remedy = f"once it is well again: `headway agents resume {breaker.agent}`"
    if breaker.state != "paused":
        remedy = "look into its failures; it is probed by itself, each time after a longer pause"
    return note(f"agent {breaker.agent}", delivery(breaker), remedy)
