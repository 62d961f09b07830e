"""Giving commands to `headway` as a person or a script would: as processes, in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADWAY = Path(sys.executable).with_name("headway")
ANSWER_WITHIN_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True)
class Ended:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Shell:
    """A folder in which commands are given."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str, stdin: str = "") -> Ended:
        """Run `headway` to its end."""
        ended = subprocess.run(
            [HEADWAY, *arguments],
            cwd=self.folder,
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_WITHIN_S,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `headway` and leave it running; its standard error goes to a file."""
        with (self.folder / f"{arguments[0]}.log").open("w") as log:
            return subprocess.Popen(
                [HEADWAY, *arguments],
                cwd=self.folder,
                env=self._environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def until_logged(self, command: str, words: str) -> None:
        """Wait until a command that was started has written `words` to standard error."""
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while words not in (self.folder / f"{command}.log").read_text():
            assert time.monotonic() < deadline, f"`headway {command}` never said {words!r}"
            time.sleep(POLL_S)

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HEADWAY_")}
        return kept | self.environment
