"""What happened to a task, in time: laws over all stored histories, and single stories."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from harness.histories import FILES, told
from headway.agents.timeline_views import BarView, StepLine, TimelineView
from headway.coordinator.family import child_id
from headway.coordinator.timeline import timeline
from headway.sagas import events as e
from headway.sagas import replay

SAGAS = Path(__file__).parent.parent / "sagas"
TASK = UUID("01890000-0000-7000-8000-000000000001")
BEGAN = 1_800_000_000_000


def drawn(file: Path) -> TimelineView:
    definition, events = told(file)
    return timeline(TASK, definition, events, events[-1].at + 1_000)


def named(story: str) -> TimelineView:
    return drawn(SAGAS / "histories" / f"{story}.jsonl")


def step(view: TimelineView, name: str) -> StepLine:
    return next(line for line in view.steps if line.name == name)


def told_by(bars: list[BarView]) -> list[tuple[Any, ...]]:
    return [(bar.kind, bar.phase, bar.attempt, bar.outcome) for bar in bars]


def bars_of(view: TimelineView) -> list[BarView]:
    return [*view.holds, *(bar for line in view.steps for bar in line.bars)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_dispatched_attempt_has_one_bar(file: Path) -> None:
    _, events = told(file)
    view = drawn(file)
    dispatched = [
        (event.step, event.phase.value, event.attempt)
        for event in events
        if isinstance(event, e.AttemptDispatched)
    ]
    attempts = [
        (line.name, bar.phase, bar.attempt)
        for line in view.steps
        for bar in line.bars
        if bar.kind in ("attempt", "wait")
    ]
    assert sorted(attempts) == sorted(dispatched)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_bar_ends_after_it_began_and_all_end_with_the_task(file: Path) -> None:
    view = drawn(file)
    for bar in bars_of(view):
        assert bar.ended_at is None or bar.ended_at >= bar.began_at
        assert (bar.ended_at is None) == (bar.outcome == "running")
        assert bar.started_at is None or bar.started_at >= bar.began_at
        if view.status in ("succeeded", "compensated"):
            assert bar.ended_at is not None, bar


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_open_bars_are_what_the_state_waits_for(file: Path) -> None:
    definition, events = told(file)
    for count in range(1, len(events) + 1):
        state = replay(definition, events[:count])
        view = timeline(TASK, definition, events[:count], events[count - 1].at)
        for line in view.steps:
            going = [bar.kind for bar in line.bars if bar.ended_at is None and bar.kind != "hold"]
            known = state.steps[line.name]
            if known.outstanding:
                kinds = ["attempt" if line.kind in ("action", "child") else "wait"]
            else:
                kinds = ["retry_wait"] if known.retry_at else []
            assert going == kinds, (count, line.name, events[count - 1])
        assert (view.settled_at is not None) == (state.ended or state.parked), count


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_compensations_are_chained_in_the_order_in_which_they_were_begun(file: Path) -> None:
    _, events = told(file)
    begun = [
        event.step
        for event in events
        if isinstance(event, e.AttemptDispatched)
        and event.phase == "compensation"
        and event.attempt == 1
    ]
    view = drawn(file)
    chain = [link.step for link in view.compensations]
    assert chain[: len(begun)] == begun
    assert [link.order for link in view.compensations] == list(range(1, len(chain) + 1))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_timeline_survives_its_own_json(file: Path) -> None:
    view = drawn(file)
    assert TimelineView.model_validate_json(view.model_dump_json()) == view


def test_a_retry_is_shown_with_its_wait() -> None:
    view = named("a-retry-succeeds-after-faults")
    line = step(view, "a")
    assert told_by(line.bars) == [
        ("attempt", "action", 1, "failed"),
        ("retry_wait", "action", 0, "over"),
        ("attempt", "action", 2, "failed"),
        ("retry_wait", "action", 0, "over"),
        ("attempt", "action", 3, "completed"),
    ]
    assert all(
        before.ended_at == after.began_at
        for before, after in zip(line.bars, line.bars[1:], strict=False)
    )
    assert line.bars[0].started_at is not None
    assert line.bars[0].agent == "agent"
    assert line.bars[1].due_at == line.bars[1].ended_at


def test_a_take_over_stays_within_the_bar_of_its_attempt() -> None:
    view = named("a-lost-command-is-published-again-and-taken-over")
    [bar] = step(view, "a").bars
    assert [(over.kind, over.worker) for over in bar.take_overs] == [
        ("republished", ""),
        ("claimed", "w-2"),
    ]
    assert (bar.worker, bar.outcome) == ("w-2", "completed")


def test_a_late_success_ends_the_attempt_that_had_been_given_up() -> None:
    view = named("a-charge-times-out-and-its-late-success-is-refunded")
    first = step(view, "charge").bars[0]
    assert (first.attempt, first.outcome, first.late, first.error) == (1, "completed", True, "")
    assert [mark.kind for mark in view.marks] == [
        "submitted",
        "recovery",
        "late_success",
        "compensated",
    ]


def test_a_compensation_tells_what_it_undoes() -> None:
    view = named("a-declined-card-releases-the-stock")
    [link] = view.compensations
    assert (link.step, link.undoes, link.compensation, link.status) == (
        "reserve",
        "inventory.reserve",
        "inventory.release",
        "compensated",
    )
    assert link.ended_at is not None
    assert step(view, "ship").pivot


def test_what_is_still_to_be_undone_stands_last_in_the_chain() -> None:
    definition, events = told(
        SAGAS / "histories" / "a-cancelled-task-waits-for-its-running-branches.jsonl"
    )
    [turned] = [place for place, event in enumerate(events) if isinstance(event, e.RecoveryStarted)]
    view = timeline(TASK, definition, events[: turned + 1], BEGAN)
    assert [(link.step, link.status) for link in view.compensations] == [
        ("b", "waiting"),
        ("a", "waiting"),
    ]


def test_a_hold_ends_when_a_person_has_looked() -> None:
    view = named("a-guard-stops-a-step-and-a-person-resumes")
    holds = [bar for bar in bars_of(view) if bar.kind == "hold"]
    assert holds
    assert all(bar.reason and bar.ended_at for bar in holds)
    assert "resume" in [mark.kind for mark in view.marks]


def test_waits_for_people_signals_and_time_are_bars_and_what_came_is_a_mark() -> None:
    view = named("what-waits-goes-on-by-a-word-a-signal-and-time")
    kinds = {line.kind for line in view.steps for bar in line.bars if bar.kind == "wait"}
    assert kinds == {"approval", "wait", "sleep"}
    assert {"signal", "approval"} <= {mark.kind for mark in view.marks}
    [sleep] = [bar for line in view.steps if line.kind == "sleep" for bar in line.bars]
    assert sleep.due_at == sleep.ended_at


def test_a_step_that_was_handed_off_names_who_did_so() -> None:
    view = named("a-step-hands-off-and-one-more-is-refused")
    by = {line.name: line.handed_off_by for line in view.steps if line.handed_off_by}
    assert by
    assert "hand_off" in [mark.kind for mark in view.marks]


def test_a_child_is_named_where_its_attempt_is() -> None:
    view = named("a-child-is-undone-with-its-parent")
    bars = step(view, "first").bars
    attempts = [(bar.phase, bar.attempt) for bar in bars if bar.kind == "attempt"]
    assert attempts == [("action", 1), ("compensation", 1), ("compensation", 2)]
    assert {bar.child for bar in bars if bar.kind == "attempt"} == {child_id(TASK, "first", 1)}
    assert step(view, "second").bars[0].child == child_id(TASK, "second", 1)


def test_a_move_is_a_mark() -> None:
    view = named("a-task-is-moved-to-another-version-in-the-middle")
    [mark] = [mark for mark in view.marks if mark.kind == "move"]
    assert mark.name == "version 1 to 2"
    assert isinstance(mark.at, datetime)
