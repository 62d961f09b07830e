"""Unknown outcomes and late answers: the coordinator's rules of the protocol, one by one."""

from __future__ import annotations

import pytest
from corpus import ENDLESS, ONCE, steps
from headway.sagas import Dispatch, ImpossibleInput, Saga, Timeouts, Withdraw, transition
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.task import Failure
from telling import COMPENSATION, START, Story, compensations

SINGLE = steps("single", ("a", ""), retry=ONCE)
LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)


def test_a_repeated_forward_success_during_compensation_is_not_its_compensation() -> None:
    """Known from a peer: events that named no phase compensated a step by its own success."""
    story = Story(LINEAR)
    story.done("a", result="booked")
    story.rejected("b")
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 1, 0)

    repeated = story.done("a", result="booked")

    assert (repeated.events, repeated.actions) == ((), ())
    assert story.statuses()["a"] == "compensating"
    story.undone("a")
    assert story.status == "compensated"


def test_the_late_success_of_a_timed_out_step_is_recorded_and_changes_nothing() -> None:
    """Known from a peer: a timeout was taken for a failure, and its effect was left behind."""
    story = Story(SINGLE)
    story.timed_out("a")
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 1, 0)

    late = story.done("a", result="booked")

    assert late.events == (e.LateSuccess(story.now, "a", 1, result="booked"),)
    assert late.actions == ()
    assert story.statuses() == {"a": "compensating"}
    story.undone("a")
    assert (story.status, story.state.incident) == ("compensated", "")


def test_rule_1_a_rejection_states_that_nothing_was_left_and_a_timeout_does_not() -> None:
    rejected, timed_out = Story(SINGLE), Story(SINGLE)
    rejected.rejected("a")
    timed_out.timed_out("a")
    assert (rejected.statuses(), rejected.status) == ({"a": "failed"}, "compensated")
    assert timed_out.statuses() == {"a": "compensating"}
    assert timed_out.step("a").error == Failure(
        "Timeout.start_to_close", "no answer within start_to_close"
    )


def test_rule_1_a_fault_that_does_not_say_so_may_have_had_an_effect() -> None:
    story = Story(SINGLE)
    story.faulted("a", retryable=False)
    assert compensations(story) == ["a"]


def test_rule_2_a_command_that_no_agent_began_in_time_is_unknown_too() -> None:
    story = Story(steps("idle", ("a", ""), retry=ONCE, timeouts=Timeouts(schedule_to_start=10.0)))
    story.wait(10_000)
    story.tick()
    assert Withdraw("a", story.sent[0].phase) in story.actions
    assert compensations(story) == ["a"]


def test_rule_3_a_retry_after_a_timeout_raises_the_attempt_and_the_first_success_wins() -> None:
    story = Story(steps("again", ("a", "")))
    story.timed_out("a")
    story.wait_until_due()
    assert [sent.attempt for sent in story.sent] == [1, 2]
    story.done("a", attempt=1, result="first")
    assert story.done("a", attempt=2, result="second").events == ()
    assert (story.status, story.step("a").result) == ("succeeded", "first")


def test_rule_3_an_earlier_attempt_may_have_had_an_effect_though_the_last_one_is_rejected() -> None:
    story = Story(steps("again", ("a", "")))
    story.timed_out("a")
    story.wait_until_due()
    story.rejected("a", attempt=2)
    assert compensations(story) == ["a"]


def test_rule_3_the_first_success_of_a_compensation_wins_whichever_attempt_it_is_of() -> None:
    story = Story(steps("undo", ("a", ""), retry=ONCE, compensation_retry=ENDLESS))
    story.timed_out("a")
    story.timed_out("a", phase=COMPENSATION)
    story.wait_until_due()
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 2, 0)
    story.undone("a", attempt=1)
    assert story.status == "compensated"
    assert story.actions == (Withdraw("a", COMPENSATION),)


def test_rule_4_all_that_was_sent_and_not_known_to_be_without_effect_is_compensated() -> None:
    story = Story(
        steps("four", ("done", ""), ("unknown", ""), ("clean", ""), ("bad", ""), retry=ONCE)
    )
    story.done("done")
    story.timed_out("unknown")
    story.rejected("clean")
    story.rejected("bad")
    assert sorted(compensations(story)) == ["done", "unknown"]
    assert story.statuses()["clean"] == "failed"


def test_rule_5_an_effect_after_an_empty_answer_is_an_incident_and_is_compensated_again() -> None:
    story = Story(LINEAR)
    story.done("a")
    story.timed_out("b")
    story.undone("b", empty=True)
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 1, 0)

    story.done("b", result="late")

    assert "step b took effect after its compensation had found nothing" in story.state.incident
    assert story.sent[-1] == Dispatch("b", COMPENSATION, 2, 0)
    assert story.undone("b", attempt=1, empty=True).events == ()
    story.undone("b", attempt=2)
    story.undone("a")
    assert story.status == "compensated"
    assert story.state.incident


def test_rule_5_the_order_in_which_the_two_answers_arrive_makes_no_difference() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.done("a", result="late")
    story.undone("a", attempt=1, empty=True)
    assert story.last.events[0] == e.EmptyDoubted(story.now, "a", 1)
    assert "step a took effect though its compensation found nothing" in story.state.incident
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 2, 0)
    story.undone("a", attempt=2, empty=True)
    assert story.status == "compensated"


def test_rule_5_a_doubted_empty_answer_of_an_earlier_attempt_is_ignored() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.done("a")
    story.faulted("a", phase=COMPENSATION)
    story.wait_until_due()
    assert story.undone("a", attempt=1, empty=True).events == ()
    story.undone("a", attempt=2)
    assert (story.status, story.state.incident) == ("compensated", "")


def test_rule_5_a_late_effect_in_an_ended_task_is_an_incident_and_changes_no_status() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.undone("a", empty=True)
    assert story.status == "compensated"
    story.done("a")
    assert story.status == "compensated"
    assert story.actions == ()
    assert "step a took effect" in story.state.incident
    assert story.done("a").events == ()


def test_a_late_success_after_a_compensation_that_undid_something_is_no_incident() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.undone("a")
    story.done("a")
    assert (story.status, story.state.incident) == ("compensated", "")


def test_a_late_success_of_a_read_only_step_is_no_incident() -> None:
    story = Story(steps("look", ("l ?", ""), retry=ONCE))
    story.timed_out("l")
    assert (story.status, story.statuses()) == ("compensated", {"l": "failed"})
    story.done("l")
    assert story.state.incident == ""


def test_a_success_after_a_rejection_is_believed_and_compensated() -> None:
    story = Story(LINEAR)
    story.done("a")
    story.rejected("b")
    story.done("b")
    story.undone("b")
    story.undone("a")
    assert story.statuses() == {"a": "compensated", "b": "compensated"}


def test_a_pivot_that_happened_while_the_task_was_being_undone_is_an_incident() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.rejected("p")
    assert compensations(story) == ["a"]
    story.done("p")
    assert "step p took effect after it had been reported to have left" in story.state.incident
    story.undone("a")
    assert story.status == "compensated"
    assert compensations(story) == ["a"]


def test_rule_6_compensations_get_twenty_attempts_unless_told_otherwise() -> None:
    story = Story(Saga("plain").step("a", "x.y", compensate="x.z", retry=ONCE).define())
    story.timed_out("a")
    for attempt in range(1, 20):
        story.faulted("a", attempt, phase=COMPENSATION)
        story.wait_until_due()
    assert story.sent[-1].attempt == 20
    story.faulted("a", 20, phase=COMPENSATION)
    assert story.status == "failed_to_compensate"


def test_rule_6_a_compensation_that_fails_is_parked_in_view_and_never_dropped() -> None:
    story = Story(steps("undo", ("a", ""), retry=ONCE, compensation_retry=ONCE))
    story.timed_out("a")
    story.faulted("a", phase=COMPENSATION)
    assert story.status == "failed_to_compensate"
    assert story.state.cause.startswith("step 'a': Timeout.start_to_close")
    assert story.state.reason.endswith("; compensation failed: step 'a': Fault: broken")
    story.undone("a")
    assert story.status == "compensated"


def test_an_event_of_an_unknown_step_is_impossible() -> None:
    with pytest.raises(ImpossibleInput, match="no step 'x' in this task's saga"):
        Story(SINGLE).done("x")


@pytest.mark.parametrize("attempt", [0, -1, 2])
def test_an_event_of_an_attempt_that_was_never_sent_is_impossible(attempt: int) -> None:
    with pytest.raises(ImpossibleInput, match="never dispatched"):
        Story(SINGLE).done("a", attempt)


def test_a_compensation_cannot_be_answered_before_it_was_sent() -> None:
    story = Story(SINGLE)
    with pytest.raises(ImpossibleInput, match=r"\(compensation\) was never dispatched"):
        story.undone("a")


def test_nothing_happens_to_a_task_that_does_not_exist() -> None:
    with pytest.raises(ImpossibleInput, match="there is no such task"):
        transition(SINGLE, None, i.Tick(START))
