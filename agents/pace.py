"""Whether something limits an agent, as far as its worker has heard: then all attempts ask for
their turn, also those whose commands were published before the limit.

Told with the agent's key at the start, and every second on core NATS for as long as it is so.
"""

from __future__ import annotations

import time

from headway.agents.strays import is_signal
from headway.agents.subjects import paced_subject
from headway.agents.wire import Wire

SAID_EVERY_S = 1.0
LAPSE_S = 3.5


class Pace:
    def __init__(self, wire: Wire, agent: str) -> None:
        self._wire = wire
        self._agent = agent
        self._until = 0.0
        self._subscription = 0

    async def begin(self) -> None:
        """Listen."""
        subject = paced_subject(self._agent)
        self._subscription = await self._wire.subscribe(subject, self._on_said)

    async def end(self) -> None:
        await self._wire.unsubscribe(self._subscription)

    def hear(self) -> None:
        """Something limits the agent."""
        self._until = time.monotonic() + LAPSE_S

    @property
    def limited(self) -> bool:
        return time.monotonic() < self._until

    def _on_said(self, _subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        if is_signal(headers, body):
            self.hear()
