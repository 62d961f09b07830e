"""The output of a task is accepted before it succeeds; otherwise what its manifest says is done."""

from __future__ import annotations

from typing import Any

import pytest
from corpus import ONCE, QUICK, Judged, steps
from headway.sagas import Definition, Dispatch, Saga
from headway.sagas import events as e
from headway.sagas.circumstances import Bounds, OnRejection
from headway.sagas.finish import REJECTIONS_MAX
from telling import ACTION, COMPENSATION, START, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)
TWO = steps("two", ("a", ""), ("y", "a"), ("z", "a"), retry=ONCE, compensation_retry=ONCE)

NOT_ACCEPTED = "the output is not accepted: it is bad"


def judged(definition: Definition = LINEAR, then: OnRejection = "park") -> Story:
    return Story(definition, bounds=Bounds(on_rejection=then), checks=Judged())


def parked(definition: Definition = LINEAR) -> Story:
    """Parked, for its output is bad."""
    story = judged(definition)
    for name in definition.steps:
        story.done(name, result="bad")
    story.wait(1)
    assert (story.status, story.state.reason) == ("parked", NOT_ACCEPTED)
    return story


def test_an_output_that_is_accepted_ends_the_task() -> None:
    story = judged()
    story.done("a", result="bad")  # not the output
    story.done("b", result="good")
    assert story.status == "succeeded"


def test_an_output_that_is_not_accepted_parks_the_task_unless_told_otherwise() -> None:
    story = parked()
    hold = story.state.beside.hold
    assert hold is not None
    assert (hold.kind, hold.step) == ("output", "")
    assert compensations(story) == []


def test_without_a_manifest_a_bad_output_parks_too() -> None:
    story = Story(LINEAR, checks=Judged())
    story.done("a")
    story.done("b", result="bad")
    assert story.status == "parked"


def test_a_person_takes_an_output_as_it_is_by_resuming_the_task() -> None:
    story = parked()
    story.retry()
    assert story.status == "succeeded"
    assert story.state.beside.accepted


def test_a_person_may_have_a_last_step_done_again() -> None:
    story = parked()
    again = story.retry("b")
    assert again.events[:2] == (
        e.TaskResumed(story.now, "mended", "somebody"),
        e.OutputRejected(story.now, NOT_ACCEPTED, ("b",), "somebody"),
    )
    assert story.actions == (Dispatch("b", ACTION, 2, 0),)
    assert story.state.beside.rejection == NOT_ACCEPTED
    assert not story.state.beside.accepted
    story.done("b", attempt=2, result="bad")
    assert story.status == "parked"
    story.wait(1)
    story.retry("b")
    story.done("b", attempt=3, result="good")
    assert story.status == "succeeded"


def test_only_a_last_step_that_an_agent_did_is_done_again() -> None:
    for step in ("a", "x"):
        assert parked().retry(step).refusal == (
            f"step {step!r} did not give the output; those that may be redone: b"
        )
    saga = Saga("ok").step("a", "x.a", compensate="x.undo", retry=ONCE).approval("ok", after="a")
    story = Story(saga.define(), checks=AllBad())
    story.done("a")
    story.approve("ok")
    story.wait(1)
    assert story.retry("ok").refusal == (
        "step 'ok' did not give the output; those that may be redone: ok"
    )


def test_a_bad_output_cannot_be_settled_away() -> None:
    assert parked().happened("b").refusal == "step 'b' is not stuck; stuck are: none"


def test_a_task_whose_output_is_bad_may_be_cancelled() -> None:
    story = parked()
    story.cancel()
    assert story.actions == (Dispatch("b", COMPENSATION, 1, 0),)


def test_an_output_that_is_rejected_may_be_given_again_so_many_times_and_no_more() -> None:
    story = judged(then="retry")
    story.done("a")
    story.done("b", result="bad")
    for attempt in range(2, REJECTIONS_MAX + 2):
        assert story.actions == (Dispatch("b", ACTION, attempt, 0),)
        assert story.state.beside.rejections == attempt - 1
        story.done("b", attempt=attempt, result="bad")
    assert (story.status, story.state.reason) == ("parked", NOT_ACCEPTED)


def test_an_output_that_is_good_at_last_ends_the_task() -> None:
    story = judged(then="retry")
    story.done("a")
    story.done("b", result="bad")
    story.done("b", attempt=2, result="good")
    assert (story.status, story.step("b").result) == ("succeeded", "good")


def test_the_success_whose_output_was_rejected_does_not_count_again() -> None:
    story = judged(then="retry")
    story.done("a")
    story.done("b", result="bad")
    repeated = story.done("b", attempt=1, result="bad")
    assert (repeated.events, repeated.actions) == ((), ())
    assert not story.step("b").known


def test_nor_does_it_count_when_its_step_is_being_undone() -> None:
    """Once known: its repetition cast doubt on the compensation, and raised an incident."""
    story = judged(then="retry")
    story.done("a")
    story.done("b", result="bad")
    story.rejected("b", attempt=2)
    assert story.actions == (Dispatch("b", COMPENSATION, 1, 0),)
    assert story.done("b", attempt=1, result="bad").events == ()
    story.undone("b", empty=True)
    story.undone("a")
    assert (story.status, story.state.incident) == ("compensated", "")


def test_what_was_done_before_its_output_was_rejected_is_undone_if_it_is_not_done_better() -> None:
    story = judged(then="retry")
    story.done("a")
    story.done("b", result="bad")
    story.rejected("b", attempt=2)
    assert compensations(story) == ["b"]


def test_a_step_that_is_done_again_gets_its_policys_attempts_anew() -> None:
    story = judged(steps("again", ("a", ""), retry=QUICK), then="retry")
    story.faulted("a")
    story.wait_until_due()
    story.done("a", attempt=2, result="bad")
    story.faulted("a", attempt=3)
    assert story.statuses() == {"a": "scheduled"}
    story.wait_until_due()
    story.done("a", attempt=4, result="good")
    assert story.status == "succeeded"


def test_all_last_steps_are_done_again() -> None:
    story = judged(TWO, then="retry")
    story.done("a")
    story.done("y", result="good")
    story.done("z", result="bad")
    assert story.actions == (Dispatch("y", ACTION, 2, 0), Dispatch("z", ACTION, 2, 0))
    story.done("y", attempt=2, result="good")
    story.done("z", attempt=2, result="good")
    assert story.status == "succeeded"


def test_what_nobody_could_do_better_parks_the_task_instead() -> None:
    """An approval or a child had part in the output: doing it again would bring the same."""
    saga = Saga("ok").step("a", "x.a", compensate="x.undo", retry=ONCE).approval("ok", after="a")
    story = Story(saga.define(), bounds=Bounds(on_rejection="retry"), checks=AllBad())
    story.done("a")
    story.approve("ok")
    assert story.status == "parked"


def test_a_bad_output_has_the_task_undone_where_the_manifest_says_so() -> None:
    story = judged(then="compensate")
    story.done("a")
    story.done("b", result="bad")
    assert (story.status, story.state.cause) == ("compensating", NOT_ACCEPTED)
    assert story.actions == (Dispatch("b", COMPENSATION, 1, 0),)


def test_a_bad_output_past_the_point_of_no_return_parks_the_task_instead() -> None:
    story = judged(PIVOT, then="compensate")
    story.done("a")
    story.done("p")
    story.done("z", result="bad")
    assert (story.status, story.state.reason) == ("parked", NOT_ACCEPTED)


def test_to_resume_for_another_reason_is_not_to_accept_what_came_of_it() -> None:
    """A request that is handled twice must not take an output that nobody has looked at."""
    story = judged()
    story.done("a")
    story.guarded("b")
    story.done("b", result="bad")
    assert story.state.reason == "step 'b': budget-spent: nothing is left"
    story.wait(1)
    story.retry()
    assert (story.status, story.state.reason) == ("parked", NOT_ACCEPTED)
    assert story.retry().refusal == (
        "the output was rejected only when this was asked: look at it first"
    )
    story.wait(1)
    story.retry()
    assert story.status == "succeeded"


def test_no_word_of_an_agent_has_a_person_accept_an_output_unawares() -> None:
    """Once known: resuming what an agent had called `output` took any output from then on."""
    story = judged()
    story.done("a")
    story.faulted("b", type="output", retryable=False, hold=True)
    story.wait(1)
    story.retry()
    story.done("b", attempt=2, result="bad")
    assert (story.status, story.state.reason) == ("parked", NOT_ACCEPTED)


class AllBad(Judged):
    def rejected(self, _: Any, /) -> str:
        return "it is bad"


@pytest.mark.parametrize("then", ["retry", "compensate", "park"])
def test_what_a_rejection_leads_to_is_part_of_the_history(then: OnRejection) -> None:
    story = judged(then=then)
    submitted = story.history[0]
    assert submitted == e.TaskSubmitted(START, Bounds(on_rejection=then))
