"""What a coordinator looks after beside the engine: timers, streams, consumers, peers, partitions.

Each method is one bounded look; `app` repeats them. What fails is simply tried again.
"""

from __future__ import annotations

import logging
from uuid import UUID

from headway.agents import subjects
from headway.coordinator.catalogue import Catalogue
from headway.coordinator.clock import Clock
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.inlets import Inlets
from headway.coordinator.presence import Roll
from headway.coordinator.store import Store
from headway.coordinator.sweep import LOOK_AHEAD_MS, OTHERS_AGE_MS, Sweep
from headway.coordinator.topology import Topology

_LOG = logging.getLogger(__name__)

PEER_SILENT_MS = 3_000
PARTITIONS = ("ensure_partitions", "ensure_journal_partitions", "ensure_gate_partitions")


class Housekeeping:
    def __init__(
        self,
        coordinator: UUID,
        clock: Clock,
        store: Store,
        topology: Topology,
        catalogue: Catalogue,
        sweep: Sweep,
        inlets: Inlets,
        roll: Roll,
    ) -> None:
        self._coordinator = coordinator
        self._clock = clock
        self._store = store
        self._topology = topology
        self._catalogue = catalogue
        self._sweep = sweep
        self._inlets = inlets
        self._roll = roll
        self._nats_was_away = False

    def nats_was_away(self) -> None:
        """A nats-server that was killed has lost what it had acked and not written yet, and its
        streams look as before: look after all that waits for an answer."""
        self._nats_was_away = True

    async def begin(self) -> None:
        """Partitions, streams and consumers; then what an earlier life left behind."""
        await self._clock.read(self._postgres_ms)
        await self.tend_partitions()
        await self._store.fetch("beat", self._coordinator)
        await self.tend_streams()
        count = await self._sweep.look_over(LOOK_AHEAD_MS)
        if count:
            _LOG.info("looking after %d tasks that wait for an answer", count)

    async def leave(self) -> None:
        """Tell the peers that nothing is left behind."""
        await self._store.fetch("leave", self._coordinator)

    async def sweep(self) -> None:
        """All timers that went off, and all dispatches that are suspect."""
        if self._nats_was_away:
            self._nats_was_away = False
            try:
                await self._sweep.look_over(LOOK_AHEAD_MS)
            except CoordinatorError:
                self._nats_was_away = True
                raise
        while await self._sweep.step():
            pass

    async def tend_streams(self) -> None:
        """A stream that was created anew lost its messages: publish again what is outstanding."""
        rows = await self._store.fetch("stream_identities")
        known = {row["name"]: row["created"] for row in rows}
        now = await self._topology.identities()
        if known == now and self._inlets.tasks_stream_created == now[subjects.TASKS_STREAM]:
            return
        now = await self._topology.declare(await self._catalogue.named())
        self._inlets.tasks_stream_created = now[subjects.TASKS_STREAM]
        lost = [name for name, created in now.items() if known.get(name, created) != created]
        if lost:
            _LOG.warning("%s lost what it held; publishing again", ", ".join(lost))
            await self._sweep.look_over(None)
        for name, created in now.items():
            if known.get(name) != created:
                await self._store.fetch("save_stream_identity", name, created)

    async def tend_agents(self) -> None:
        """A consumer for each agent that was heard of."""
        for agent in self._roll.instances():
            await self._topology.ensure_agent(agent)

    async def tend_peers(self) -> None:
        """Read the clock; say that we live; look after what a peer left that fell silent."""
        await self._clock.read(self._postgres_ms)
        await self._store.fetch("beat", self._coordinator)
        silent = await self._store.fetch("reap_silent", PEER_SILENT_MS)
        if silent:
            _LOG.warning("%d coordinators fell silent; looking after what they left", len(silent))
            await self._sweep.look_over(LOOK_AHEAD_MS, OTHERS_AGE_MS)

    async def tend_partitions(self) -> None:
        """Partitions for the months to come."""
        now = self._clock.now_ms()
        for statement in PARTITIONS:
            await self._store.fetch(statement, now)

    async def _postgres_ms(self) -> int:
        return int((await self._store.fetch("now"))[0]["now"])
