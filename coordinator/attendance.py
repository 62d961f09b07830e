"""Who is there, by what nats-server says of who listens, and who is gone for good. Pure.

Always holds: nobody is lost who was there at the last look; who was missed for less than
`lost_after_s` by the watch of him who looks (frozen meanwhile, he has missed nobody); or whose own
nats-server has not answered since: if that went away, its clients are only about to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

FORGOTTEN_AFTER_S = 10.0  # two ack_waits: what was with somebody who is missed so long, is not now


class Look(NamedTuple):
    """Who listened at one moment between `began` and `ended` (seconds, monotonic): by name, the
    server to which each is connected; and all the servers that said so."""

    began: float
    ended: float
    members: Mapping[str, str]
    servers: tuple[str, ...]


@dataclass
class _Seen:
    server: str
    missed_at: float = 0.0
    left_a_server_that_is_up: bool = False


class Attendance:
    """The members of one roll. Give it every look, and only whole ones."""

    def __init__(self, lost_after_s: float) -> None:
        self._lost_after_s = lost_after_s
        self._seen: dict[str, _Seen] = {}
        self._said: set[str] = set()

    def hear(self, said: Mapping[str, str]) -> None:
        """Who says lately that he is there, with the server that he is connected to; so that one
        who goes before the first look is missed, too."""
        for name, server in said.items():
            if name not in self._said and name not in self._seen:
                self._seen[name] = _Seen(server)
        self._said = set(said)

    def take(self, look: Look) -> list[str]:
        """Who is lost as of this look; each is named once."""
        for name, server in look.members.items():
            self._seen[name] = _Seen(server)
        lost: list[str] = []
        for name, seen in list(self._seen.items()):
            if name in look.members:
                continue
            seen.missed_at = seen.missed_at or look.ended
            seen.left_a_server_that_is_up |= seen.server in look.servers
            missed_s = look.began - seen.missed_at
            if seen.left_a_server_that_is_up and missed_s >= self._lost_after_s:
                lost.append(name)
            if name in lost or missed_s >= FORGOTTEN_AFTER_S:
                del self._seen[name]
        return lost

    @property
    def missed(self) -> list[str]:
        """Who was not there at the last look, and may come back."""
        return [name for name, seen in self._seen.items() if seen.missed_at]

    def __bool__(self) -> bool:
        return bool(self._seen)
