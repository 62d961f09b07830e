"""Servers that die, hang, lose their data or have no room for more."""

from __future__ import annotations

import asyncio
import os
import random
import time
from contextlib import suppress

import asyncpg
from chaos.faults import fault
from chaos.load import orders
from chaos.recovery import Struck
from chaos.stage import COORDINATORS, CREWS, Stage
from harness.services import Running

BLOCK_BYTES = 1_048_576
FULL_FOR_S = 4.0
TAKE_ROOM = "INSERT INTO room SELECT md5(n::text) FROM generate_series(1, 50000) AS n"
MANY = 10_000


@fault("nats-server killed")
async def nats_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return [await _killed(rng, stage.nats)]


@fault("PostgreSQL killed")
async def postgres_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return [await _killed(rng, stage.postgres)]


@fault("both servers killed")
async def both_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    return [await _killed(rng, stage.nats, stage.postgres)]


@fault("servers stopped in order and started")
async def restarted(stage: Stage, rng: random.Random) -> list[Struck]:
    await asyncio.gather(stage.nats.stop(), stage.postgres.stop())
    await asyncio.gather(stage.nats.start(), stage.postgres.start())
    return [Struck(time.time())]


@fault("nats-server frozen")
async def nats_frozen(stage: Stage, rng: random.Random) -> list[Struck]:
    return [await _frozen(rng, stage.nats)]


@fault("PostgreSQL's postmaster frozen")
async def postgres_frozen(stage: Stage, rng: random.Random) -> list[Struck]:
    """It takes no new connections; those that there are go on."""
    for link in stage.links_of("/postgres"):
        link.cut()
    return [await _frozen(rng, stage.postgres)]


@fault("JetStream's store deleted", publishes=False)
async def store_deleted(stage: Stage, rng: random.Random) -> list[Struck]:
    await stage.nats.wipe_store()
    return [Struck(time.time())]


@fault("JetStream's store deleted, and both servers killed", publishes=False)
async def store_deleted_and_killed(stage: Stage, rng: random.Random) -> list[Struck]:
    await asyncio.gather(stage.nats.wipe_store(), stage.postgres.kill())
    await stage.postgres.start()
    return [Struck(time.time())]


@fault("no room on NATS' disk", mounts=True, publishes=False, settle_s=120.0)
async def nats_disk_full(stage: Stage, rng: random.Random) -> list[Struck]:
    """Afterwards somebody has made room and started it again, as JetStream asks for."""
    await _fill(stage, "nats")
    await stage.nats.restart()
    return [Struck(time.time())]


@fault("no room on PostgreSQL's disk", mounts=True, settle_s=120.0)
async def postgres_disk_full(stage: Stage, rng: random.Random) -> list[Struck]:
    refusals = asyncio.create_task(_use_space(stage))
    await _fill(stage, "postgres")
    assert await refusals, "PostgreSQL had room all the time: its disk was never full"
    if not stage.postgres.running:
        await stage.postgres.start()
    return [Struck(time.time())]


@fault("everything restarts, 10,000 tasks open", only_long=True, per_s=5.0, settle_s=600.0)
async def everything_restarts(stage: Stage, rng: random.Random) -> list[Struck]:
    return await restart_all(stage, rng, MANY)


@fault("everything restarts, 300 tasks open", per_s=5.0, settle_s=90.0)
async def everything_restarts_small(stage: Stage, rng: random.Random) -> list[Struck]:
    return await restart_all(stage, rng, 300)


async def restart_all(stage: Stage, rng: random.Random, count: int) -> list[Struck]:
    """Everything that can die dies at once, with so many tasks open that nobody had begun with."""
    await stage.kill(*CREWS)
    wanted = orders(rng, ("trip",))
    batch = [next(wanted) for _ in range(count)]
    receipts = await stage.client.submit_many("trip", [order.input for order in batch])
    for order, receipt in zip(batch, receipts, strict=True):
        if not isinstance(receipt, Exception):
            stage.extra[receipt.task] = order
    await asyncio.gather(stage.kill(*COORDINATORS), stage.nats.kill(), stage.postgres.kill())
    at = time.time()
    await asyncio.gather(stage.nats.start(), stage.postgres.start())
    await asyncio.gather(*(stage.play(role) for role in (*COORDINATORS, *CREWS)))
    return [Struck(at)]


async def _killed(rng: random.Random, *servers: Running) -> Struck:
    """Away for a moment, or for longer than an `ack_wait`."""
    await asyncio.gather(*(server.kill() for server in servers))
    await asyncio.sleep(rng.choice([0.0, 1.0, 7.0]))
    await asyncio.gather(*(server.start() for server in servers))
    return Struck(time.time())


async def _frozen(rng: random.Random, server: Running) -> Struck:
    server.freeze()
    await asyncio.sleep(rng.choice([1.0, 4.0]))
    server.thaw()
    return Struck(time.time())


async def _use_space(stage: Stage) -> bool:
    """Have PostgreSQL ask for more room again and again; whether it was refused some."""
    refused, until = False, time.monotonic() + FULL_FOR_S
    while time.monotonic() < until:
        try:
            await stage.fetch("SELECT pg_switch_wal()")
            await stage.fetch("CREATE TABLE IF NOT EXISTS room (taken text)")
            await stage.fetch(TAKE_ROOM)
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            refused = True
        await asyncio.sleep(0.2)
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await stage.fetch("DROP TABLE IF EXISTS room")
    return refused


async def _fill(stage: Stage, disk: str) -> None:
    """Leave no room on a server's disk for a while."""
    ballast = stage.disks[disk] / "ballast"
    stage.ballast.append(ballast)
    until = time.monotonic() + FULL_FOR_S
    with ballast.open("wb", buffering=0) as file:
        while time.monotonic() < until:
            try:
                os.write(file.fileno(), b"\0" * BLOCK_BYTES)
                await asyncio.sleep(0)
            except OSError:
                await asyncio.sleep(0.05)  # what the server gives back is taken, too
    ballast.unlink()
