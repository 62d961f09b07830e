"""The pull loop of worker and coordinator, after ADR-37: one inbox, refilled at half.

It never ends by itself: whatever the server answers, or does not, it asks again. It never asks
for more messages than its owner has room for; after an error it may be given a few more than
that (an older request may still be alive), which the owner hands back with NAK.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

import orjson
from headway.agents.wire import Wire

ACK_WAIT_S = 5.0  # of our consumers: silence after which a message is delivered again
EXPIRES_S = 5.0  # also how long a frozen process goes on swallowing messages
IDLE_HEARTBEAT_S = 2.0
BACKOFF_FIRST_S = 0.2
BACKOFF_MAX_S = 1.0
BATCH_MAX = 1024

ACK = b"+ACK"
NAK = b"-NAK"
IN_PROGRESS = b"+WPI"

_NANOSECONDS = 1_000_000_000
_PENDING = b"nats-pending-messages:"

_log = logging.getLogger("headway.agents.pull")


def term(reason: str) -> bytes:
    """The answer that takes a message out for good; the reason goes into the advisory."""
    return f"+TERM {' '.join(reason.split())}".encode()


@dataclass(slots=True)
class Delivery:
    """One message of a durable consumer. `delivered` counts deliveries from 1."""

    subject: str
    reply: str
    headers: bytes
    body: bytes
    delivered: int
    sequence: int
    stored_at_ms: int


def delivery(subject: str, reply: str, headers: bytes, body: bytes) -> Delivery:
    """Read the ack subject: `$JS.ACK.` then, in its second form only, domain and account hash,
    then stream, consumer, delivered, stream and consumer sequence, time in ns, pending."""
    words = reply.split(".")
    at = 4 if len(words) == 9 else 6
    return Delivery(
        subject,
        reply,
        headers,
        body,
        int(words[at]),
        int(words[at + 1]),
        int(words[at + 3]) // 1_000_000,
    )


class Pull:
    """Pulls from `consumer` of `stream` and calls `on_delivery` for each message.

    `free` says how many messages the owner has room for now, not counting those it was given;
    what is asked for and has not come yet is subtracted here.
    """

    def __init__(
        self,
        wire: Wire,
        stream: str,
        consumer: str,
        on_delivery: Callable[[Delivery], None],
        free: Callable[[], int],
    ) -> None:
        self._wire = wire
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._consumer = f"{stream}.{consumer}"
        self._on_delivery = on_delivery
        self._free = free
        self._inbox = ""
        self._asked = 0  # messages asked for that have not come yet
        self._heard_at = 0.0
        self._backoff_s = 0.0
        self._next: asyncio.Handle | None = None  # the next look at whether to ask
        self._paused = False

    def freed(self) -> None:
        """The owner has more room; looked at once in this turn of the loop."""
        if self._next is None and self._inbox:
            self._next = self._loop.call_soon(self._refill)

    def pause(self) -> None:
        """Ask for no more; what has been asked for may still come."""
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        self.freed()

    async def run(self) -> None:
        """Pull until cancelled. What the server sent before the end is still delivered."""
        self._loop = asyncio.get_running_loop()
        inbox = self._wire.new_inbox()
        forget = self._wire.on_reconnect(self._start_over)
        sid = await self._wire.subscribe(inbox, self._on_message)
        self._inbox = inbox
        self._start_over()
        try:
            while True:
                await asyncio.sleep(IDLE_HEARTBEAT_S)
                silent_s = self._loop.time() - self._heard_at
                if self._asked and silent_s > 2 * IDLE_HEARTBEAT_S:
                    _log.debug("%s: silent for %.1f s, asking again", self._consumer, silent_s)
                    self._start_over()
        finally:
            self._inbox = ""
            self._cancel_next()
            forget()
            await self._wire.unsubscribe(sid)

    def _start_over(self) -> None:
        self._asked = 0
        self._backoff_s = 0.0
        self._heard_at = self._loop.time()
        self._cancel_next()
        self.freed()

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _refill(self) -> None:
        self._next = None
        if self._paused or not self._inbox or not self._wire.connected:
            return  # a reconnect starts over
        room = self._free()
        batch = min(room - self._asked, BATCH_MAX)
        if batch <= 0 or self._asked * 2 > room:
            return
        if not self._asked:
            self._heard_at = self._loop.time()
        self._asked += batch
        request = {
            "batch": batch,
            "expires": int(EXPIRES_S * _NANOSECONDS),
            "idle_heartbeat": int(IDLE_HEARTBEAT_S * _NANOSECONDS),
        }
        self._wire.publish(self._subject, orjson.dumps(request), self._inbox)

    def _on_message(self, subject: str, reply: str, headers: bytes, body: bytes) -> None:
        self._heard_at = self._loop.time()
        if not reply or reply[:8] != "$JS.ACK.":
            self._on_status(headers)
            return
        self._backoff_s = 0.0
        if self._asked:
            self._asked -= 1
        self._on_delivery(delivery(subject, reply, headers, body))
        self.freed()

    def _on_status(self, headers: bytes) -> None:
        """A status of the pull: 100 is a heartbeat; 408 the end of a request; else an error."""
        code = headers[9:12]  # after "NATS/1.0 "
        if code == b"100":
            self._backoff_s = 0.0
            return
        pending = _pending(headers)
        if pending is not None:
            self._asked = max(0, self._asked - pending)
        else:
            self._asked = 0
        if code == b"408":
            self.freed()
            return
        self._backoff_s = min(max(2 * self._backoff_s, BACKOFF_FIRST_S), BACKOFF_MAX_S)
        status = headers.partition(b"\r\n")[0][9:].decode(errors="replace")
        _log.debug("%s: %s; asking again in %.1f s", self._consumer, status, self._backoff_s)
        self._cancel_next()
        self._next = self._loop.call_later(self._backoff_s, self._refill)


def _pending(headers: bytes) -> int | None:
    """`Nats-Pending-Messages`: how many messages of an ended request will not come."""
    at = headers.lower().find(_PENDING)
    if at < 0:
        return None
    value = headers[at + len(_PENDING) :].partition(b"\r\n")[0].strip()
    return int(value) if value.isdigit() else None
