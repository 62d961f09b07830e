"""Approvals, signals and sleep: what goes on by a person's word, by a signal, or by time alone."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import ONCE
from headway.sagas import Definition, Dispatch, ImpossibleInput, Saga, due, waiting
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.task import Failure
from headway.sagas.waiting import waits_for_person
from telling import ACTION, COMPENSATION, Story, compensations


def asking(timeout: float | None = None, default: Any = "") -> Definition:
    saga = Saga("ask").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.approval("ok", after="a", timeout=timeout, default=default)
    return saga.step("b", "x.b", after="ok", read_only=True).define()


def asked(timeout: float | None = None, default: Any = "") -> Story:
    story = Story(asking(timeout, default))
    story.done("a")
    return story


def awaiting(timeout: float | None = None) -> Story:
    """Waits for two signals of one name: `first` after `a`, and `second` after that."""
    saga = Saga("await").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.wait("first", signal="go", after="a", timeout=timeout)
    saga.wait("second", signal="go", after="first")
    return Story(saga.define())


def past_return() -> Story:
    """An approval and a wait past the point of no return, where nothing can be undone."""
    saga = Saga("past").step("p", "x.p", pivot=True)
    saga.approval("ok", after="p").wait("w", signal="go", after="p", timeout=10.0)
    story = Story(saga.define())
    story.done("p")
    return story


def test_an_approval_asks_no_agent_and_what_comes_after_it_waits() -> None:
    story = asked()
    assert story.actions == ()
    assert story.statuses() == {"a": "completed", "ok": "scheduled", "b": "waiting"}
    assert waits_for_person(story.definition, story.state)


def test_an_approval_goes_on_and_keeps_who_gave_it() -> None:
    story = asked()
    approved = story.approve("ok")
    assert approved.events[0] == e.StepApproved(story.now, "ok", "somebody", "fine")
    assert story.step("ok").result == {"approved": True, "by": "somebody", "reason": "fine"}
    assert story.actions == (Dispatch("b", ACTION, 1, 0),)
    assert not waits_for_person(story.definition, story.state)


def test_a_rejection_is_a_failure_that_undoes_what_came_before() -> None:
    story = asked()
    story.reject("ok")
    assert story.state.cause == "step 'ok': Rejected: too much"
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    story.undone("a")
    assert (story.status, story.statuses()["ok"]) == ("compensated", "failed")


def test_a_rejection_without_a_reason_names_the_person() -> None:
    story = asked()
    story.tell(i.Approval(story.now, "ok", False, "ann", ""))
    assert story.step("ok").error == Failure("Rejected", "rejected by ann")


def test_the_same_word_again_changes_nothing_and_the_other_one_is_refused() -> None:
    approved, rejected = asked(), asked()
    approved.approve("ok")
    again = approved.approve("ok")
    assert (again.events, again.refusal) == ((), "")
    assert approved.reject("ok").refusal == (
        "step 'ok' does not wait for an approval; it is completed"
    )
    rejected.reject("ok")
    again = rejected.reject("ok")
    assert (again.events, again.refusal) == ((), "")
    assert rejected.approve("ok").refusal == (
        "step 'ok' does not wait for an approval; it is failed"
    )


def test_no_word_is_taken_before_its_step_is_there() -> None:
    story = Story(asking())
    for refused in (story.approve("ok"), story.reject("ok")):
        assert refused.refusal == "step 'ok' does not wait for an approval; it is waiting"
        assert refused.events == ()


def test_no_word_is_taken_on_another_kind_of_step_or_on_none() -> None:
    assert asked().approve("a").refusal == "step 'a' is not of kind approval; those are: ok"
    assert asked().approve("x").refusal == "step 'x' is not of kind approval; those are: ok"
    bare = Story(Saga("bare").step("a", "x.a", read_only=True).define())
    assert bare.approve("a").refusal == "step 'a' is not of kind approval; those are: none"


def test_an_approval_that_nobody_gives_in_time_fails() -> None:
    story = asked(timeout=10.0)
    assert due(story.definition, story.state) == story.now + 10_000
    story.wait_until_due()
    assert story.step("ok").error == Failure(
        "Timeout.schedule_to_close", "no answer within schedule_to_close"
    )
    assert compensations(story) == ["a"]


def test_an_approval_without_a_timeout_is_looked_at_once_a_day_and_changes_nothing() -> None:
    story = asked()
    timer = due(story.definition, story.state)
    assert timer is not None
    assert 86_400_000 <= timer - story.now < 2 * 86_400_000
    assert story.wait_until_due().events == ()


def test_a_default_is_what_counts_when_nobody_gave_a_word_in_time() -> None:
    approved, rejected = asked(10.0, "approve"), asked(10.0, "reject")
    assert approved.wait_until_due().events[0] == e.StepApproved(approved.now, "ok")
    assert approved.actions == (Dispatch("b", ACTION, 1, 0),)
    assert rejected.wait_until_due().events[0] == e.StepRejected(rejected.now, "ok")
    assert rejected.step("ok").error == Failure("Rejected", "rejected by default")
    assert compensations(rejected) == ["a"]


def test_a_word_that_comes_in_time_is_not_followed_by_the_default() -> None:
    story = asked(10.0, "reject")
    story.approve("ok")
    story.wait(10_000)
    assert story.tick().events == ()


def test_what_waits_for_a_person_ends_when_the_task_turns_around() -> None:
    story = asked()
    story.cancel()
    assert story.statuses() == {"a": "compensating", "ok": "failed", "b": "skipped"}
    assert story.approve("ok").refusal == "step 'ok' does not wait for an approval; it is failed"
    story.undone("a")
    assert story.status == "compensated"


def test_a_rejection_past_return_parks_the_task_and_a_person_may_ask_again() -> None:
    story = past_return()
    story.signal("go", "1")
    story.reject("ok")
    assert story.status == "parked"
    assert story.state.reason == "past the point of no return: step 'ok': Rejected: too much"
    story.retry()
    assert story.statuses()["ok"] == "scheduled"
    story.approve("ok")
    assert story.status == "succeeded"


def test_a_rejection_in_a_task_that_is_parked_for_something_else_turns_it_around() -> None:
    saga = Saga("two").step("a", "x.a", compensate="x.undo", retry=ONCE).approval("ok")
    story = Story(saga.define())
    story.held("a")
    assert story.status == "parked"
    story.reject("ok")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    assert story.state.cause == "step 'ok': Rejected: too much"


def test_an_approval_in_a_task_that_is_parked_for_something_else_is_kept() -> None:
    saga = Saga("two").step("a", "x.a", compensate="x.undo", retry=ONCE).approval("ok")
    story = Story(saga.define())
    story.held("a")
    story.approve("ok")
    assert (story.status, story.statuses()["ok"]) == ("parked", "completed")
    story.retry()
    story.done("a", attempt=2)
    assert story.status == "succeeded"


@pytest.mark.parametrize("step", ["ok", "w"])
def test_an_agents_answer_to_what_no_agent_was_asked_is_impossible(step: str) -> None:
    story = past_return()
    kind = "approval" if step == "ok" else "wait"
    with pytest.raises(ImpossibleInput) as caught:
        story.done(step)
    assert str(caught.value) == f"step {step!r} is of kind {kind}; no agent was asked for it"


def test_a_signal_brings_the_result_of_the_step_that_waits_for_it() -> None:
    story = awaiting()
    story.done("a")
    taken = story.signal("go", "s-1", {"price": 7})
    assert taken.events[:2] == (
        e.SignalReceived(story.now, "go", "s-1", {"price": 7}, "somebody"),
        e.SignalTaken(story.now, "first", "s-1"),
    )
    assert story.step("first").result == {"price": 7}
    assert story.statuses()["second"] == "scheduled"


def test_early_signals_are_kept_and_taken_once_each_the_oldest_first() -> None:
    story = awaiting()
    for number in (1, 2, 3):
        story.signal("go", f"s-{number}", number)
    assert [signal.id for signal in story.state.beside.signals] == ["s-1", "s-2", "s-3"]
    story.done("a")
    assert (story.step("first").result, story.step("second").result) == (1, 2)
    assert story.status == "succeeded"
    assert [signal.id for signal in story.state.beside.signals] == ["s-3"]


def test_a_repeated_signal_counts_once_even_after_it_was_taken_and_after_the_end() -> None:
    story = awaiting()
    story.signal("go", "s-1", "first")
    assert story.signal("go", "s-1", "again").events == ()
    story.done("a")
    assert story.signal("go", "s-1", "again").events == ()
    assert story.statuses()["second"] == "scheduled"
    story.signal("go", "s-2")
    assert story.status == "succeeded"
    repeated = story.signal("go", "s-2")
    assert (repeated.events, repeated.refusal) == ((), "")


def test_a_signal_that_no_step_waits_for_is_refused() -> None:
    assert awaiting().signal("stop", "s-1").refusal == (
        "no step waits for a signal 'stop'; awaited are: go"
    )
    assert asked().signal("go", "s-1").refusal == (
        "no step waits for a signal 'go'; awaited are: none"
    )


def test_no_signal_reaches_a_task_that_has_ended() -> None:
    story = awaiting()
    story.rejected("a")
    refused = story.signal("go", "s-1")
    assert refused.refusal == "the task is compensated; no signal reaches it any more"
    assert refused.events == ()


def test_a_task_takes_so_many_signals_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "SIGNALS_MAX", 2)
    story = awaiting()
    story.signal("go", "s-1")
    story.signal("go", "s-2")
    refused = story.signal("go", "s-3")
    assert refused.refusal == "the task has had 2 signals, which is all that one takes"
    assert story.signal("go", "s-2").refusal == ""


def test_a_signal_is_named_like_its_step_unless_told_otherwise() -> None:
    story = Story(Saga("plain").wait("paid").define())
    story.signal("paid", "s-1", 12)
    assert (story.status, story.step("paid").result) == ("succeeded", 12)


def test_a_wait_that_no_signal_ends_in_time_fails() -> None:
    story = awaiting(timeout=10.0)
    story.done("a")
    story.wait_until_due()
    assert story.state.cause.startswith("step 'first': Timeout.schedule_to_close")
    assert compensations(story) == ["a"]


def test_a_retried_wait_takes_the_signal_that_came_while_it_was_stuck() -> None:
    story = past_return()
    story.approve("ok")
    story.wait_until_due()
    assert (story.status, story.statuses()["w"]) == ("parked", "failed")
    story.signal("go", "s-1", "late")
    assert story.status == "parked"
    story.retry()
    assert (story.status, story.step("w").result) == ("succeeded", "late")


def test_a_sleep_is_over_after_its_time_and_not_before() -> None:
    saga = Saga("nap").sleep("s", 5.0).step("a", "x.a", after="s", read_only=True)
    story = Story(saga.define())
    assert story.actions == ()
    story.wait(4_999)
    assert story.tick().events == ()
    story.wait(1)
    story.tick()
    assert story.actions == (Dispatch("a", ACTION, 1, 0),)
    assert story.step("s").result is None


def test_a_sleep_ends_when_the_task_turns_around() -> None:
    story = Story(Saga("nap").sleep("s", 5.0).step("a", "x.a", read_only=True).define())
    story.rejected("a")
    assert (story.status, story.statuses()["s"]) == ("compensated", "failed")


def test_what_is_parked_hears_no_timer() -> None:
    """Neither a timeout nor a default counts while a person is to look at the task first."""
    saga = Saga("two").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.approval("ok", timeout=10.0, default="reject").sleep("s", 5.0)
    story = Story(saga.define())
    story.held("a")
    story.wait(60_000)
    assert story.tick().events == ()
    story.retry()
    assert story.statuses() == {"a": "scheduled", "ok": "scheduled", "s": "scheduled"}
    assert due(story.definition, story.state) < story.now  # it is heard at once
    story.tick()
    assert (story.statuses()["ok"], story.statuses()["s"]) == ("failed", "completed")
