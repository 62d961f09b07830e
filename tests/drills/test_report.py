"""What a drill's audit calls a difference between histories and the downstream."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from headway.agents.views import HistoryEntry
from headway.drills.report import Trial, differences, report

TASK = UUID(int=7)


def history(*events: str) -> list[HistoryEntry]:
    """`StepCompleted charge` and so on."""
    return [
        HistoryEntry(version=n, type=kind, at=datetime.now(UTC), data={"step": step})
        for n, (kind, _, step) in enumerate((event.partition(" ") for event in events), 1)
    ]


@pytest.mark.parametrize(
    ("events", "effects", "payments", "found"),
    [
        (["StepCompleted ship"], {"ship": "done"}, 0, []),
        (["StepCompleted ship", "StepCompensated ship"], {"ship": "undone"}, 0, []),
        (["StepCompensated ship"], {"ship": "barred"}, 0, []),
        (["StepCompleted ship"], {}, 0, ["ship is done, but its effect is lost"]),
        (
            ["StepCompleted ship"],
            {"ship": "undone"},
            0,
            ["ship is done, but its effect is undone"],
        ),
        (
            ["StepCompleted ship", "StepCompensated ship"],
            {"ship": "done"},
            0,
            ["the effect of ship is there, but it is not done"],
        ),
        ([], {"ship": "done"}, 0, ["the effect of ship is there, but it is not done"]),
        (["StepCompleted charge"], {"charge": "done"}, 2, ["paid 2 times"]),
        (
            ["StepCompleted charge"],
            {"charge": "done"},
            0,
            ["charge is done, but nothing was paid"],
        ),
    ],
)
def test_the_downstream_must_agree_with_the_history(events, effects, payments, found) -> None:
    told = list(differences(TASK, history(*events), effects, payments))
    assert told == [f"task {TASK}: {one}" for one in found]


def trial(**given) -> Trial:
    return Trial(fault="f", round=1, bound_s=1.0, how="", why="", **given)


def test_a_late_recovery_is_one_and_a_difference_fails_the_drill() -> None:
    fine, late = trial(recovered=True, took_s=0.5), trial(recovered=True, took_s=1.5)
    failed = trial(recovered=False)
    assert [one.verdict for one in (fine, late, failed)] == ["recovered", "late", "FAILED"]
    assert report([fine, late], []).ok
    assert not report([fine, failed], []).ok
    assert not report([fine], ["paid twice"]).ok
