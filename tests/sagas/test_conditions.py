"""Steps that depend on a condition: skipped where it is false, failed where nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corpus import ONCE, Judged
from headway.sagas import Definition, Dispatch, Saga
from headway.sagas import events as e
from headway.sagas.checks import results_of
from headway.sagas.task import Failure
from kinds import Written, forked_at_a_signal
from telling import ACTION, Story, compensations


def forked() -> Definition:
    """`b` and `c` come after `a`; what `a` gave decides on `c`, and `d` comes after that."""
    written = Written("forked").step("a").step("b", "a").step("c", "a", when="a")
    return written.step("d", "c").define()


def told(definition: Definition | None = None) -> Story:
    return Story(definition or forked(), checks=Judged())


def test_a_step_whose_condition_holds_is_done() -> None:
    story = told()
    story.done("a", result="yes")
    assert story.actions == (Dispatch("b", ACTION, 1, 0), Dispatch("c", ACTION, 1, 0))


def test_a_step_whose_condition_does_not_hold_is_skipped_and_its_followers_go_on() -> None:
    story = told()
    moved = story.done("a", result="no")
    assert e.StepSkipped(story.now, "c") in moved.events
    assert story.actions == (Dispatch("b", ACTION, 1, 0), Dispatch("d", ACTION, 1, 0))
    story.done("b")
    story.done("d")
    assert (story.status, story.statuses()["c"]) == ("succeeded", "skipped")


def test_a_skipped_step_has_no_result_and_nothing_to_undo() -> None:
    story = told()
    story.done("a", result="no")
    assert "c" not in results_of(story.state)
    story.done("b")
    story.rejected("d")
    assert sorted(compensations(story)) == ["b"]
    story.undone("b")
    story.undone("a")
    assert story.statuses() == {
        "a": "compensated",
        "b": "compensated",
        "c": "skipped",
        "d": "failed",
    }


def test_a_condition_that_nobody_can_tell_fails_its_step_and_sends_nothing_beside_it() -> None:
    """Once known: what came beside it was sent in the same breath, and stopped at once."""
    story = told()
    moved = story.done("a", result="odd")
    error = Failure("ConditionError", "nobody can tell")
    assert e.ConditionFailed(story.now, "c", error) in moved.events
    assert [(sent.step, sent.phase) for sent in story.sent] == [
        ("a", "action"),
        ("a", "compensation"),
    ]
    assert story.state.cause == "step 'c': ConditionError: nobody can tell"
    assert story.statuses()["b"] == "skipped"


def test_a_condition_that_fails_stops_what_was_running_already() -> None:
    saga = Written("stop").step("a").step("b").step("c", "a", when="a").define()
    story = told(saga)
    story.done("a", result="odd")
    assert story.status == "compensating"
    assert story.step("b").stop_by > 0


def test_a_condition_that_fails_at_once_ends_a_task_that_did_nothing() -> None:
    story = told(Written("none").step("a").step("c", when="x").define())
    assert (story.status, story.actions) == ("compensated", ())
    assert story.statuses() == {"a": "skipped", "c": "failed"}


def test_a_signal_that_is_there_decides_at_once_and_still_sends_nothing_that_is_stopped() -> None:
    story = told(forked_at_a_signal())
    story.signal("go", "s-1")
    story.done("a", result="odd")
    assert [sent.step for sent in story.sent] == ["a", "a"]
    assert story.statuses()["w"] == "completed"


def test_a_step_may_be_skipped_because_one_before_it_was() -> None:
    """What a skipped step would have given is not there to ask for."""
    saga = Written("chain").step("a").step("b", "a", when="a").step("c", "b", when="b", kind="?")
    story = told(saga.define())
    story.done("a", result="no")
    assert story.state.cause == "step 'c': ConditionError: nobody can tell"
    both = Written("both").step("a").step("b", "a", when="a").step("c", "b", when="a", kind="?")
    story = told(both.define())
    story.done("a", result="no")
    assert story.status == "succeeded"


def test_a_condition_sees_no_result_of_a_step_that_it_does_not_come_after() -> None:
    """Once known: what became of a step depended on which of two others was faster."""
    for order in ("ab", "ba"):
        story = told(Written("race").step("a").step("b").step("c", "b", when="a").define())
        for name in order:
            story.done(name, result="yes")
        assert story.step("c").error == Failure("ConditionError", "nobody can tell")


def test_all_steps_but_the_first_may_be_skipped() -> None:
    story = told(Written("all").step("a").step("b", "a", when="a").define())
    story.done("a", result="no")
    assert story.status == "succeeded"


def test_past_the_point_of_no_return_a_condition_that_fails_parks_the_task() -> None:
    written = Written("past").step("p", kind="!").step("c", "p", kind=">", when="p")
    definition = written.step("z", "c", kind=">").define()
    retried, settled = told(definition), told(definition)
    for story in (retried, settled):
        story.done("p", result="odd")
        assert (story.status, story.state.reason) == (
            "parked",
            "past the point of no return: step 'c': ConditionError: nobody can tell",
        )
    retried.wait(1)
    retried.retry()
    assert retried.actions == (Dispatch("c", ACTION, 1, 0),)
    settled.happened("c", result="seen to")
    assert settled.actions == (Dispatch("z", ACTION, 1, 0),)


def test_to_resume_for_another_reason_is_not_to_do_what_no_condition_allowed() -> None:
    """A request that is handled twice must not begin what nobody has looked at."""
    written = Written("past").step("p", kind="!").step("c", "p", kind=">", when="p")
    story = told(written.define())
    story.held("p")
    story.done("p", result="odd")
    story.wait(1)
    story.retry()
    assert (story.status, story.statuses()["c"]) == ("parked", "failed")
    assert story.retry().refusal == "step 'c' failed only when this was asked: look at it first"
    story.wait(1)
    story.retry()
    assert story.actions == (Dispatch("c", ACTION, 1, 0),)


def test_other_kinds_of_steps_have_conditions_too() -> None:
    saga = Saga("kinds").step("a", "x.a", read_only=True, retry=ONCE)
    saga.approval("ok", after="a", when="a").wait("w", after="a", when="a")
    saga.sleep("s", 5.0, after="a", when="a").child("c", "smaller", after="a", when="a")
    story = told(saga.define())
    story.done("a", result="no")
    assert story.status == "succeeded"
    assert set(story.statuses().values()) == {"completed", "skipped"}


def test_no_condition_is_asked_while_a_person_is_to_look() -> None:
    class Counting(Judged):
        asked = 0

        def when(self, expression: str, results: Mapping[str, Any], /) -> bool | Failure:
            self.asked += 1
            return super().when(expression, results)

    checks = Counting()
    story = Story(forked(), checks=checks)
    story.guarded("a")
    story.done("a", result="no")
    assert (story.status, checks.asked) == ("parked", 0)
    story.retry()
    assert story.statuses()["c"] == "skipped"
