"""What a commit is told as, and that whoever is told cannot do harm."""

from __future__ import annotations

import logging

from headway.agents.identity import new_task_id
from headway.coordinator.decisions import Decision, decide
from headway.coordinator.intake import Item
from headway.coordinator.observing import (
    AttemptEnded,
    Ended,
    Observers,
    Parked,
    Recovered,
    Resumed,
    Submitted,
    TurnedAround,
    happenings,
)
from headway.coordinator.records import NewTask
from headway.coordinator.schemas import InputCheck
from headway.sagas import Phase, Retry, Saga
from headway.sagas import inputs as i
from headway.sagas.task import Claim, Failure

SAGA = (
    Saga("pair")
    .step("a", "left.do", compensate="left.undo", compensation_retry=Retry(maximum_attempts=1))
    .step("b", "right.do", after="a", pivot=True, retry=Retry(maximum_attempts=2))
    .define()
)
TASK = new_task_id()
FAULT = Failure("Broken", "text that nobody counts")


class Course:
    """A task as one coordinator takes it on; each call gives what its commit meant."""

    def __init__(self) -> None:
        self.loaded = None

    def __call__(self, *happened: i.Input, agent: str = "") -> list[object]:
        new = NewTask(TASK, "pair", b"1", b"d") if isinstance(happened[0], i.Submit) else None
        items = [Item(TASK, each, lambda _: None, new=new, agent=agent) for each in happened]
        decision = decide(items, self.loaded, {("pair", None): SAGA}, InputCheck().check)
        self.loaded = decision.after
        return list(happenings(decision))


def begun() -> Course:
    course = Course()
    course(i.Submit(1_000))
    return course


def succeeded(at: int, step: str, phase: Phase = Phase.ACTION, attempt: int = 1) -> i.Succeeded:
    return i.Succeeded(at, step, phase, attempt)


def failed(at: int, step: str, phase: Phase = Phase.ACTION, attempt: int = 1) -> i.Failed:
    return i.Failed(at, step, phase, attempt, 0, FAULT, retryable=True, no_effect=False)


def test_a_submission_is_told():
    assert Course()(i.Submit(1_000)) == [Submitted(1_000, child=False)]


def test_an_attempt_is_told_with_its_agent_and_how_long_it_took():
    assert begun()(succeeded(1_250, "a"), agent="left") == [
        AttemptEnded(1_250, "a", Phase.ACTION, 1, "left", "succeeded", 250)
    ]


def test_a_task_that_ends_is_told_with_how_long_it_took():
    course = begun()
    course(succeeded(1_250, "a"), agent="left")
    assert course(succeeded(2_000, "b"), agent="right") == [
        AttemptEnded(2_000, "b", Phase.ACTION, 1, "right", "succeeded", 750),
        Ended(2_000, "succeeded", 1_000),
    ]


def test_a_failure_is_told_by_type_and_whether_it_is_tried_again():
    course = begun()
    course(succeeded(1_250, "a"), agent="left")
    assert course(failed(2_000, "b"), agent="right") == [
        AttemptEnded(2_000, "b", Phase.ACTION, 1, "right", "failed", 750, "Broken", retry=True)
    ]


def test_an_undone_task_is_told_to_turn_around_and_its_compensations_with_their_agents():
    course = begun()
    course(i.Cancel(1_100, "ann", "no longer"))
    course(succeeded(1_250, "a"), agent="left")
    told = course(succeeded(2_000, "a", Phase.COMPENSATION), agent="left")
    assert told == [
        AttemptEnded(2_000, "a", Phase.COMPENSATION, 1, "left", "succeeded", 750),
        Ended(2_000, "compensated", 1_000),
    ]


def test_what_parks_a_task_and_sends_it_on_is_told():
    course = begun()
    assert course(i.Cancel(1_100, "ann", "no")) == [TurnedAround(1_100)]
    course(succeeded(1_250, "a"), agent="left")
    assert course(failed(2_000, "a", Phase.COMPENSATION), agent="left") == [
        AttemptEnded(2_000, "a", Phase.COMPENSATION, 1, "left", "failed", 750, "Broken"),
        Parked(2_000, "failed_to_compensate"),
    ]
    assert course(i.RetryStuck(3_000, "ann", "fixed")) == [Resumed(3_000)]


def test_a_take_over_is_a_recovery():
    claim = i.ClaimAsked(2_000, "a", Phase.ACTION, 1, Claim(0, 2, "w2"))
    assert begun()(claim, agent="left") == [Recovered(2_000, "a", Phase.ACTION, "left", "claimed")]


def test_what_changes_nothing_means_nothing():
    course = begun()
    course(succeeded(1_250, "a"), agent="left")
    assert course(succeeded(1_300, "a"), agent="left") == []


def test_steps_that_no_agent_works_on_are_no_attempts():
    saga = Saga("nap").sleep("nap", 1.0).define()
    new = NewTask(TASK, "nap", b"1", b"d")
    items = [Item(TASK, i.Submit(1_000), lambda _: None, new=new)]
    begun = decide(items, None, {("nap", None): saga}, InputCheck().check)
    tick = [Item(TASK, i.Tick(3_000), lambda _: None)]
    woken = decide(tick, begun.after, {}, InputCheck().check)
    assert list(happenings(woken)) == [Ended(3_000, "succeeded", 2_000)]


def test_a_listener_that_fails_keeps_nothing_from_the_others_and_is_told_once(caplog):
    heard: list[Decision] = []

    def broken(_decisions):
        raise ValueError("cannot count")

    observers = Observers(broken, heard.extend)
    decision = decide([Item(TASK, i.Tick(1), lambda _: None)], None, {}, InputCheck().check)
    with caplog.at_level(logging.ERROR):
        observers([decision])
        observers([decision])
    assert heard == [decision, decision]
    assert len(caplog.records) == 1
    assert "failed at what was committed; it goes on without" in caplog.text
