"""Which messages a coordinator was given and has not acked, for a peer that asks."""

from __future__ import annotations

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
        self._held: dict[str, tuple[str, int, float]] = {}  # by reply, oldest first

    def taking(
        self, stream: str, on_delivery: Callable[[Delivery], None]
    ) -> Callable[[Delivery], None]:
        """`on_delivery` for messages of `stream`, which are held from then on.

        What is not acked within `ack_wait` was given to somebody else, and is forgotten here.
        """

        def take(delivery: Delivery) -> None:
            now = self._monotonic()
            for oldest, (_, _, since) in self._held.items():
                if now - since > ACK_WAIT_S:
                    del self._held[oldest]
                break
            self._held[delivery.reply] = stream, delivery.sequence, now
            on_delivery(delivery)

        return take

    def acknowledge(self, reply: str, answer: bytes) -> None:
        self._held.pop(reply, None)
        self._acknowledge(reply, answer)

    def names(self) -> list[str]:
        return [message_name(stream, sequence) for stream, sequence, _ in self._held.values()]


def message_name(stream: str, sequence: int) -> str:
    """How a coordinator calls a message that it holds."""
    return f"{stream} {sequence}"
