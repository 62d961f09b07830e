"""Giving commands to `headway` as a person or a script would: in a folder; as processes, or, where
a process is not the point, in this one, which takes a tenth of the time."""

from __future__ import annotations

import io
import json
import logging
import os
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from headway.cli.main import main

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

    def run_here(self, *arguments: str) -> Ended:
        """Run `headway` to its end in this process; one at a time."""
        with chdir(self.folder), _process(self._environment(), arguments) as (out, err):
            code = 0
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
            except BaseException:
                code = 1
                traceback.print_exc()
        return Ended(code, _text(out), _text(err))

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


@contextmanager
def _process(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """What a process has for itself, and what nobody sees of it afterwards: arguments, environment,
    standard streams, and where log records go."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    log = logging.getLogger()
    with (
        patch.object(sys, "argv", ["headway", *arguments]),
        patch.object(sys, "stdin", io.StringIO()),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
        patch.object(log, "handlers", []),
        patch.object(log, "level", logging.WARNING),
        patch.dict(os.environ, environment, clear=True),
    ):
        yield out, err


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
