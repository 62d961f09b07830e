"""A delivered command until it is settled: its event is stored first, then it is acked.

What always holds: +ACK only after the stream confirmed the event, or when nobody wants one; no
answer at all for a command that another worker has now; at most one event ends an attempt; an
event that is not confirmed is stored again until it is, while +WPI keeps the command with us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from headway.agents.pull import ACK, IN_PROGRESS, NAK, Delivery
from headway.agents.wire import StoreError, Wire

STORE_AGAIN_FIRST_S = 0.1
STORE_AGAIN_MAX_S = 1.0

_log = logging.getLogger("headway.agents.settlement")


class Settlement:
    """Where one command stands with the streams. `on_settled` is called once, at the end."""

    def __init__(
        self, wire: Wire, delivery: Delivery, event_subject: str, on_settled: Callable[[], None]
    ) -> None:
        self.settled = False
        self.reported = False  # the event that ends the attempt is known
        self._wire = wire
        self._delivery = delivery
        self._event_subject = event_subject
        self._on_settled: Callable[[], None] | None = on_settled
        self._event = b""
        self._again_s = 0.0
        self._again: asyncio.TimerHandle | None = None  # when the event is stored once more

    def is_of(self, delivery: Delivery) -> bool:
        """Whether `delivery` brings the very same command."""
        return self._delivery.body == delivery.body

    def adopt(self, delivery: Delivery) -> None:
        """The command was delivered again although we are at it: answer the newer delivery."""
        self._delivery = delivery
        self.keep()

    def keep(self) -> None:
        """Tell the server that we are at it, so that nobody else is given the command; and store
        the event now if that failed, as after a reconnect."""
        if self.settled:
            return
        self._wire.publish(self._delivery.reply, IN_PROGRESS)
        if self._again is not None:
            self._again.cancel()
            self._store()

    def report(self, event: bytes) -> None:
        """Store `event`, as long as it takes, then ack; ignored if one was reported before."""
        if not self.reported and not self.settled:
            self.reported = True
            self._event = event
            self._store()

    def drop(self) -> None:
        """Ack without an event: nobody wants one."""
        self._settle(ACK)

    def abandon(self) -> None:
        """Say nothing: another worker has the command, and an ack would take it from that one."""
        self._settle(b"")

    def hand_back(self) -> None:
        """Give the command to whoever pulls next, at once."""
        self._settle(NAK)

    def _store(self) -> None:
        self._again = None
        if not self.settled and not self._wire.closed:
            self._wire.store(self._event_subject, self._event, self._on_stored)

    def _on_stored(self, error: StoreError | None) -> None:
        if error is None or self.settled:
            self._settle(ACK)
            return
        if self._again_s == STORE_AGAIN_MAX_S and self._wire.connected:
            _log.warning("%s: an event cannot be stored yet: %s", self._event_subject, error)
        self._again_s = min(max(2 * self._again_s, STORE_AGAIN_FIRST_S), STORE_AGAIN_MAX_S)
        self._again = asyncio.get_running_loop().call_later(self._again_s, self._store)

    def _settle(self, answer: bytes) -> None:
        if self.settled:
            return
        self.settled = True
        if answer and not self._wire.closed:
            self._wire.publish(self._delivery.reply, answer)
        on_settled, self._on_settled = self._on_settled, None  # or it is garbage in a cycle
        if on_settled is not None:
            on_settled()
