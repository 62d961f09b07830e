"""Taking over from a coordinator that is gone: what it was given, what it left, who asked it.

What it does twice, or for one that is not gone, changes nothing: any coordinator may be given any
message, and a task's version decides. So here the latest knowledge will do, no answer is waited
for, and a coordinator that starts does the same at once for whoever was there before it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from headway.agents import subjects
from headway.agents.pull import NAK
from headway.agents.wire import Wire
from headway.coordinator.held import message_name
from headway.coordinator.jetstream import ask
from headway.coordinator.rollcall import RollCall
from headway.coordinator.store import Store
from headway.coordinator.sweep import LOOK_AHEAD_MS, OTHERS_AGE_MS

_LOG = logging.getLogger(__name__)

GIVEN_BACK_MAX = 20_000  # messages of one stream; more are left to `ack_wait`
_SHARED = (subjects.TASKS_STREAM, subjects.EVENTS_STREAM)


class Succession:
    def __init__(
        self,
        wire: Wire,
        store: Store,
        roll_call: RollCall,
        look_over: Callable[[int | None, int], Awaitable[int]],
    ) -> None:
        self._wire = wire
        self._store = store
        self._roll_call = roll_call
        self._look_over = look_over

    async def begin(self) -> None:
        """Take over from whoever was there before us and is gone."""
        self.ask_again()
        await self._give_back()

    async def succeed(self, lost: Sequence[str]) -> None:
        """Take over from these coordinators, but for those that left in order or that a peer takes
        over from."""
        self.ask_again()
        ours = [name for name in lost if await self._forget(name)]
        if ours:
            _LOG.warning("%d coordinators are gone; taking over what they had", len(ours))
            await self._give_back()
            await self._look_over(LOOK_AHEAD_MS, OTHERS_AGE_MS)

    def ask_again(self) -> None:
        """Tell clients and agents that what they asked may have been lost, or can be done now."""
        if self._wire.connected:
            self._wire.publish(subjects.ASK_AGAIN, b"")

    async def _forget(self, name: str) -> bool:
        """Strike a coordinator off; false if that was done."""
        try:
            return bool(await self._store.fetch("leave", UUID(name)))
        except ValueError:  # not a coordinator of ours
            return False

    async def _give_back(self) -> None:
        """Have all events and submissions that no coordinator has given to one again."""
        holdings = await self._roll_call.holdings(subjects.PEERS)
        held = set() if holdings is None else holdings.held
        for stream in _SHARED:
            info = await ask(self._wire, f"CONSUMER.INFO.{stream}.{subjects.COORDINATOR}")
            for number in _pending(info):
                if message_name(stream, number) not in held:
                    self._wire.publish(_acknowledgement(stream, number, info), NAK)


def _pending(info: dict[str, Any]) -> range:
    """The sequences that may have been given to somebody and not acked."""
    if not info["num_ack_pending"]:
        return range(0)
    first, last = info["ack_floor"]["stream_seq"] + 1, info["delivered"]["stream_seq"]
    return range(first, min(last, first + GIVEN_BACK_MAX - 1) + 1)


def _acknowledgement(stream: str, sequence: int, info: dict[str, Any]) -> str:
    """Where a message is acked. The server ignores one that is not pending or waits for its turn,
    and wants of the consumer's sequence only that it is not acked yet: the last one is not."""
    number, now_ns = info["delivered"]["consumer_seq"], time.time_ns()
    return f"$JS.ACK.{stream}.{subjects.COORDINATOR}.1.{sequence}.{number}.{now_ns}.0"
