"""The whole demo, as a person runs it: it holds under fire, cleans up, and refuses bad input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness.eventually import eventually
from headway.agents import InvalidInput
from headway.demo import run
from headway.demo.killer import VICTIMS
from headway.demo.orders import generate, write_orders
from headway.demo.report import Latency, Report
from headway.demo.run import Scenario, run_demo

SEED = 3
ENDS_WITHIN_S = 240.0  # of which a task that never settles takes half
HEADWAY = (sys.executable, "-P", "-m", "headway.cli.main")


def _left_over(directory: Path) -> list[psutil.Process]:
    """Processes that were started for data in `directory`, and are still there."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        traces = [process.info["cwd"] or "", *(process.info["cmdline"] or [])]
        if any(str(directory) in trace for trace in traces):
            found.append(process)
    return found


def test_a_users_orders_are_served_while_everyone_is_killed_once(tmp_path: Path) -> None:
    write_orders(tmp_path / "mine.jsonl", generate(60, SEED))
    command = [*HEADWAY, "demo", "--orders", "mine.jsonl", "--seed", str(SEED)]
    command += ["--kills", str(len(VICTIMS)), "--json", "--keep", "kept"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, timeout=ENDS_WITHIN_S, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = Report.model_validate_json(ran.stdout)
    assert report.holds
    assert (report.lost, report.duplicates_applied) == (0, 0)
    assert report.kills == dict.fromkeys(sorted(VICTIMS), 1)
    assert sum(report.tasks["fulfil-order"].values()) == 60
    assert {"succeeded", "compensated"} <= report.tasks["fulfil-order"].keys()
    assert ran.stderr.count(b"SIGKILL") == len(VICTIMS)
    assert (tmp_path / "kept" / "desk" / "downstream.sqlite3").exists()
    assert _left_over(tmp_path) == []


def _start_demo(temporary: Path, narration: Path) -> subprocess.Popen[bytes]:
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    with narration.open("wb") as stderr:
        return subprocess.Popen([*HEADWAY, "demo", "--kills", "0"], env=env, stderr=stderr)


async def test_sigterm_ends_it_in_order_and_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary, narration = tmp_path / "temporary", tmp_path / "narration"
    demo = _start_demo(temporary, narration)
    await eventually(lambda: b"Open:" in narration.read_bytes(), within_s=60)
    demo.send_signal(signal.SIGTERM)
    assert demo.wait(timeout=60) == 130
    assert os.listdir(temporary) == []
    assert _left_over(tmp_path) == []


def test_a_bad_orders_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{}\n")
    with pytest.raises(InvalidInput, match=r"line 1: order: Field required"):
        run_demo(orders=tmp_path / "bad.jsonl", keep=tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


def test_a_directory_with_something_in_it_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear diary")
    with pytest.raises(InvalidInput, match="is not empty; name a new directory"):
        run_demo(count=1, keep=tmp_path)
    with pytest.raises(InvalidInput, match="cannot keep data"):
        run_demo(count=1, keep=tmp_path / "letter")


@pytest.mark.parametrize("holds", [True, False])
def test_the_exit_status_is_0_only_if_the_audit_holds(
    holds: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = Report.model_construct(
        seed=1, orders=1, duration_s=1.0, tasks={}, kills={}, parked=[], findings=[], holds=holds
    )
    figures = dict.fromkeys(Report.model_fields.keys() - report.model_fields_set, 0)
    report = report.model_copy(update=figures | {"latency": Latency(p50_ms=1, p99_ms=2)})

    async def ran(*_arguments: Any) -> Report:
        return report

    monkeypatch.setattr(run, "_run", ran)
    assert run_demo(count=1, as_json=True) == (0 if holds else 1)
    assert Report.model_validate_json(capsys.readouterr().out) == report


def test_orders_come_long_enough_for_all_kills_to_meet_some() -> None:
    assert Scenario(generate(300, 1), 1, 0).span_s == 25.0
    assert Scenario(generate(12, 1), 1, 12).span_s == 18.0
