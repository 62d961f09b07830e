"""Limits and breakers at work, wired: what is declared, the line, turns, and who admits."""

from __future__ import annotations

import random
import time
from uuid import UUID

from headway.agents.wire import Wire
from headway.coordinator.admission_limits import Declared
from headway.coordinator.admission_loop import AdmissionLoop
from headway.coordinator.admission_turns import Turns
from headway.coordinator.admission_words import Explanations
from headway.coordinator.admissions import Admissions, Contents, Transport
from headway.coordinator.breakers import Breakers
from headway.coordinator.clock import now_ms
from headway.coordinator.limits import agent_place
from headway.coordinator.presence import Roll
from headway.coordinator.serving import Serve
from headway.coordinator.store import Store


class Admission:
    """`commands` stands before the bus, for the engine, and before the streams, for the sweep."""

    def __init__(
        self,
        coordinator: UUID,
        store: Store,
        transport: Transport,
        contents: Contents,
        roll: Roll,
        wire: Wire,
        rng: random.Random,
    ) -> None:
        self._roll = roll
        self.declared = Declared(store)
        self.breakers = Breakers(store, wire, now_ms, rng, self._wake)
        self.explain = Explanations(store, self.declared, self.breakers, roll)
        self.turns = Turns(store, self.declared, time.monotonic, rng)
        self.commands = Admissions(
            store, self.declared, transport, contents, self.breakers.observe, self._wake
        )
        self._loop = AdmissionLoop(
            coordinator,
            store,
            self.declared,
            self.commands,
            transport,
            self._delivering,
            wire.publish,
        )

    async def begin(self) -> None:
        """Know what is declared, before anything is looked after."""
        await self.declared.begin()
        await self.breakers.learn()

    async def step(self) -> None:
        """One look at what waits, and the pause after it."""
        await self._loop.step()

    def operations(self) -> dict[str, Serve]:
        return {**self.declared.operations(), **self.breakers.operations()}

    def _delivering(self) -> tuple[list[str], frozenset[str]]:
        breakers = [self.breakers.of(agent) for agent in self._roll.instances()]
        delivering = [each.agent for each in breakers if each.delivers]
        probing = (agent_place(each.agent) for each in breakers if each.state == "probing")
        return delivering, frozenset(probing)

    def _wake(self) -> None:
        self._loop.wake()
