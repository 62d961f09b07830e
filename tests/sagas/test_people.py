"""What a person may ask for, what it leads to, and what is refused with which reason."""

from __future__ import annotations

from corpus import ONCE, QUICK, steps
from headway.sagas import Dispatch
from telling import ACTION, COMPENSATION, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("y >", "p"), ("z >", "p"), retry=ONCE)


def unknown_pivot() -> Story:
    story = Story(PIVOT)
    story.done("a")
    story.timed_out("p")
    assert story.status == "parked"
    return story


def failed_to_compensate() -> Story:
    story = Story(LINEAR)
    story.done("a")
    story.timed_out("b")
    story.faulted("b", phase=COMPENSATION)
    assert story.status == "failed_to_compensate"
    return story


def test_cancelling_compensates_what_was_done() -> None:
    story = Story(LINEAR)
    story.done("a")
    story.cancel()
    assert story.state.reason == "changed my mind"
    story.rejected("b")
    assert compensations(story) == ["a"]
    story.undone("a")
    assert story.status == "compensated"


def test_cancelling_twice_changes_nothing() -> None:
    story = Story(LINEAR)
    story.cancel()
    again = story.cancel()
    assert (again.events, again.refusal) == ((), "")


def test_cancelling_while_a_step_waits_for_its_retry_tries_no_more() -> None:
    story = Story(steps("again", ("a", "")))
    story.faulted("a", no_effect=True)
    story.cancel()
    assert (story.status, story.statuses()) == ("compensated", {"a": "failed"})


def test_cancelling_while_a_step_waits_for_its_retry_undoes_what_it_may_have_done() -> None:
    story = Story(steps("again", ("a", "")))
    story.faulted("a")
    story.cancel()
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)


def test_a_read_only_step_that_waited_for_its_retry_ends_as_failed_when_cancelled() -> None:
    story = Story(steps("look", ("l ?", "")))
    story.timed_out("l")
    story.cancel()
    assert (story.status, story.statuses()) == ("compensated", {"l": "failed"})


def test_cancelling_is_refused_once_the_pivot_was_sent() -> None:
    story = Story(PIVOT)
    story.done("a")
    refused = story.cancel()
    assert refused.refusal == (
        "step 'p', the point of no return, has been dispatched; "
        "from here the task can only go forward"
    )
    assert refused.events == ()


def test_cancelling_is_refused_when_the_task_has_ended_or_waits_for_a_person() -> None:
    done = Story(steps("one", ("a", "")))
    done.done("a")
    assert done.cancel().refusal == "the task is succeeded; it cannot be cancelled"
    assert "failed_to_compensate" in failed_to_compensate().cancel().refusal
    assert "point of no return" in unknown_pivot().cancel().refusal


def test_a_person_may_have_a_stuck_step_tried_again_by_its_policy_from_the_start() -> None:
    story = Story(steps("pivot", ("p !", ""), retry=QUICK))
    story.timed_out("p")
    story.wait_until_due()
    story.timed_out("p", attempt=2)
    assert story.status == "parked"
    story.retry()
    assert (story.status, story.state.reason) == ("running", "")
    assert story.actions == (Dispatch("p", ACTION, 3, 0),)
    story.timed_out("p", attempt=3)
    assert story.step("p").retry_at == story.now + 1_000
    story.wait_until_due()
    story.timed_out("p", attempt=4)
    assert story.status == "parked"


def test_an_answer_from_before_a_persons_retry_still_counts() -> None:
    story = unknown_pivot()
    story.retry("p")
    story.done("p", attempt=1, result="first")
    assert story.step("p").result == "first"
    assert story.statuses()["y"] == "scheduled"


def test_a_failure_from_before_a_persons_retry_does_not_count() -> None:
    story = unknown_pivot()
    story.retry("p")
    assert story.rejected("p", attempt=1).events == ()
    assert story.step("p").outstanding


def test_a_compensations_answer_from_before_a_persons_retry_still_counts() -> None:
    story = failed_to_compensate()
    story.retry("b")
    assert story.actions == (Dispatch("b", COMPENSATION, 2, 0),)
    story.undone("b", attempt=1)
    assert story.statuses()["b"] == "compensated"
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 1, 0)


def test_retrying_gives_all_stuck_steps_another_series_or_one_of_them() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.rejected("z")
    story.retry("z")
    assert story.actions == (Dispatch("z", ACTION, 2, 0),)
    story.done("z", attempt=2)
    assert (story.status, story.statuses()["y"]) == ("parked", "failed")
    story.retry()
    assert story.actions == (Dispatch("y", ACTION, 2, 0),)


def test_retrying_is_refused_unless_the_task_is_parked_and_the_step_is_stuck() -> None:
    assert Story(PIVOT).retry().refusal == (
        "the task is running; only a parked task waits for a person"
    )
    assert unknown_pivot().retry("a").refusal == "step 'a' is not stuck; stuck are: p"
    assert unknown_pivot().retry("x").refusal == "step 'x' is not stuck; stuck are: p"


def test_settling_an_unknown_pivot_as_happened_goes_on_with_the_result_given() -> None:
    story = unknown_pivot()
    story.happened("p", result={"parcel": 7})
    assert story.step("p").result == {"parcel": 7}
    assert story.actions == (Dispatch("y", ACTION, 1, 0), Dispatch("z", ACTION, 1, 0))
    assert story.status == "running"


def test_settling_an_unknown_pivot_as_not_happened_undoes_what_came_before() -> None:
    story = unknown_pivot()
    story.did_not_happen("p")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    story.undone("a")
    assert story.status == "compensated"


def test_a_pivot_that_a_person_took_for_not_happened_and_that_did_is_an_incident() -> None:
    story = unknown_pivot()
    story.did_not_happen("p")
    story.done("p")
    assert "step p took effect" in story.state.incident
    story.undone("a")
    assert story.status == "compensated"


def test_a_step_past_the_pivot_cannot_be_settled_as_not_happened() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.done("y")
    story.rejected("z")
    refused = story.did_not_happen("z")
    assert refused.refusal == (
        "step 'z' is past the point of no return and must happen: "
        "retry it, or settle it as happened once it has"
    )
    story.happened("z")
    assert story.status == "succeeded"


def test_settling_one_of_two_stuck_steps_parks_the_task_again_for_the_other() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.rejected("z")
    story.happened("y")
    assert story.status == "parked"
    assert "step 'z'" in story.state.reason
    assert "step 'y'" not in story.state.reason


def test_settling_a_failed_compensation_goes_on_with_the_others() -> None:
    story = failed_to_compensate()
    story.happened("b")
    assert story.status == "compensating"
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)


def test_an_action_that_a_person_said_had_left_nothing_and_that_did_is_compensated_again() -> None:
    story = failed_to_compensate()
    story.did_not_happen("b")
    story.done("b")
    assert "step b took effect" in story.state.incident
    assert story.sent[-1] == Dispatch("b", COMPENSATION, 2, 0)


def test_settling_is_refused_unless_the_task_is_parked_and_the_step_is_stuck() -> None:
    assert "only a parked task" in Story(PIVOT).happened("a").refusal
    assert unknown_pivot().happened("a").refusal == "step 'a' is not stuck; stuck are: p"
