"""Saying that an instance of an agent is there: every second, on core NATS, lossy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from headway.agents.catalogue_views import (
    INSTANCE_HEADER,
    PRESENCE_INTERVAL_S,
    Instance,
    Presence,
)
from headway.agents.headers import header_block
from headway.agents.subjects import presence_subject
from headway.agents.wire import Wire


class PresenceTeller:
    """Says what `look` sees; nothing is kept for a server that is away."""

    def __init__(
        self, wire: Wire, look: Callable[[], Presence], itself: Callable[[], Instance]
    ) -> None:
        """`itself` tells what coordinators may do without."""
        self._wire = wire
        self._look = look
        self._itself = itself

    def say(self) -> None:
        """Say it now, as when an instance begins to stop."""
        if self._wire.connected:
            presence = self._look()
            self._wire.publish(
                presence_subject(presence.agent),
                presence.model_dump_json().encode(),
                headers=header_block({INSTANCE_HEADER: self._itself().model_dump_json()}),
            )

    async def run(self) -> None:
        """Say it every PRESENCE_INTERVAL_S until cancelled, and at once after a reconnect."""
        forget = self._wire.on_reconnect(self.say)
        try:
            while True:
                self.say()
                await asyncio.sleep(PRESENCE_INTERVAL_S)
        finally:
            forget()
