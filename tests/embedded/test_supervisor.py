"""How often a server that falls over is started again, how it is ended, how much it may say."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

import pytest
from harness.eventually import eventually
from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, start_process
from headway.coordinator.supervisor import Supervised, restart_pause_s

STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
signal.pause()
"""


class Faller:
    """A server that is ready at once and falls over at once."""

    name = "faller"

    def __init__(self, log: LogFile) -> None:
        self.log = log

    async def end_leftovers(self) -> None: ...
    async def prepare(self) -> None: ...
    async def wait_ready(self) -> None: ...

    def launch(self) -> Launch:
        return Launch(("sh", "-c", "echo out of luck; exit 3"), {"PATH": os.defpath})


async def test_a_server_that_falls_over_again_and_again_is_slowed_and_its_log_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faller = Supervised(Faller(LogFile(tmp_path / "faller.log")))
    with caplog.at_level(logging.WARNING):
        await faller.start()
        await eventually(lambda: faller.restarts >= 4)
        await faller.stop()
    assert "ended with status 3; again in 0 s" in caplog.text
    assert "ended with status 3; again in 0.25 s" in caplog.text
    assert "falls over again and again; the end of" in caplog.text
    assert "out of luck" in caplog.text


async def test_a_process_that_does_not_heed_a_stop_is_killed(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "stubborn.log")
    process = start_process(Launch((sys.executable, "-c", STUBBORN), {}), log)
    await eventually(lambda: log.tail() == "deaf")
    await process.stop(grace_s=0.1)
    assert await process.exited() == -signal.SIGKILL


def test_the_first_restarts_are_immediate_and_later_ones_are_further_and_further_apart() -> None:
    pauses = [restart_pause_s(quick_ends) for quick_ends in range(1, 12)]
    assert pauses[:4] == [0, 0, 0, 0.25]
    assert pauses == sorted(pauses)
    assert pauses[-1] == restart_pause_s(1_000_000) == 10


def test_a_log_is_set_aside_when_it_has_grown_past_its_limit(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "server.log", size_max_bytes=100)
    with log.open() as writer:
        writer.write(b"x" * 100)
        log.bound()
        assert log.path.stat().st_size == 100
        writer.write(b"\nlast words\n")
        log.bound()
        assert log.path.stat().st_size == 0
        writer.write(b"goes on\n")
    assert log.tail() == "goes on"
    assert (tmp_path / "server.log.1").read_text().endswith("last words\n")


def test_a_log_that_was_never_written_has_no_tail(tmp_path: Path) -> None:
    assert LogFile(tmp_path / "absent.log").tail() == ""
