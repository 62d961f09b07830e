"""What a person must look at first: the task is held, then parked, and goes on when one has."""

from __future__ import annotations

from corpus import ONCE, QUICK, steps
from headway.sagas import Dispatch, Retry, Saga, Stop, Timeouts, Withdraw, due
from headway.sagas import events as e
from headway.sagas.circumstances import Hold
from headway.sagas.deadlines import clock_due
from telling import ACTION, COMPENSATION, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
TWO = steps("two", ("a", ""), ("b", ""), ("c", "b"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("y >", "p"), ("z >", "p"), retry=ONCE)

TRIPPED = "step 'a': Tripped: broken"
SPENT = "step 'a': budget-spent: nothing is left"


def test_a_failure_that_a_person_must_look_at_parks_the_task_and_undoes_nothing() -> None:
    story = Story(LINEAR)
    story.held("a")
    assert (story.status, story.state.reason) == ("parked", TRIPPED)
    assert story.state.beside.hold == Hold("Tripped", TRIPPED, "a", story.now)
    assert story.actions == ()
    assert due(story.definition, story.state) is None


def test_a_held_step_is_tried_again_when_a_person_resumes_the_task() -> None:
    story = Story(LINEAR)
    story.held("a")
    resumed = story.retry()
    assert resumed.events[0] == e.TaskResumed(story.now, "mended", "somebody", ("a",))
    assert story.actions == (Dispatch("a", ACTION, 2, 0),)
    assert (story.status, story.state.reason, story.state.beside.hold) == ("running", "", None)


def test_a_resumed_step_gets_another_series_of_attempts() -> None:
    story = Story(steps("again", ("a", ""), retry=QUICK))
    story.held("a")
    story.retry("a")
    story.faulted("a", attempt=2)
    assert story.step("a").retry_at == story.now + 1_000


def test_an_answer_from_before_the_hold_still_counts() -> None:
    story = Story(steps("again", ("a", ""), ("b", "a")))
    story.timed_out("a")
    story.wait_until_due()
    story.held("a", attempt=2)
    story.done("a", attempt=1, result="first")
    assert (story.status, story.step("a").result) == ("parked", "first")
    story.retry()
    assert story.actions == (Dispatch("b", ACTION, 1, 0),)


def test_a_guard_holds_the_task_and_parks_it_once_no_agent_is_at_it() -> None:
    story = Story(TWO)
    held = story.guarded("a")
    assert held.events == (e.TaskHeld(story.now, "budget-spent", SPENT, "a"),)
    assert story.status == "running"
    story.done("b")
    assert (story.status, story.statuses()["c"]) == ("running", "waiting")
    story.done("a")
    assert (story.status, story.state.reason) == ("parked", SPENT)
    story.retry()
    assert story.actions == (Dispatch("c", ACTION, 1, 0),)


def test_what_a_guard_stopped_parks_the_task_whatever_its_agent_says() -> None:
    """Once known: an agent that then gave up by itself had all undone before anyone looked."""
    answers = (
        lambda story: story.rejected("a"),
        lambda story: story.faulted("a", retryable=False),
        lambda story: story.faulted("a"),
        lambda story: story.timed_out("a"),
        lambda story: story.held("a"),
        lambda story: story.done("a"),
    )
    for answer in answers:
        story = Story(LINEAR)
        story.guarded("a")
        answer(story)
        assert (story.status, story.state.reason) == ("parked", SPENT)
        assert story.actions == () or story.actions == (Withdraw("a", ACTION), Stop("a", 1))


def test_a_guard_that_speaks_twice_or_too_late_changes_nothing() -> None:
    story = Story(LINEAR)
    story.guarded("a")
    assert story.guarded("a").events == ()
    story.done("a")
    story.retry()
    assert story.guarded("a").events == ()
    assert story.guarded("x").events == ()
    story.cancel()
    assert story.guarded("b").events == ()


def test_nothing_that_is_due_again_is_sent_while_a_person_is_to_look() -> None:
    story = Story(steps("two", ("a", ""), ("b", "")))
    story.faulted("b")
    story.guarded("a")
    story.wait(60_000)
    assert not clock_due(story.definition, story.state, story.now)
    assert story.tick().events == ()
    story.done("a")
    assert story.status == "parked"
    story.retry()
    assert story.actions == (Dispatch("b", ACTION, 2, 0),)


def test_a_held_step_outlives_its_schedule_to_close() -> None:
    """Once known: it was given up as unknown, and undone, while a person was to look."""
    limits = Timeouts(schedule_to_close=60.0)
    story = Story(steps("timed", ("a", ""), ("b", ""), timeouts=limits))
    story.held("a")
    story.wait(50_000)
    story.heartbeat("b")
    story.wait(20_000)
    assert not clock_due(story.definition, story.state, story.now) or story.step("b").outstanding
    story.done("b")
    assert story.status == "parked"
    story.wait(100_000)
    story.retry()
    assert story.actions == (Dispatch("a", ACTION, 2, 0),)
    assert story.step("a").scheduled_at == story.now
    assert story.tick().events == ()


def test_a_failure_beside_a_held_step_turns_the_task_around() -> None:
    story = Story(TWO)
    story.held("a")
    story.rejected("b")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    assert story.state.beside.hold is None


def test_a_held_task_may_be_cancelled_before_and_after_it_is_parked() -> None:
    running, parked = Story(TWO), Story(LINEAR)
    running.guarded("a")
    running.cancel()
    assert running.actions[:2] == (Withdraw("a", ACTION), Stop("a", 1))
    parked.held("a", no_effect=True)
    parked.cancel()
    assert (parked.status, parked.statuses()["a"]) == ("compensated", "failed")


def test_a_held_pivot_keeps_the_task_from_being_cancelled() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.held("p")
    assert "step 'p', the point of no return, has been dispatched" in story.cancel().refusal


def test_a_held_step_may_be_settled() -> None:
    happened, not_happened = Story(LINEAR), Story(LINEAR)
    happened.held("a")
    happened.happened("a", result=7)
    assert happened.actions == (Dispatch("b", ACTION, 1, 0),)
    assert happened.state.beside.hold is None
    not_happened.held("a")
    not_happened.did_not_happen("a")
    assert (not_happened.status, compensations(not_happened)) == ("compensated", [])


def test_what_has_no_effect_yet_of_a_held_task_cannot_be_settled() -> None:
    story = Story(LINEAR)
    story.held("a")
    assert story.happened("b").refusal == "step 'b' is not stuck; stuck are: none"


def test_a_stuck_step_may_be_settled_while_another_one_is_held_which_stays_so() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.held("z")
    story.happened("y")
    assert (story.status, story.state.reason) == ("parked", "step 'z': Tripped: broken")


def test_retrying_another_step_than_the_held_one_is_refused_with_what_to_do_instead() -> None:
    """Once known: it ended the hold, and the step that a person had not looked at was sent."""
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.held("z")
    refused = story.retry("y")
    assert refused.refusal == ("step 'y' is not what the task is held for; resume it, or retry 'z'")
    story.retry("z")
    assert story.actions == (Dispatch("z", ACTION, 2, 0),)
    story.done("z", attempt=2)
    assert (story.status, story.statuses()["y"]) == ("parked", "failed")


def test_resuming_a_held_task_gives_every_step_that_waits_another_series() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.held("z")
    story.retry()
    assert story.actions == (Dispatch("y", ACTION, 2, 0), Dispatch("z", ACTION, 2, 0))


def two_held() -> Story:
    story = Story(TWO)
    story.held("a")
    story.held("b", no_effect=True)
    assert story.status == "parked"
    assert story.state.reason == "step 'a': Tripped: broken; step 'b': Tripped: broken"
    return story


def test_two_steps_that_a_person_must_look_at_are_both_told_and_resumed_together() -> None:
    story = two_held()
    story.retry()
    assert story.actions == (Dispatch("a", ACTION, 2, 0), Dispatch("b", ACTION, 2, 0))


def test_settling_one_of_two_held_steps_leaves_the_other_to_a_person() -> None:
    """Once known: the other one was tried again though nobody had looked at it."""
    story = two_held()
    story.happened("a")
    assert (story.status, story.state.reason) == ("parked", "step 'b': Tripped: broken")
    assert story.actions == ()
    story.did_not_happen("b")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)


def test_retrying_one_of_two_held_steps_leaves_the_other_to_a_person() -> None:
    story = two_held()
    story.retry("a")
    assert (story.status, story.state.reason) == ("parked", "step 'b': Tripped: broken")
    story.retry("b")
    assert story.actions == (Dispatch("a", ACTION, 2, 0), Dispatch("b", ACTION, 2, 0))


def test_what_is_stuck_is_told_beside_what_is_held() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    story.held("z")
    assert story.state.reason == (
        "step 'z': Tripped: broken; past the point of no return: step 'y': Rejected: out of stock"
    )


def test_a_task_that_is_held_but_still_at_work_is_not_resumed() -> None:
    story = Story(TWO)
    story.guarded("a")
    assert story.retry().refusal == "the task is running; only a parked task waits for a person"


def test_a_held_compensation_waits_for_a_person_like_any_that_failed() -> None:
    story = Story(steps("undo", ("a", ""), retry=ONCE, compensation_retry=Retry()))
    story.faulted("a", retryable=False)
    story.faulted("a", phase=COMPENSATION, retryable=True, hold=True, type="Tripped")
    assert story.status == "failed_to_compensate"
    story.retry()
    assert story.actions == (Dispatch("a", COMPENSATION, 2, 0),)


def test_a_running_branch_that_is_held_after_the_turn_is_compensated() -> None:
    story = Story(TWO)
    story.rejected("b")
    story.held("a")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    assert story.state.beside.hold is None


def test_what_no_agent_is_at_does_not_keep_a_held_task_from_being_parked() -> None:
    saga = Saga("wait").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.approval("ok").wait("w").sleep("s", 5.0)
    story = Story(saga.define())
    story.held("a")
    assert story.status == "parked"
    story.signal("w", "s-1")
    assert story.statuses()["w"] == "completed"
    assert story.status == "parked"
