"""A simulated process: its loop, clock, randomness and connections; its deaths and new lives.

Always holds: what a life left behind has no effect any more. Its callbacks are never run, its
connections deliver nothing, and what Python closes of it later runs into both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from headway.agents.connection import Connection
from simulation.client import SimulatedClient, connected
from simulation.clocks import Clock
from simulation.loop import Loop, Pace
from simulation.world import World

SKEW_MAX_S = 40.0
DRIFT_MAX = 0.02
AIMED_FREEZE_MAX_S = 18.0  # more than three times what lets another worker take over

Main = Callable[["Process"], Coroutine[Any, Any, None]]


class Process:
    """`main` is run in each of its lives; a process whose main returns is over."""

    def __init__(self, world: World, name: str, main: Main) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.over = False
        self.stop = asyncio.Event()
        chance = world.chance
        skew, slow = chance.hit("skew", name), chance.hit("slow", name)
        self.clock = Clock(world.timeline)
        if skew is not None:
            self.clock.skew_s = skew.uniform(-SKEW_MAX_S, SKEW_MAX_S) * skew.random() ** 2
            self.clock.rate = 1 + skew.uniform(-DRIFT_MAX, DRIFT_MAX)
        self._slowness = 0.0 if slow is None else 0.3 * slow.random() ** 2
        self._main = main
        self._clients: list[SimulatedClient] = []
        self.rng: Random
        self.loop: Loop
        self.begin()

    @property
    def alive(self) -> bool:
        return not self.loop.dead

    def begin(self) -> None:
        """A new life."""
        world = self.world
        self.lives += 1
        self.rng = world.chance.rng(f"process/{self.name}/{self.lives}")
        pace = Pace(
            world.chance.rng(f"pace/{self.name}/{self.lives}"),
            slowness=self._slowness,
            permute=world.permute,
        )
        self.loop = Loop(
            world.timeline,
            pace,
            self.clock.monotonic,
            self.clock.until,
            lambda _loop: world.enter(self),
            self._failed,
        )
        self.loop.on_death = self.die
        self.loop.process = self
        self._clients = []
        self._asked_to_stop = False
        self.stop = asyncio.Event()
        world.told("begins", self.name, self.lives)
        world.enter(self)
        self.loop.create_task(self._run())

    def ask_to_stop(self) -> None:
        """As by SIGTERM: it ends when it likes, and is started again."""
        self._asked_to_stop = True
        self.loop.call_soon(self.stop.set)

    def die_soon(self, kind: str, callbacks: int) -> None:
        """If chance says so: within so many callbacks from now."""
        crash = self.world.chance.hit(kind, self.name)
        if crash is not None:
            self.loop.dies_after = int(callbacks * crash.random() ** 2)

    def freeze_soon(self, kind: str, callbacks: int) -> None:
        """If chance says so: within so many callbacks from now."""
        freeze = self.world.chance.hit(kind, self.name)
        if freeze is not None:
            after = int(callbacks * freeze.random() ** 2)
            self.loop.freezes_after = after, AIMED_FREEZE_MAX_S * freeze.random()

    def die(self) -> None:
        """As by SIGKILL, between any two callbacks."""
        if self.loop.dead:
            return
        self.loop.kill()
        for client in self._clients:
            client.vanish()
        self.world.graves.append(self.loop)
        self.world.told("dies", self.name, self.lives)
        self.world.died(self)

    def die_quietly(self) -> None:
        """At the end of a run."""
        self.loop.kill()
        for client in self._clients:
            client.vanish()
        self._clients.clear()
        self.stop = asyncio.Event()

    def quicken(self) -> None:
        """Once healed: no longer slow, frozen or about to die."""
        self._slowness = 0.0
        self.loop.dies_after = self.loop.freezes_after = None
        self.loop._pace.slowness = 0.0
        self.loop.thaw()

    async def connect(
        self,
        _url: str = "",
        *,
        name: str = "",
        inbox_prefix: str = "_INBOX",
        wait: bool = True,
        timeout: float = 5.0,
        **_options: Any,
    ) -> Connection:
        """As `agents.connection.connect`."""
        world = self.world
        place = f"{self.name}.{self.lives}"
        if self._clients:
            place += f".{len(self._clients)}"
        client = SimulatedClient(world.broker, world.timeline, world.chance, place, inbox_prefix)
        self._clients.append(client)
        return await connected(client, wait=wait, timeout=timeout)

    def lines(self) -> list[Any]:
        return [client.line for client in self._clients if client.line is not None]

    async def _run(self) -> None:
        try:
            await self._main(self)
            if self._asked_to_stop:
                self.world.told("stopped", self.name)
                self.die()
                return
            self.over = True
            self.world.told("over", self.name)
        except Exception as error:
            if self.loop.dead:
                return
            self.world.fail(f"{self.name} ended by {type(error).__name__}: {error}", error)

    def _failed(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.world.fail(f"{self.name}: {context.get('message')}: {error!r}", error)
