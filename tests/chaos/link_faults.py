"""Connections that are cut, half closed, held, delayed and throttled: each kind of link in turn."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

from chaos.faults import fault
from chaos.recovery import Struck
from chaos.stage import COORDINATORS, CREWS, SUBMITTER, Stage
from harness.proxy import Proxy

SLOW_BYTES_PER_S = 20_000
PAUSE_S = 1.0

Harm = Callable[[list[Proxy], random.Random], Awaitable[None]]


async def on_each_kind(stage: Stage, rng: random.Random, harm: Harm) -> list[Struck]:
    """One link of each kind, and then all of a kind, in an order that is drawn."""
    kinds = [
        (f"{rng.choice(CREWS)}/nats",),
        (f"{rng.choice(COORDINATORS)}/nats",),
        (f"{rng.choice(COORDINATORS)}/postgres",),
        (SUBMITTER,),
        ("/nats",),
        ("/postgres",),
    ]
    struck = []
    for endings in rng.sample(kinds, len(kinds)):
        links = stage.links_of(*endings)
        await harm(links, rng)
        for link in links:
            link.heal()
        struck.append(Struck(time.time()))
        await asyncio.sleep(PAUSE_S)
    return struck


def harmful(name: str) -> Callable[[Harm], Harm]:
    """Enter a harm that is done to links as a fault."""

    def enter(harm: Harm) -> Harm:
        fault(name)(lambda stage, rng: on_each_kind(stage, rng, harm))
        return harm

    return enter


@harmful("connections cut")
async def cut(links: list[Proxy], rng: random.Random) -> None:
    """A reset in the middle of things, some times."""
    for _ in range(rng.randint(1, 3)):
        for link in links:
            link.cut()
        await asyncio.sleep(rng.uniform(0.0, 0.3))


@harmful("connections cut, and refused for a while")
async def away(links: list[Proxy], rng: random.Random) -> None:
    for link in links:
        link.refusing = True
        link.cut()
    await asyncio.sleep(rng.uniform(0.5, 3.0))


@harmful("connections half closed")
async def half_closed(links: list[Proxy], rng: random.Random) -> None:
    for link in links:
        link.half_close(rng.choice(["up", "down"]))
    await asyncio.sleep(0.5)


@harmful("nothing gets through, and nobody is told")
async def held(links: list[Proxy], rng: random.Random) -> None:
    """One way or both; in the end it arrives late, or not at all."""
    for link in links:
        link.hold(*rng.choice([("up",), ("down",), ("up", "down")]))
    await asyncio.sleep(rng.uniform(0.5, 7.0))
    if rng.random() < 0.5:
        for link in links:
            link.cut()


@harmful("connections delayed")
async def delayed(links: list[Proxy], rng: random.Random) -> None:
    for link in links:
        link.delay_s = rng.uniform(0.02, 0.3)
    await asyncio.sleep(2.0)


@harmful("connections throttled")
async def throttled(links: list[Proxy], rng: random.Random) -> None:
    for link in links:
        link.bytes_per_s = SLOW_BYTES_PER_S
    await asyncio.sleep(2.0)
