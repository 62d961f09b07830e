"""Which messages a coordinator was given and has not acked, for a peer that asks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from headway.agents.pull import ACK_WAIT_S, Delivery
from headway.coordinator.clock import monotonic


class Held:
    """Stands between pulls and inlets, on both ways."""

    def __init__(
        self,
        acknowledge: Callable[[str, bytes], None],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        self._acknowledge = acknowledge
        self._monotonic = monotonic
        self._held: OrderedDict[str, tuple[str, int, float]] = OrderedDict()  # by reply
        self._oldest_at = 0.0  # none of them came before

    def taking(
        self, stream: str, on_delivery: Callable[[Delivery], None]
    ) -> Callable[[Delivery], None]:
        """`on_delivery` for messages of `stream`, which are held from then on.

        What is not acked within `ack_wait` was given to somebody else, and is forgotten here.
        """

        def take(delivery: Delivery) -> None:
            now = self._monotonic()
            if now - self._oldest_at > ACK_WAIT_S:
                self._forget(now)
            self._held[delivery.reply] = stream, delivery.sequence, now
            on_delivery(delivery)

        return take

    def _forget(self, now: float) -> None:
        while self._held:
            self._oldest_at = next(iter(self._held.values()))[2]  # they are in the order they came
            if now - self._oldest_at <= ACK_WAIT_S:
                return
            self._held.popitem(last=False)
        self._oldest_at = now

    def acknowledge(self, reply: str, answer: bytes) -> None:
        self._held.pop(reply, None)
        self._acknowledge(reply, answer)

    def names(self) -> list[str]:
        return [message_name(stream, sequence) for stream, sequence, _ in self._held.values()]


def message_name(stream: str, sequence: int) -> str:
    """How a coordinator calls a message that it holds."""
    return f"{stream} {sequence}"
