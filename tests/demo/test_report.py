"""The report: figures that agree with the day they are counted from, for people and programs."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from headway.agents.views import HistoryEntry
from headway.demo.audit import Finding, audit
from headway.demo.killer import Killed
from headway.demo.report import FINDINGS_SHOWN_MAX, Report, compile_report, percentile, render
from rich.console import Console

KILLS = [Killed(1.0, "mail", 11), Killed(2.0, "nats-server", 12), Killed(3.0, "mail", 13)]


def _report(desk: Any, *findings: Finding, **changes: Any) -> Report:
    case = replace(desk.case(), **changes)
    return compile_report(7, case, findings, KILLS, [0.1, 0.2, 0.3], 12.345)


def _shown(report: Report) -> str:
    console = Console(file=io.StringIO(), width=120, markup=False)
    console.print(render(report))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_an_honest_day_is_counted_as_it_was(desk: Any) -> None:
    report = _report(desk)
    assert report.holds
    assert report.orders == 8
    assert report.tasks == {
        "fulfil-order": {"compensated": 3, "parked": 1, "succeeded": 4},
        "refund": {"compensated": 1, "succeeded": 1},
    }
    assert report.kills == {"mail": 2, "nats-server": 1}
    assert (report.lost, report.duplicates_applied) == (0, 0)
    assert [(one.order, one.saga) for one in report.parked] == [("bounced", "fulfil-order")]
    assert report.calls == len(desk.case().evidence.calls)


def test_a_fit_of_history_is_counted_by_what_happened(desk: Any) -> None:
    kinds = ["AttemptClaimed", "AttemptRepublished", "AttemptTimedOut", "AttemptFailed"]
    claim = desk.claims[0]
    entry = claim.history[0]
    history = [
        HistoryEntry(version=n, type=kind, at=entry.at, data={"retry_at": 1})
        for n, kind in enumerate(kinds, start=1)
    ]
    history.append(HistoryEntry(version=5, type="AttemptFailed", at=entry.at))
    report = _report(desk, claims=[replace(claim, history=tuple(history))])
    assert (report.recoveries, report.republished, report.timed_out, report.retried) == (1, 1, 1, 1)


def test_findings_are_counted_by_what_they_mean_and_spoil_the_day(desk: Any) -> None:
    findings = [
        Finding("lost", "O-1", "step charge is completed, its effect is unheard of"),
        Finding("twice", "O-2", "warehouse.ship was applied 2 times"),
        Finding("money", "till", "holds 1"),
    ]
    report = _report(desk, *findings)
    assert not report.holds
    assert (report.lost, report.duplicates_applied) == (1, 1)
    assert "warehouse.ship was applied 2 times" in _shown(report)
    assert "3 findings" in _shown(report)


def test_many_findings_are_cut_short_and_counted(desk: Any) -> None:
    findings = [Finding("lost", f"O-{n}", "gone") for n in range(FINDINGS_SHOWN_MAX + 5)]
    assert "and 5 more findings" in _shown(_report(desk, *findings))


def test_people_see_what_they_came_for(desk: Any) -> None:
    shown = _shown(_report(desk))
    for expected in (
        "8 orders in 12.3 s, seed 7",
        "3 compensated, 1 parked, 4 succeeded",
        "2 mail, 1 nats-server",
        "p50 200 ms, p99 300 ms",
        "parked: bounced, fulfil-order: a step was refused",
    ):
        assert expected in shown


def test_the_json_form_holds_the_same(desk: Any) -> None:
    case = desk.case()
    report = _report(desk, *audit(case.orders, case.claims, case.evidence))
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_text_from_orders_cannot_play_with_the_terminal(desk: Any) -> None:
    shown = _shown(_report(desk, Finding("lost", "\x1b[2J", "[red]gone[/red]")))
    assert "\x1b" not in shown
    assert "[red]gone[/red]" in shown


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, 0.0),
        ([3.0], 99, 3.0),
        ([4.0, 1.0, 3.0, 2.0], 50, 2.0),
        ([float(n) for n in range(1, 101)], 99, 99.0),
    ],
)
def test_percentiles_are_values_that_occurred(
    values: list[float], percent: int, expected: float
) -> None:
    assert percentile(values, percent) == expected
