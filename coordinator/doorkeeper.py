"""Lets into a nats-server of our own whom the database has granted a key, as soon as it has.

The server goes on while it learns of them. Who was let in last is remembered in the data directory,
so that after a restart nobody waits for the database.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from headway.coordinator.database import Database
from headway.coordinator.datadir import DataDirectory
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.grants import Grants
from headway.coordinator.nats_server import NatsServer
from headway.coordinator.permissions import User, of_agent
from headway.coordinator.supervisor import Supervised

LOOK_INTERVAL_S = 0.5

_log = logging.getLogger("headway.coordinator.doorkeeper")


class Doorkeeper:
    """Of one running server. `own` are the users that it always lets in."""

    def __init__(
        self,
        data: DataDirectory,
        nats: NatsServer,
        process: Supervised,
        own: Sequence[User],
        postgres_url: str,
    ) -> None:
        self._data = data
        self._nats = nats
        self._process = process
        self._own = tuple(own)
        self._database = Database(postgres_url, size=1, pinned_plans=False)
        self._grants = Grants(self._database)
        self._admitted = data.grants()

    async def run(self) -> None:
        """Look every LOOK_INTERVAL_S until cancelled."""
        try:
            while True:
                try:
                    await self._look()
                except CoordinatorError as error:  # no table yet, or the server is being started
                    _log.debug("who may come in cannot be asked now: %s", error)
                await asyncio.sleep(LOOK_INTERVAL_S)
        finally:
            await self._database.close()

    async def _look(self) -> None:
        good = await self._grants.good()
        keys = [{"agent": each.agent, "public_key": each.public_key} for each in good]
        if keys == self._admitted:
            return
        self._nats.admit([*self._own, *admitted(keys)], self._process.pid)
        self._data.keep_grants(keys)
        self._admitted = keys
        _log.info("%d keys of agents are let into NATS", len(keys))


def admitted(keys: Sequence[dict[str, str]]) -> list[User]:
    """The users that have these keys."""
    return [
        User(public_key=each["public_key"], permissions=of_agent(each["agent"])) for each in keys
    ]
