"""What one coordinator does to be seen by its peers, and to see who is gone: its parts, wired."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from headway.agents import subjects
from headway.agents.alive import Alive
from headway.agents.wire import Wire
from headway.coordinator.held import Held
from headway.coordinator.intake import Item
from headway.coordinator.presence import Roll
from headway.coordinator.rescue import Rescue
from headway.coordinator.rollcall import RollCall
from headway.coordinator.store import Store
from headway.coordinator.succession import Succession
from headway.coordinator.sweep import Sweep
from headway.coordinator.topology import Topology
from headway.coordinator.watch import Watch


class Vigil:
    """`held` is to stand between the pulls and the inlets; `watch` is to look again and again."""

    def __init__(
        self,
        coordinator: UUID,
        wire: Wire,
        store: Store,
        topology: Topology,
        sweep: Sweep,
        roll: Roll,
        put: Callable[[Item], None],
        clock: Callable[[], int],
    ) -> None:
        self.held = Held(wire.publish)
        self._alive = Alive(wire, subjects.PEERS, str(coordinator), self.held.names)
        self._roll_call = RollCall(wire, str(coordinator))
        self.succession = Succession(wire, store, self._roll_call, sweep.look_over)
        rescue = Rescue(topology, store, self._roll_call, put, clock)
        self.watch = Watch(
            self._roll_call.look,
            roll.servers,
            topology.delivered,
            rescue.attempt,
            self.succession.succeed,
        )

    async def begin(self) -> None:
        """Be there; before anything is pulled."""
        await self._roll_call.begin()
        await self._alive.begin()

    async def end(self) -> None:
        """Be there no more; when all that was pulled is answered, or given up."""
        await self._alive.end()
