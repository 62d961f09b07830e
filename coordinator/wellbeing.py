"""How a coordinator and its servers are: the operation `health`, and what it must have to serve."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version

from headway.agents.reading import Health
from headway.agents.views import Nothing
from headway.agents.wire import Wire
from headway.coordinator.errors import BusUnavailable
from headway.coordinator.http_probes import Look
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.topology import Topology


class Wellbeing:
    def __init__(self, wire: Wire, store: Store, topology: Topology) -> None:
        self._wire = wire
        self._store = store
        self._topology = topology

    def operations(self) -> dict[str, Serve]:
        return {"health": typed(Nothing, Health, self.tell)}

    async def tell(self, _request: Nothing) -> Health:
        row = (await self._store.fetch("now"))[0]
        return Health(
            status="ok",
            postgres=row["version"],
            nats=self._topology.server_version,
            version=version("headway"),
            now=datetime.now(UTC),
        )

    def looks(self) -> dict[str, Look]:
        """By name, what finds out whether it is there."""
        return {
            "PostgreSQL": partial(self._store.fetch, "now"),
            "NATS": self._reach,
            "streams": self._topology.check_streams,
        }

    async def _reach(self) -> None:
        """Return once NATS has answered; BusUnavailable or TimeoutError if it does not."""
        if not self._wire.connected:
            raise BusUnavailable("there is no connection to NATS")
        await self._wire.flush()
