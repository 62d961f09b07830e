"""Commands that are lost, redelivered, published again or withdrawn; workers that are gone."""

from __future__ import annotations

import pytest
from corpus import steps
from headway.sagas import Dispatch, ImpossibleInput, Phase, Stop, Withdraw, outstanding
from headway.sagas import inputs as i
from headway.sagas.task import Claim, Failure
from telling import ACTION, COMPENSATION, Story, compensations

SINGLE = steps("single", ("a", ""))
PAIR = steps("pair", ("a", ""), ("b", ""))


def test_a_withdrawn_command_is_not_published_again() -> None:
    story = Story(SINGLE)
    story.cancel()
    assert story.actions == (Withdraw("a", ACTION), Stop("a", 1))
    assert outstanding(story.definition, story.state) == ()
    assert story.lost("a").actions == ()
    assert story.step("a").outstanding


def test_a_withdrawn_command_is_not_looked_after_but_given_up_in_time() -> None:
    story = Story(SINGLE)
    story.cancel()
    given_up = story.step("a").stop_by
    story.wait_until_due()
    assert story.now == given_up
    assert story.statuses() == {"a": "compensating"}


def test_a_rejection_after_a_take_over_does_not_speak_for_the_worker_before() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=2)
    story.rejected("a", epoch=1)
    assert compensations(story) == ["a"]
    assert not story.step("a").known


def test_a_rejection_after_a_lost_dispatch_does_not_speak_for_what_was_lost() -> None:
    story = Story(SINGLE)
    story.lost("a")
    story.rejected("a", epoch=1)
    assert compensations(story) == ["a"]


def test_a_rejection_by_the_first_worker_of_an_old_command_leaves_nothing_to_undo() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=1)
    story.rejected("a", epoch=1)
    assert story.statuses() == {"a": "failed"}
    assert story.status == "compensated"


def test_a_lost_dispatch_is_published_again_under_a_new_epoch() -> None:
    story = Story(SINGLE)
    story.lost("a")
    assert story.actions == (Dispatch("a", ACTION, 1, 1),)
    assert outstanding(story.definition, story.state) == (Dispatch("a", ACTION, 1, 1),)
    assert story.lost("a", epoch=0).actions == ()


def test_a_command_that_is_lost_again_and_again_is_unknown_in_the_end() -> None:
    """As one is that no worker can read: each takes it out of its stream, and none answers."""
    story = Story(SINGLE)
    for epoch in range(20):
        assert story.lost("a", epoch=epoch).actions == (Dispatch("a", ACTION, 1, epoch + 1),)
    story.lost("a", epoch=20)
    assert story.actions == (Withdraw("a", ACTION), Stop("a", 1))
    assert story.step("a").error == Failure(
        "Timeout.delivery_limit", "no answer within delivery_limit"
    )
    assert story.step("a").retry_at > story.now


def test_a_claim_raises_the_epoch_and_silences_the_worker_before() -> None:
    story = Story(SINGLE)
    assert story.claim("a", delivery=2, worker="second").refusal == ""
    assert story.step("a").epoch == 1
    assert story.faulted("a", epoch=0).events == ()
    assert story.timed_out("a", epoch=0).events == ()
    assert story.heartbeat("a", epoch=0).events == ()
    assert story.done("a").events


def test_the_same_claim_is_granted_again_because_its_answer_may_be_lost() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=2, worker="second")
    again = story.claim("a", delivery=2, worker="second")
    assert (again.events, again.refusal) == ((), "")
    assert story.step("a").epoch == 1


def test_an_earlier_delivery_cannot_take_a_command_back() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=3, worker="third")
    late = story.claim("a", delivery=2, worker="second")
    assert "later delivery" in late.refusal
    assert late.events == ()


def test_a_delivery_of_a_new_publication_comes_before_any_of_the_old_one() -> None:
    story = Story(SINGLE)
    story.lost("a")
    story.claim("a", command_epoch=1, delivery=1, worker="new")
    assert story.step("a").epoch == 2
    assert "later delivery" in story.claim("a", command_epoch=0, delivery=4).refusal


def test_a_claim_of_an_attempt_that_was_answered_is_refused() -> None:
    story = Story(PAIR)
    story.done("a")
    assert "not outstanding" in story.claim("a").refusal


def test_a_claim_of_an_attempt_that_was_never_sent_is_impossible() -> None:
    with pytest.raises(ImpossibleInput, match=r"attempt 2 of step 'a'.*never dispatched"):
        Story(SINGLE).claim("a", 2)


def test_a_command_whose_workers_die_again_and_again_waits_for_a_person() -> None:
    story = Story(SINGLE)
    for delivery in range(2, 5):
        assert story.claim("a", delivery=delivery, worker=f"w{delivery}").refusal == ""
    assert "taken over 3 times" in story.claim("a", delivery=5, worker="w5").refusal
    assert story.step("a").uncertain
    assert Withdraw("a", ACTION) in story.actions
    assert (story.status, story.state.reason) == (
        "parked",
        "step 'a': the command was taken over 3 times without an answer; "
        "a person must look at its agent",
    )
    story.tell(i.RetryStuck(story.now, "ann", "mended"))
    assert story.sent[-1] == Dispatch("a", ACTION, 2, 0)


def test_workers_that_are_told_to_stop_are_not_counted_as_killed() -> None:
    story = Story(SINGLE)
    for delivery in range(2, 9):
        assert len(story.hand_back("a", epoch=delivery - 2).events) == 1
        assert story.hand_back("a", epoch=delivery - 2).events == ()  # said again
        assert story.claim("a", delivery=delivery, worker=f"w{delivery}").refusal == ""
    assert (story.step("a").claims, story.step("a").epoch) == (0, 7)
    for delivery in range(9, 12):
        assert story.claim("a", delivery=delivery, worker=f"w{delivery}").refusal == ""
    assert "taken over 3 times" in story.claim("a", delivery=12, worker="w12").refusal


def test_a_hand_back_of_an_earlier_holder_changes_nothing() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=2)
    assert story.hand_back("a", epoch=0).events == ()
    assert not story.step("a").handed_back


def test_what_is_left_of_a_publication_is_granted_to_nobody_after_a_fenced_one() -> None:
    """Published again because its worker was lost, while the old command was on its way to
    another worker all the same: one of the two is granted, the newer one."""
    story = Story(SINGLE)
    story.tell(i.DispatchLost(story.now, "a", ACTION, 1, 0, fenced=True))
    assert story.sent[-1] == Dispatch("a", ACTION, 1, 1)
    old = i.ClaimAsked(story.now, "a", ACTION, 1, Claim(0, 2, "late"))
    assert story.tell(old).refusal == "a later delivery of this command was granted already"
    assert story.step("a").claims == 0
    new = i.ClaimAsked(story.now, "a", ACTION, 1, Claim(1, 1, "w"))
    assert story.tell(new).refusal == ""
    assert (story.step("a").epoch, story.step("a").claims) == (2, 1)


def test_a_claim_that_came_first_keeps_its_command_from_being_published_again() -> None:
    story = Story(SINGLE)
    story.claim("a", delivery=2)
    lost = i.DispatchLost(story.now, "a", ACTION, 1, 0, fenced=True)
    assert story.tell(lost).actions == ()
    assert story.step("a").epoch == 1


def test_a_compensation_whose_workers_die_again_and_again_is_tried_again_by_its_policy() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.cancel()
    for delivery in range(2, 6):
        story.tell(
            i.ClaimAsked(story.now, "a", COMPENSATION, 1, Claim(0, delivery, f"w{delivery}"), 0.0)
        )
    assert "taken over 3 times" in story.last.refusal
    assert story.status == "compensating"
    assert story.step("a").retry_at > story.now


def test_a_claim_in_a_task_that_is_being_undone_ends_the_attempt_as_unknown() -> None:
    story = Story(SINGLE)
    story.cancel()
    assert "being undone" in story.claim("a").refusal
    assert story.statuses() == {"a": "compensating"}
    assert story.sent[-1] == Dispatch("a", COMPENSATION, 1, 0)


def test_a_command_is_withdrawn_when_an_earlier_attempt_succeeds_after_all() -> None:
    story = Story(SINGLE)
    story.timed_out("a")
    story.wait_until_due()
    story.done("a", attempt=1)
    assert story.actions == (Withdraw("a", ACTION),)
    assert story.status == "succeeded"


def test_what_is_withdrawn_is_withdrawn_before_the_next_command_is_sent() -> None:
    story = Story(steps("after", ("a", ""), ("b", "a")))
    story.done("a")
    story.timed_out("b")
    story.wait_until_due()
    story.cancel()
    story.done("b", attempt=1)
    assert story.actions == (Withdraw("b", ACTION), Dispatch("b", Phase.COMPENSATION, 1, 0))
