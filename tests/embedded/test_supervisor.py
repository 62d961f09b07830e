"""How often a server that falls over is started again, and how much it may say."""

from __future__ import annotations

from pathlib import Path

from headway.coordinator.logfile import LogFile
from headway.coordinator.supervisor import restart_pause_s


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
