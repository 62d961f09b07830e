"""Which command is sent when: forwards, backwards, and past the pivot."""

from __future__ import annotations

import pytest
from corpus import ENDLESS, ONCE, QUICK, steps
from headway.sagas import Dispatch, Retry, Saga, Stop, Withdraw
from headway.sagas import events as e
from telling import ACTION, COMPENSATION, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), ("c", "b"), retry=ONCE)
DIAMOND = steps("diamond", ("a", ""), ("b", "a"), ("c", "a"), ("d", "b c"), retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("y >", "p"), ("z >", "p"), retry=ONCE)


def actions(story: Story) -> list[str]:
    return [sent.step for sent in story.sent if sent.phase is ACTION]


def test_a_submission_sends_every_step_that_comes_after_none() -> None:
    story = Story(steps("roots", ("a", ""), ("b", ""), ("c", "a b")))
    assert story.last.events[0] == e.TaskSubmitted(story.now)
    assert story.actions == (Dispatch("a", ACTION, 1, 0), Dispatch("b", ACTION, 1, 0))


def test_a_step_is_sent_once_all_it_comes_after_have_completed() -> None:
    story = Story(DIAMOND)
    story.done("a")
    story.done("c")
    assert actions(story) == ["a", "b", "c"]
    story.done("b")
    assert actions(story) == ["a", "b", "c", "d"]
    story.done("d")
    assert story.status == "succeeded"


def test_a_retryable_failure_is_tried_again_when_the_policy_says() -> None:
    story = Story(steps("again", ("a", ""), retry=Retry(2.0, 3.0, 100.0, 3)))
    story.faulted("a", jitter=0.5)
    assert story.step("a").retry_at == story.now + 2_200
    story.wait(2_199)
    assert story.tick().events == ()
    story.wait(1)
    assert story.tick().actions == (Dispatch("a", ACTION, 2, 0),)
    story.faulted("a", attempt=2)
    assert story.step("a").retry_at == story.now + 6_000


def test_an_agent_may_say_itself_when_it_is_to_be_tried_again() -> None:
    story = Story(steps("again", ("a", "")))
    story.faulted("a", retry_after_ms=7_000)
    assert story.step("a").retry_at == story.now + 7_000


@pytest.mark.parametrize("asked", [0, -5, -(10**15)])
def test_a_retry_that_is_wanted_at_once_is_sent_at_once(asked: int) -> None:
    story = Story(steps("again", ("a", "")))
    story.faulted("a", retry_after_ms=asked)
    assert story.actions == (Dispatch("a", ACTION, 2, 0),)


def test_no_agent_is_left_alone_for_longer_than_a_month() -> None:
    story = Story(steps("again", ("a", "")))
    story.faulted("a", retry_after_ms=10**18)
    assert story.step("a").retry_at == story.now + 31 * 86_400_000


def test_attempts_end_where_the_policy_ends_them() -> None:
    story = Story(steps("twice", ("a", "")))
    story.faulted("a", no_effect=True)
    story.wait_until_due()
    story.faulted("a", attempt=2, no_effect=True)
    assert story.statuses() == {"a": "failed"}


def test_attempts_without_limit_go_on() -> None:
    story = Story(steps("endless", ("a", ""), retry=ENDLESS))
    for attempt in range(1, 200):
        story.faulted("a", attempt)
        story.wait_until_due()
    assert story.sent[-1].attempt == 200


def test_a_non_retryable_type_ends_the_step_at_once() -> None:
    policy = Retry(non_retryable_error_types=("CardStolen",))
    story = Story(steps("card", ("a", ""), retry=policy))
    story.faulted("a", type="CardStolen", no_effect=True)
    assert story.statuses() == {"a": "failed"}
    assert story.state.reason == "step 'a': CardStolen: broken"


def test_compensations_come_in_reverse_order_of_the_edges_and_else_side_by_side() -> None:
    story = Story(DIAMOND)
    for name in "abc":
        story.done(name)
    story.rejected("d")
    assert sorted(compensations(story)) == ["b", "c"]
    story.undone("c")
    assert sorted(compensations(story)) == ["b", "c"]
    story.undone("b")
    assert compensations(story)[-1] == "a"
    story.undone("a")
    assert story.statuses() == dict.fromkeys("abc", "compensated") | {"d": "failed"}
    assert story.status == "compensated"


def test_nothing_new_is_sent_once_a_step_has_failed_and_running_branches_are_awaited() -> None:
    story = Story(steps("two", ("a", ""), ("b", ""), ("c", "b"), retry=ONCE))
    story.rejected("a")
    assert story.actions == (Withdraw("b", ACTION), Stop("b", 1))
    assert story.statuses() == {"a": "failed", "b": "scheduled", "c": "skipped"}
    assert story.done("b").actions == (Dispatch("b", COMPENSATION, 1, 0),)
    story.undone("b")
    assert story.status == "compensated"


def test_two_branches_that_fail_at_once_turn_the_task_around_once() -> None:
    story = Story(steps("two", ("a", ""), ("b", ""), retry=ONCE))
    story.rejected("a")
    story.rejected("b")
    turns = [event for event in story.history if isinstance(event, e.RecoveryStarted)]
    assert len(turns) == 1
    assert story.status == "compensated"


def test_a_running_branch_that_does_not_stop_is_given_up_as_unknown_and_compensated() -> None:
    story = Story(steps("two", ("a", ""), ("b", ""), retry=QUICK))
    story.faulted("a", retryable=False, no_effect=True)
    story.wait_until_due()
    assert story.step("b").status.value == "compensating"
    assert story.sent[-1] == Dispatch("b", COMPENSATION, 1, 0)


def test_a_branch_that_fails_after_the_turn_is_not_tried_again() -> None:
    story = Story(steps("two", ("a", ""), ("b", "")))
    story.faulted("a", retryable=False, no_effect=True)
    story.faulted("b", retryable=True, no_effect=True)
    assert story.status == "compensated"


def test_a_step_that_waits_for_its_retry_is_not_tried_again_after_the_turn() -> None:
    story = Story(steps("two", ("a", ""), ("b", "")))
    story.faulted("a")
    story.faulted("b", retryable=False, no_effect=True)
    assert compensations(story) == ["a"]
    story.undone("a")
    assert story.status == "compensated"


def test_a_read_only_step_is_never_compensated() -> None:
    story = Story(steps("look", ("l ?", ""), ("a", "l"), ("m ?", "a"), retry=ONCE))
    story.done("l")
    story.done("a")
    story.timed_out("m")
    assert compensations(story) == ["a"]
    story.undone("a")
    assert story.statuses() == {"l": "completed", "a": "compensated", "m": "failed"}


def test_what_comes_before_a_read_only_step_is_compensated_after_what_comes_behind_it() -> None:
    story = Story(steps("look", ("a", ""), ("l ?", "a"), ("b", "l"), ("c", "b"), retry=ONCE))
    for name in "alb":
        story.done(name)
    story.rejected("c")
    assert compensations(story) == ["b"]
    story.undone("b")
    assert compensations(story) == ["b", "a"]


def test_a_pivot_that_is_rejected_turns_the_task_around() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.rejected("p")
    assert compensations(story) == ["a"]


def test_a_pivot_whose_outcome_is_unknown_is_neither_undone_nor_failed_but_parked() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.timed_out("p")
    assert story.status == "parked"
    assert story.state.reason.startswith("past the point of no return: step 'p': Timeout.start")
    assert compensations(story) == []


def test_a_failure_past_the_pivot_parks_the_task_once_its_other_branches_are_done() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p")
    story.rejected("y")
    assert story.status == "running"
    story.done("z")
    assert story.status == "parked"
    assert compensations(story) == []


def test_a_parked_task_goes_on_by_itself_when_the_stuck_step_has_succeeded_after_all() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.timed_out("p")
    late = story.done("p")
    assert isinstance(late.events[0], e.TaskResumed)
    assert story.actions == (Dispatch("y", ACTION, 1, 0), Dispatch("z", ACTION, 1, 0))
    assert story.state.reason == ""


def test_a_compensation_is_retried_by_its_own_policy() -> None:
    built = Saga("own").step(
        "a", "x.y", compensate="x.z", retry=ONCE, compensation_retry=Retry(5.0, maximum_attempts=2)
    )
    story = Story(built.define())
    story.timed_out("a")
    story.faulted("a", phase=COMPENSATION)
    assert story.step("a").retry_at == story.now + 5_000
    story.wait_until_due()
    story.faulted("a", attempt=2, phase=COMPENSATION)
    assert story.status == "failed_to_compensate"


def test_a_failed_compensation_holds_up_what_comes_before_it_and_nothing_else() -> None:
    shape = steps(
        "fork", ("a", ""), ("b", "a"), ("c", ""), ("d", "b c"), retry=ONCE, compensation_retry=ONCE
    )
    story = Story(shape)
    for name in "acb":
        story.done(name)
    story.rejected("d")
    story.faulted("b", phase=COMPENSATION)
    assert story.status == "compensating"
    story.undone("c")
    assert story.status == "failed_to_compensate"
    assert sorted(compensations(story)) == ["b", "c"]
    story.undone("b")
    story.undone("a")
    assert story.status == "compensated"


def test_the_reason_for_the_turn_stays_in_view_to_the_end() -> None:
    story = Story(LINEAR)
    story.done("a")
    story.rejected("b")
    story.undone("a")
    assert story.state.reason == "step 'b': Rejected: out of stock"


def test_submitting_again_changes_nothing() -> None:
    story = Story(LINEAR)
    assert story.tell(story.inputs[0]).events == ()
    assert story.state.version == len(story.history)
