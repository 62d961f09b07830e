"""A log file of bounded size that child processes write to directly.

Children append through their own descriptor, so a stalled parent never stalls them. When the file
has grown past its limit it is copied to `<name>.1` and emptied in place; the lines written between
the two are lost, which logs of this kind can bear.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import BinaryIO

SIZE_MAX_BYTES = 8 * 1024 * 1024
TAIL_MAX_BYTES = 4096


class LogFile:
    def __init__(self, path: Path, *, size_max_bytes: int = SIZE_MAX_BYTES) -> None:
        self.path = path
        self._size_max_bytes = size_max_bytes

    def open(self) -> BinaryIO:
        """The file for appending, made if need be; only its owner may read it."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "ab", buffering=0)

    def bound(self) -> None:
        """Set the file aside and empty it when it has grown past its limit."""
        if self.path.exists() and self.path.stat().st_size > self._size_max_bytes:
            try:
                shutil.copyfile(self.path, self.path.with_name(f"{self.path.name}.1"))
            finally:
                os.truncate(self.path, 0)  # a full disk must not keep it growing

    def tail(self, lines: int = 10) -> str:
        """The last lines, for an error message; empty when nothing was written."""
        if not self.path.exists():
            return ""
        with self.path.open("rb") as file:
            file.seek(max(0, self.path.stat().st_size - TAIL_MAX_BYTES))
            text = file.read().decode(errors="replace")
        return "\n".join(text.splitlines()[-lines:])
