"""Steps that are tasks of another saga, and tasks that are themselves such steps."""

from __future__ import annotations

import pytest
from corpus import ONCE, steps
from headway.sagas import (
    Definition,
    Dispatch,
    ImpossibleInput,
    Saga,
    StartChild,
    Stop,
    UndoChild,
    Withdraw,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.task import Failure
from headway.sagas.transition import children, outstanding
from telling import ACTION, COMPENSATION, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)


def calling(timeout: float | None = None) -> Definition:
    """A child between two steps."""
    saga = Saga("call").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.child("c", "smaller", after="a", timeout=timeout, compensation_retry=ONCE)
    return saga.step("b", "x.b", compensate="x.undo-b", after="c", retry=ONCE).define()


def called(timeout: float | None = None) -> Story:
    story = Story(calling(timeout))
    story.done("a")
    return story


def beside() -> Story:
    """A child beside a step of an agent."""
    saga = Saga("beside").child("c", "smaller", compensation_retry=ONCE)
    return Story(saga.step("b", "x.b", read_only=True, retry=ONCE).define())


def past_return() -> Story:
    saga = Saga("past").step("p", "x.p", pivot=True)
    saga.child("c", "smaller", after="p", timeout=10.0)
    story = Story(saga.define())
    story.done("p")
    return story


def test_a_child_is_begun_in_its_turn_and_no_agent_owes_an_answer() -> None:
    story = called()
    assert story.actions == (StartChild("c", 1),)
    assert outstanding(story.definition, story.state) == ()
    assert children(story.definition, story.state) == (Dispatch("c", ACTION, 1, 0),)


def test_a_childs_output_is_the_result_and_its_step_is_done() -> None:
    story = called()
    story.child_succeeded("c", result={"shelf": 12})
    assert story.step("c").result == {"shelf": 12}
    assert story.actions == (Dispatch("b", ACTION, 1, 0),)


def test_a_childs_failure_is_the_steps_and_leaves_nothing_to_undo_of_it() -> None:
    story = called()
    story.child_undone("c")
    assert story.step("c").error == Failure("ChildCompensated", "it failed")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    story.undone("a")
    assert (story.status, story.statuses()["c"]) == ("compensated", "failed")


def test_a_child_that_cannot_be_begun_has_failed() -> None:
    story = called()
    story.child_refused("c")
    assert story.step("c").error == Failure("ChildRefused", "it is past return")
    assert compensations(story) == ["a"]


def test_a_child_is_undone_before_what_it_was_built_on() -> None:
    story = called()
    story.child_succeeded("c")
    story.rejected("b")
    assert story.actions == (UndoChild("c", 1),)
    assert children(story.definition, story.state) == (Dispatch("c", COMPENSATION, 1, 0),)
    story.child_undone("c")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)
    story.undone("a")
    assert story.statuses() == {"a": "compensated", "c": "compensated", "b": "failed"}


def test_a_child_that_cannot_be_undone_leaves_its_parent_to_a_person() -> None:
    story = called()
    story.child_succeeded("c")
    story.rejected("b")
    story.child_refused("c")
    assert story.status == "failed_to_compensate"
    assert story.state.reason == (
        "step 'b': Rejected: out of stock; "
        "compensation failed: step 'c': ChildRefused: it is past return"
    )
    story.retry("c")
    assert story.actions == (UndoChild("c", 1),)
    story.child_undone("c")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)


def test_a_child_that_was_undone_after_all_resumes_its_parent() -> None:
    story = called()
    story.child_succeeded("c")
    story.rejected("b")
    story.child_refused("c")
    story.child_undone("c")
    assert (story.status, story.statuses()["c"]) == ("compensating", "compensated")


def test_a_running_child_is_undone_when_its_parent_turns_around_and_waited_for() -> None:
    story = beside()
    story.rejected("b")
    assert story.actions == (UndoChild("c", 1),)
    assert story.status == "compensating"
    story.child_undone("c")
    assert (story.status, story.statuses()["c"]) == ("compensated", "failed")


def test_a_running_agent_and_a_running_child_are_both_asked_to_stop() -> None:
    saga = Saga("three").child("c", "smaller").step("d", "x.d", read_only=True)
    story = Story(saga.step("b", "x.b", read_only=True, retry=ONCE).define())
    story.rejected("b")
    assert story.actions == (UndoChild("c", 1), Withdraw("d", ACTION), Stop("d", 1))


def test_a_child_that_ends_well_before_it_was_stopped_is_undone() -> None:
    story = beside()
    story.rejected("b")
    story.child_succeeded("c")
    assert story.actions == (UndoChild("c", 1),)
    story.child_undone("c")
    assert (story.status, story.statuses()["c"]) == ("compensated", "compensated")


def test_a_child_that_is_past_its_own_return_is_not_taken_for_one_that_left_nothing() -> None:
    """Once known: the refusal to stop was read as a refusal to begin."""
    story = beside()
    story.rejected("b")
    story.child_refused("c")
    assert (story.status, story.statuses()["c"]) == ("compensating", "scheduled")
    story.child_succeeded("c")
    story.child_refused("c")
    assert story.status == "failed_to_compensate"


def test_a_child_whose_stopping_was_lost_is_asked_again() -> None:
    """Once known: it ran on, and its parent waited for a year."""
    story = beside()
    story.rejected("b")
    [sent] = children(story.definition, story.state)
    assert sent == Dispatch("c", COMPENSATION, 1, 0)
    story.lost("c", phase=COMPENSATION)
    assert story.actions == (UndoChild("c", 1),)
    assert story.lost("c", phase=COMPENSATION).events == ()


def test_an_undoing_that_was_lost_is_asked_for_again_whichever_attempt_it_is() -> None:
    story = called()
    story.child_succeeded("c")
    story.rejected("b")
    story.child_refused("c")
    story.retry("c")
    [sent] = children(story.definition, story.state)
    assert sent == Dispatch("c", COMPENSATION, 1, 0)
    assert story.step("c").attempt == 2
    story.lost("c", phase=COMPENSATION)
    assert story.actions == (UndoChild("c", 1),)


def test_a_child_that_was_lost_is_begun_again_under_the_same_number() -> None:
    story = called()
    story.lost("c")
    assert story.actions == (StartChild("c", 1),)
    story.child_undone("c")
    assert compensations(story) == ["a"]


def test_a_child_that_takes_too_long_is_undone_before_its_parent_counts_as_compensated() -> None:
    story = called(timeout=10.0)
    story.wait_until_due()
    assert story.statuses()["c"] == "compensating"
    assert story.actions == (UndoChild("c", 1),)


def test_a_retried_child_that_may_have_an_effect_is_the_same_one_again() -> None:
    """Once known: a second child was begun beside the first, and both did the work."""
    story = past_return()
    story.wait_until_due()
    assert (story.status, story.statuses()["c"]) == ("parked", "unknown")
    story.retry()
    assert story.actions == (StartChild("c", 1),)
    story.child_succeeded("c", attempt=1)
    assert story.status == "succeeded"


def test_a_retried_child_that_left_nothing_is_another_one() -> None:
    story = past_return()
    story.child_undone("c")
    assert story.status == "parked"
    story.retry()
    assert story.actions == (StartChild("c", 2),)
    assert story.child_succeeded("c", attempt=1).events == ()
    story.child_succeeded("c", attempt=2)
    assert story.status == "succeeded"


def test_old_news_of_a_child_that_was_undone_changes_nothing_and_is_no_incident() -> None:
    story = called()
    story.child_undone("c")
    assert story.child_succeeded("c").events == ()
    story.undone("a")
    assert story.child_succeeded("c").events == ()
    assert (story.status, story.state.incident) == ("compensated", "")


def test_news_that_comes_again_changes_nothing() -> None:
    story = called()
    story.child_succeeded("c")
    for again in (story.child_succeeded("c"), story.child_undone("c"), story.child_refused("c")):
        assert (again.events, again.actions) == ((), ())
    story.rejected("b")
    story.child_undone("c")
    for again in (story.child_undone("c"), story.child_refused("c")):
        assert (again.events, again.actions) == ((), ())


def test_news_of_a_child_that_was_never_begun_is_impossible() -> None:
    story = Story(calling())
    with pytest.raises(ImpossibleInput, match="step 'c' never began child 1"):
        story.child_succeeded("c")
    with pytest.raises(ImpossibleInput, match="step 'a' has no child task"):
        story.child_succeeded("a")
    story.done("a")
    with pytest.raises(ImpossibleInput, match="step 'c' never began child 2"):
        story.child_undone("c", attempt=2)
    with pytest.raises(
        ImpossibleInput, match="step 'c' is of kind child; no agent was asked for it"
    ):
        story.done("c")


def test_a_child_as_the_pivot_that_fails_turns_its_parent_around() -> None:
    saga = (
        Saga("leap")
        .step("a", "x.a", compensate="x.undo")
        .child("c", "smaller", after="a", pivot=True)
    )
    story = Story(saga.define())
    story.done("a")
    assert "point of no return" in story.cancel().refusal
    story.child_undone("c")
    assert story.actions == (Dispatch("a", COMPENSATION, 1, 0),)


def test_a_read_only_child_is_not_undone() -> None:
    saga = Saga("look").child("c", "reader", read_only=True)
    story = Story(saga.step("b", "x.b", after="c", read_only=True, retry=ONCE).define())
    story.child_succeeded("c")
    story.rejected("b")
    assert (story.status, story.statuses()["c"]) == ("compensated", "completed")


def test_a_task_that_is_a_child_is_undone_after_its_success_when_its_parent_is() -> None:
    story = Story(LINEAR, child=True)
    story.done("a")
    story.done("b")
    assert story.status == "succeeded"
    story.revoke()
    assert (story.status, story.state.cause) == ("compensating", "its parent is undone")
    assert story.actions == (Dispatch("b", COMPENSATION, 1, 0),)
    story.undone("b")
    story.undone("a")
    assert story.status == "compensated"
    assert story.revoke().events == ()


def test_a_child_is_undone_while_it_runs_and_while_it_is_parked() -> None:
    running, parked = Story(LINEAR, child=True), Story(LINEAR, child=True)
    running.done("a")
    running.revoke()
    assert running.actions == (Withdraw("b", ACTION), Stop("b", 1))
    parked.held("a")
    parked.revoke()
    assert (parked.status, parked.actions) == ("compensating", (Dispatch("a", COMPENSATION, 1, 0),))


def test_a_child_past_its_point_of_no_return_cannot_be_undone() -> None:
    story = Story(PIVOT, child=True)
    story.done("a")
    refused = story.revoke()
    assert refused.refusal == "the child is past its point of no return, step 'p'"
    assert refused.events == ()
    story.done("p")
    story.done("z")
    assert story.revoke().refusal == "the child is past its point of no return, step 'p'"
    assert story.status == "succeeded"


def test_a_task_that_is_no_child_cannot_be_revoked() -> None:
    running, done = Story(LINEAR), Story(LINEAR)
    done.done("a")
    done.done("b")
    for story in (running, done):
        assert story.revoke().refusal == "the task is no other task's child; cancel it instead"


def test_whether_it_is_a_child_is_in_its_history() -> None:
    story = Story(LINEAR, child=True)
    assert story.history[0] == e.TaskSubmitted(story.now, None, child=True)
    assert story.state.beside.child
    again = story.tell(i.Submit(story.now))
    assert (again.events, story.state.beside.child) == ((), True)
