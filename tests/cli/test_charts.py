"""Pictures in characters: bars on a line of time, lines of columns, and a task's timeline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import UUID

from headway.agents.timeline_views import BarView, MarkView, StepLine, TimelineView
from headway.cli.charts import columns, lane
from headway.cli.watching import picture
from rich.console import Console

BEGAN = datetime(2026, 11, 30, tzinfo=UTC)
TASK = UUID("019e5c00-0000-7000-8000-000000000001")


def after(seconds: float) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def bar(began: float, ended: float | None, kind: str = "attempt", **fields: object) -> BarView:
    until = None if ended is None else after(ended)
    return BarView(kind=kind, began_at=after(began), ended_at=until, **fields)


def test_columns_are_as_high_as_their_values_and_gaps_are_blank() -> None:
    assert columns([0, 1, 50, 100, None]) == " ▁▄█ "
    assert columns([]) == ""
    assert columns([0, None]) == "  "


def test_a_lane_has_each_bar_in_its_time() -> None:
    bars = [
        bar(0, 4, outcome="failed"),
        bar(4, 6, "retry_wait"),
        bar(6, 8, outcome="completed"),
        bar(8, None, phase="compensation"),
    ]
    assert lane(bars, BEGAN, after(10), 20).plain == "━━━━━━━━····━━━━◄◄◄ "
    assert lane([bar(3, 3)], BEGAN, after(10), 10).plain == "   ━      "
    assert lane([], BEGAN, BEGAN, 4).plain == "    "


def test_a_timeline_shows_steps_what_they_wait_for_and_what_people_did() -> None:
    view = TimelineView(
        task=TASK,
        saga="shop",
        saga_version=2,
        status="compensating",
        version=9,
        now=after(10),
        began_at=BEGAN,
        steps=[
            StepLine(
                name="charge",
                kind="action",
                status="compensating",
                bars=[
                    bar(0, 5, attempt=1, outcome="completed"),
                    bar(8, None, attempt=2, phase="compensation", agent="pay"),
                ],
            ),
            StepLine(name="reserve", kind="action", status="completed", kept_from=TASK),
            StepLine(
                name="ship",
                kind="action",
                status="failed",
                bars=[bar(5, 8, attempt=1, outcome="failed", error="NoCarrier")],
            ),
        ],
        marks=[MarkView(at=after(8), kind="cancel", by="ada\x1b[2J", reason="no carrier")],
    )
    console = Console(width=100, record=True, file=StringIO())
    console.print(picture(view, after(10), 100))
    head, _, charge, reserve, ship, mark = console.export_text().splitlines()
    assert head.split() == [str(TASK), "shop", "v2", "compensating", "10.0", "s"]
    assert "◄" in charge
    assert "with pay" in charge
    assert f"kept from task {TASK}"[:20] in reserve
    assert "NoCarrier" in ship
    assert "cancel  by ada\ufffd[2J  no carrier" in mark
