"""Limits at work, wired: what is declared, the line before the stream, turns, and who admits."""

from __future__ import annotations

import random
import time
from uuid import UUID

from headway.coordinator.admission_limits import Declared
from headway.coordinator.admission_loop import AdmissionLoop
from headway.coordinator.admission_turns import Turns
from headway.coordinator.admissions import Admissions, Contents, Transport
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
        rng: random.Random,
    ) -> None:
        self._roll = roll
        self.declared = Declared(store)
        self.turns = Turns(store, self.declared, time.monotonic, rng)
        self.commands = Admissions(
            store, self.declared, transport, contents, lambda _decision: None, self._wake
        )
        self._loop = AdmissionLoop(
            coordinator, store, self.declared, self.commands, transport, self._delivering
        )

    async def begin(self) -> None:
        """Know what is declared, before anything is looked after."""
        await self.declared.begin()

    async def step(self) -> None:
        """One look at what waits, and the pause after it."""
        await self._loop.step()

    def operations(self) -> dict[str, Serve]:
        return self.declared.operations()

    def _delivering(self) -> tuple[list[str], frozenset[str]]:
        return list(self._roll.instances()), frozenset()

    def _wake(self) -> None:
        self._loop.wake()
