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


Key = tuple[int, int]  # of a line, and of a subscription on it


class Listeners:
    """Subscriptions of all lines; of a queue group, one is drawn for each message."""

    def __init__(self) -> None:
        self._literal: dict[str, dict[Key, tuple[Line, int, str]]] = {}
        self._wild: dict[str, dict[Key, tuple[Line, int, str, str]]] = {}  # by their beginning

    def add(self, line: Line, sid: int, subject: str, queue: str) -> None:
        key = (line.number, sid)
        if _is_wild(subject):
            self._wild.setdefault(_beginning(subject), {})[key] = (line, sid, queue, subject)
        else:
            self._literal.setdefault(subject, {})[key] = (line, sid, queue)

    def remove(self, line: Line, sid: int, subject: str) -> None:
        table = self._wild if _is_wild(subject) else self._literal
        place = _beginning(subject) if _is_wild(subject) else subject
        listening = table.get(place, {})
        listening.pop((line.number, sid), None)
        if not listening:
            table.pop(place, None)

    def of(self, subject: str) -> list[tuple[Line, int, str]]:
        """Each subscription: its line, its number there, and its queue group."""
        found = list(self._literal.get(subject, {}).values())
        for place in dict.fromkeys((_beginning(subject), "")):
            for line, sid, queue, pattern in self._wild.get(place, {}).values():
                if matches(pattern, subject):
                    found.append((line, sid, queue))
        return found


def _is_wild(subject: str) -> bool:
    return "*" in subject or ">" in subject


def _beginning(subject: str) -> str:
    """The first two tokens, if they are no wildcards."""
    words = subject.split(".", 2)
    if len(words) < 3 or _is_wild(words[0]) or _is_wild(words[1]):
        return ""
    return f"{words[0]}.{words[1]}"
