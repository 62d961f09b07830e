"""Who listens on a subject: literal subjects by a table, wildcards one by one."""

from __future__ import annotations

from functools import lru_cache

from simulation.network import Line


@lru_cache(maxsize=100_000)
def matches(pattern: str, subject: str) -> bool:
    """Whether NATS takes `subject` for one of `pattern`."""
    if pattern == subject:
        return True
    wanted, words = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(words) > place
        if place >= len(words) or (token != "*" and token != words[place]):
            return False
    return len(wanted) == len(words)


class Listeners:
    """Subscriptions of all lines; of a queue group, one is drawn for each message."""

    def __init__(self) -> None:
        self._literal: dict[str, dict[tuple[int, int], tuple[Line, int, str]]] = {}
        self._wild: dict[tuple[int, int], tuple[Line, int, str, str]] = {}

    def add(self, line: Line, sid: int, subject: str, queue: str) -> None:
        key = (line.number, sid)
        if "*" in subject or ">" in subject:
            self._wild[key] = (line, sid, queue, subject)
        else:
            self._literal.setdefault(subject, {})[key] = (line, sid, queue)

    def remove(self, line: Line, sid: int, subject: str) -> None:
        key = (line.number, sid)
        self._wild.pop(key, None)
        listening = self._literal.get(subject)
        if listening is not None:
            listening.pop(key, None)
            if not listening:
                del self._literal[subject]

    def of(self, subject: str) -> list[tuple[Line, int, str]]:
        """Each subscription: its line, its number there, and its queue group."""
        found = list(self._literal.get(subject, {}).values())
        for line, sid, queue, pattern in self._wild.values():
            if matches(pattern, subject):
                found.append((line, sid, queue))
        return found
