"""What the doctor makes of what it finds."""

from __future__ import annotations

import pytest
from headway.cli.findings import clock, note, ok, report, wrong


def test_a_report_with_notes_is_healthy_and_one_with_a_wrong_is_not() -> None:
    assert report([ok("a", "fine"), note("b", "absent", "start it")]).healthy
    assert not report([ok("a", "fine"), wrong("b", "broken", "mend it")]).healthy


@pytest.mark.parametrize(
    ("told", "state"), [(100.0, "ok"), (101.0, "ok"), (101.2, "wrong"), (98.8, "wrong")]
)
def test_a_clock_may_be_off_by_a_second(told: float, state: str) -> None:
    assert clock("x", 100.0, told, 100.0).state == state


def test_a_slow_answer_is_not_taken_for_a_wrong_clock() -> None:
    assert clock("x", 100.0, 103.0, 104.0).state == "ok"
