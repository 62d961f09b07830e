"""Lines between clients and the broker: frames that travel, are late, are lost, come twice.

A line is one connection. Always holds: a dead line delivers nothing, in neither direction; without
a fault frames arrive in the order in which they were sent; subscriptions are never lost by
themselves (they are part of the connection), only messages are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from simulation.faults import Chance
from simulation.loop import Timeline

LATENCY_S = 0.0003
DELAY_MAX_S = 6.0
NEVER_S = 1e6
RECEIPT = "receipt"  # a frame that is a PubAck


class Message(NamedTuple):
    """What is published, or delivered."""

    subject: str
    reply: str
    headers: bytes
    body: bytes


class Server(Protocol):
    """What is at the other end of all lines."""

    def arrive(self, line: Line, verb: str, frame: Any) -> None: ...
    def gone(self, line: Line) -> None: ...


class Line:
    """One connection, as both of its ends see it."""

    def __init__(
        self,
        number: int,
        place: str,
        timeline: Timeline,
        chance: Chance,
        server: Server,
        deliver: Callable[[int, Message], None],
        on_pong: Callable[[], None],
        on_lost: Callable[[], None],
    ) -> None:
        self.number = number
        self.place = place
        self.alive = True
        self.noticed: Callable[[], None] = _nothing  # has the client notice that it is broken
        self.subscriptions: dict[int, tuple[str, str]] = {}  # the server's: subject and queue
        self._timeline = timeline
        self._chance = chance
        self._server = server
        self._deliver = deliver
        self._on_pong = on_pong
        self._on_lost = on_lost
        self._rng = chance.rng(f"latency/{place}")
        self._up_at = 0.0
        self._down_at = 0.0

    def send(self, verb: str, frame: Any) -> None:
        """From the client: SUB, UNSUB, PING or PUB."""
        if not self.alive:
            return
        if verb == "PUB":
            for late in self._arrivals("up"):
                if late is None:
                    self._up_at = self._next(self._up_at)
                self._timeline.at(late or self._up_at, self._at_server, verb, frame)
        else:
            self._up_at = self._next(self._up_at)
            self._timeline.at(self._up_at, self._at_server, verb, frame)

    def push(self, sid: int, message: Message, *, receipt: bool = False) -> None:
        """From the server: a message for one of the client's subscriptions."""
        if not self.alive or (receipt and self._chance.hit("lose_ack_of_store", self.place)):
            return
        for late in self._arrivals("down"):
            if late is None:
                self._down_at = self._next(self._down_at)
            self._timeline.at(late or self._down_at, self._at_client, sid, message)

    def pong(self) -> None:
        if self.alive:
            self._down_at = self._next(self._down_at)
            self._timeline.at(self._down_at, self._pong_at_client)

    def close(self) -> None:
        """As by the client: after all that it has written."""
        self._timeline.at(self._next(self._up_at), self.cut)

    def cut(self, server_notices_s: float = 0.0, client_notices_s: float = 0.0) -> None:
        """Break it; each end notices in its own time."""
        if not self.alive:
            return
        self.alive = False
        if client_notices_s < NEVER_S:
            self.noticed = self._on_lost
        self._timeline.after(server_notices_s, self._server.gone, self)
        self._timeline.after(client_notices_s, self._on_lost)

    def _next(self, last: float) -> float:
        return max(last, self._timeline.now + LATENCY_S * (0.3 + 2 * self._rng.random() ** 3))

    def _arrivals(self, way: str) -> list[float | None]:
        """When a message arrives, None being in its turn; empty if it is lost."""
        place, chance = f"{self.place}.{way}", self._chance
        if chance.healed:
            return [None]
        if chance.hit("lose", place):
            return []
        found: list[float | None] = [None]
        late = chance.hit("delay", place)
        if late is not None:
            found = [self._late(late.random())]
        again = chance.hit("repeat", place)
        if again is not None:
            found.append(self._late(again.random()))
        return found

    def _late(self, draw: float) -> float:
        return self._timeline.now + 0.002 + DELAY_MAX_S * draw**4

    def _at_server(self, verb: str, frame: Any) -> None:
        if self.alive:
            self._server.arrive(self, verb, frame)

    def _at_client(self, sid: int, message: Message) -> None:
        if self.alive:
            self._deliver(sid, message)

    def _pong_at_client(self) -> None:
        if self.alive:
            self._on_pong()


def _nothing() -> None:
    return
