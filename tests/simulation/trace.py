"""What happened in a run, line by line, and a digest of all of it."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

KEPT_MAX = 400


class Trace:
    """Keeps the last lines, or hands each to `tell`; the digest covers every one."""

    def __init__(self, now: Callable[[], float], tell: Callable[[str], None] | None = None) -> None:
        self.lines = 0
        self._now = now
        self._tell = tell
        self._digest = hashlib.blake2b(digest_size=8)
        self._last: deque[str] = deque(maxlen=KEPT_MAX)

    def add(self, *words: object) -> None:
        line = f"{self._now():10.5f} {' '.join(map(str, words))}"
        self.lines += 1
        self._digest.update(line.encode())
        if self._tell is None:
            self._last.append(line)
        else:
            self._tell(line)

    def digest(self) -> str:
        return self._digest.hexdigest()

    def last(self) -> list[str]:
        return list(self._last)
