"""Traffic that nobody asked for: junk on every subject, floods, listeners that do not read."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice
from urllib.parse import unquote, urlsplit

from chaos.faults import fault
from chaos.load import orders
from chaos.recovery import Struck
from chaos.stage import Stage
from harness.junk import junk
from headway.agents import Connection, connect
from headway.agents.identity import new_task_id

AGENTS = ("hall", "till", "depot", "desk")
OVERSIZED_BYTES = 4 * 1024 * 1024  # within what nats-server lets pass
FLOOD_VALID, FLOOD_JUNK = 1_500, 1_500
DEAF_BYTES = 96 * 1024 * 1024  # more than nats-server keeps for one that does not read
SUBJECTS_ASKED_WITHIN_S = 2.0


@fault("junk on every subject")
async def junk_everywhere(stage: Stage, rng: random.Random) -> list[Struck]:
    """Published by somebody who may publish anywhere; also as if it answered tasks under way."""
    async with await _stranger(stage) as stranger:
        bodies = [*junk(rng), rng.randbytes(OVERSIZED_BYTES), b'{"x":"' + b"y" * 2_000_000 + b'"}']
        tasks = [str(task) for task in list(stage.accepted)[-5:]] or [str(new_task_id())]
        subjects = await _subjects(stranger, tasks)
        for body in bodies:
            await _publish(stranger, ((subject, body) for subject in subjects))
    return [Struck(time.time())]


@fault("a flood of tasks and junk", publishes=True, settle_s=180.0)
async def flood(stage: Stage, rng: random.Random) -> list[Struck]:
    async with await _stranger(stage) as stranger:
        wanted = {new_task_id(): order for order in islice(orders(rng), FLOOD_VALID)}
        stage.extra.update(wanted)
        await _publish(
            stranger,
            (
                message
                for number, (task, order) in enumerate(wanted.items())
                for message in (
                    (f"hw.tasks.{order.saga}", _cloud_event(str(task), order.input)),
                    (f"hw.events.hall.{task}", b"{junk"),
                    (f"hw.tasks.none-{number % 7}", b"{}"),
                )[: 3 if number < FLOOD_JUNK else 1]
            ),
        )
    return [Struck(time.time())]


@fault("listeners that do not read")
async def slow_consumers(stage: Stage, rng: random.Random) -> list[Struck]:
    """They subscribe to everything; nats-server has to cut them off, and nobody else."""
    deaf = [_deaf(stage.nats.url) for _ in range(3)]
    async with await _stranger(stage) as stranger:
        piece = rng.randbytes(256 * 1024)
        for _ in range(DEAF_BYTES // len(piece)):
            stranger.wire.publish("hw.feed.nobody.nothing.noise", piece)
            await asyncio.sleep(0.005)
        await stranger.nc.flush()
    for each in deaf:
        each.close()
    return [Struck(time.time())]


async def _stranger(stage: Stage) -> Connection:
    return await connect(stage.nats.url, name="stranger")


async def _subjects(stranger: Connection, tasks: list[str]) -> list[str]:
    """Every kind of subject there is, and every operation that coordinators offer."""
    fixed = [
        "hw",
        "hw.tasks.trip.x",
        "hw.feed.trip.x.succeeded",
        "hw.dead.HW_TASKS",
        "hw.tasks.none",
        *(f"hw.documents.{name}.x" for name in AGENTS),
    ]
    for agent in AGENTS:
        fixed += [f"hw.presence.{agent}", f"hw.alive.{agent}.nobody"]
        for task in tasks:
            fixed += [f"hw.events.{agent}.{task}", f"hw.stop.{agent}.{task}.book"]
            fixed.append(f"hw.commands.{agent}.book.{task}.junk")
    return fixed + await _operations(stranger)


async def _operations(stranger: Connection) -> list[str]:
    """The subjects of all endpoints, as the service itself tells them."""
    found: dict[str, None] = {}
    answers = stranger.nc.new_inbox()
    heard = await stranger.nc.subscribe(answers)
    await stranger.nc.publish("$SRV.INFO.headway", b"", reply=answers)
    with suppress(TimeoutError):
        async with asyncio.timeout(SUBJECTS_ASKED_WITHIN_S):
            async for message in heard.messages:
                for endpoint in json.loads(message.data)["endpoints"]:
                    found[endpoint["subject"].replace("*", "desk")] = None
    assert len(found) > 20, f"the service named only {list(found)}"
    return list(found)


async def _publish(stranger: Connection, messages: Iterable[tuple[str, bytes]]) -> None:
    for number, (subject, body) in enumerate(messages):
        stranger.wire.publish(subject, body)
        if number % 50 == 0:
            await stranger.nc.flush()
    await stranger.nc.flush()


def _cloud_event(task: str, data: object) -> bytes:
    event = {"specversion": "1.0", "id": task, "type": "order", "source": "/flood", "data": data}
    return json.dumps(event).encode()


def _deaf(url: str) -> socket.socket:
    """A connection that subscribes to everything and reads nothing."""
    parts = urlsplit(url)
    deaf = socket.create_connection((parts.hostname, parts.port))
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    greeting = {
        "user": unquote(parts.username or ""),
        "pass": unquote(parts.password or ""),
        "verbose": False,
        "lang": "none",
        "version": "0",
    }
    deaf.sendall(f"CONNECT {json.dumps(greeting)}\r\nPING\r\nSUB hw.> 1\r\n".encode())
    return deaf
