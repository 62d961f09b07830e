"""Giving commands to `headway` at a pseudo-terminal, and reading what is drawn there."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HEADWAY = Path(sys.executable).with_name("headway")
SEEN_WITHIN_S = 30.0

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\r")


@dataclass
class Screen:
    """A command at a terminal of 140 columns. `drawn` is all that it wrote, without its colours."""

    process: subprocess.Popen[bytes]
    keyboard: int
    drawn: str = field(default="")

    def read(self, seconds: float = 0.1) -> str:
        """What was drawn until now, or in so many seconds."""
        ready, _, _ = select.select([self.keyboard], [], [], seconds)
        if ready:
            with suppress(OSError):  # Linux says so when nobody holds the other end any more
                told = os.read(self.keyboard, 65_536).decode("utf-8", "replace")
                self.drawn += _CONTROL.sub("", told)
        return self.drawn

    def until(self, *words: str) -> str:
        """Read until all of these words were drawn."""
        deadline = time.monotonic() + SEEN_WITHIN_S
        while time.monotonic() < deadline:
            if all(word in self.read() for word in words):
                return self.drawn
        raise AssertionError(f"not drawn: {words}; but {self.drawn[-2000:]}")

    def press(self, key: str) -> None:
        os.write(self.keyboard, key.encode())

    def end(self) -> int:
        """Read until the command ends; its exit code."""
        deadline = time.monotonic() + SEEN_WITHIN_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        return self.process.wait(1)


@contextmanager
def at_terminal(folder: Path, *arguments: str) -> Iterator[Screen]:
    """`headway` with these arguments, with a terminal as all of its streams."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "50"}
    process = subprocess.Popen(
        [HEADWAY, *arguments],
        cwd=folder,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield Screen(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
