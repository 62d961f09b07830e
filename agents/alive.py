"""Being there: a subscription that nats-server vouches for, and an answer to what one holds.

Each worker listens on its agent's roll subject in a queue group of its own name, so that
nats-server tells a coordinator who is connected. What always holds: to count as there, a process
does nothing at all; frozen, blocked or busy collecting garbage, it is there until its connection
is closed. It listens before it is given work and until it has none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import orjson
from headway.agents.wire import Wire


@dataclass(frozen=True, slots=True)
class Held:
    """An answer to a roll call: an instance, and the subjects of the commands that it has."""

    name: str
    held: list[str]


@dataclass
class Alive:
    """One member of the roll on `subject`."""

    wire: Wire
    subject: str
    name: str
    held: Callable[[], list[str]]

    async def begin(self) -> None:
        """Listen; on return nothing that this connection asks for later can come before."""
        self._sid = await self.wire.subscribe(self.subject, self._answer, queue=self.name)

    async def end(self) -> None:
        """Be there no more: whatever was held is answered, or given back."""
        await self.wire.unsubscribe(self._sid)

    def _answer(self, _subject: str, reply: str, _headers: bytes, _body: bytes) -> None:
        if reply and self.wire.connected:
            self.wire.publish(reply, orjson.dumps(Held(self.name, self.held())))
