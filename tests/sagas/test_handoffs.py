"""Steps that hand off to others: the plan grows, within the manifest, and not in a loop."""

from __future__ import annotations

from typing import Any

from corpus import ONCE, steps
from headway.sagas import Dispatch, Step
from headway.sagas import events as e
from headway.sagas.circumstances import Appended, Bounds
from headway.sagas.definition import Definition
from telling import ACTION, Story, compensations

LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)


def to(
    action: str = "desk.look", undo: str | None = "desk.undo", *, name: str = "", input: Any = None
) -> Step:
    return Step(name, action, undo, read_only=undo is None, input=input, retry=ONCE)


def refused(story: Story) -> str:
    """Why the task is parked for what was handed off."""
    hold = story.state.beside.hold
    assert hold is not None
    assert (story.status, hold.kind, hold.step) == ("parked", "HandoffRefused", "a")
    return hold.reason


def test_what_is_handed_off_to_comes_after_the_step_and_before_what_follows_it() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),))
    assert story.actions == (Dispatch("desk-look-1", ACTION, 1, 0),)
    assert story.definition.steps["b"].after == ("a", "desk-look-1")
    story.done("desk-look-1", result="seen")
    assert story.actions == (Dispatch("b", ACTION, 1, 0),)
    story.done("b")
    assert story.status == "succeeded"


def test_a_hand_off_is_in_the_history_and_in_the_plan() -> None:
    story = Story(LINEAR)
    step = to(input={"order": 7})
    appended = story.done("a", handoff=(step,)).events[1]
    assert isinstance(appended, e.StepsAppended)
    assert (appended.by, [each.name for each in appended.steps]) == ("a", ["desk-look-1"])
    [planned] = story.state.beside.plan
    assert isinstance(planned, Appended)
    assert planned.step.input == {"order": 7}


def test_several_steps_that_are_handed_off_to_run_side_by_side() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to("desk.look"), to("shelf.look"), to("desk.look")))
    assert [sent.step for sent in story.sent[1:]] == ["desk-look-1", "shelf-look-1", "desk-look-2"]


def test_a_step_that_was_handed_off_to_may_hand_off_again() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),))
    story.done("desk-look-1", handoff=(to(name="more"),))
    assert story.statuses()["more"] == "scheduled"
    assert story.definition.steps["b"].after == ("a", "desk-look-1", "more")


def test_the_output_is_that_of_what_was_handed_off_to_last() -> None:
    story = Story(LINEAR)
    story.done("a")
    story.done("b", handoff=(to(name="end"),))
    assert story.definition.last == ("end",)


def test_what_was_handed_off_to_is_undone_before_the_step_that_did_so() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),))
    story.done("desk-look-1")
    story.rejected("b")
    assert compensations(story) == ["desk-look-1"]
    story.undone("desk-look-1")
    assert compensations(story) == ["desk-look-1", "a"]


def test_a_repeated_success_hands_off_once() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),))
    assert story.done("a", handoff=(to(),)).events == ()
    assert len(story.state.beside.plan) == 1


def test_the_first_success_of_any_attempt_is_the_one_that_hands_off() -> None:
    story = Story(steps("again", ("a", ""), ("b", "a")))
    story.timed_out("a")
    story.wait_until_due()
    story.done("a", attempt=1, handoff=(to(name="first"),))
    story.done("a", attempt=2, handoff=(to(name="second"),))
    assert [each.step.name for each in story.state.beside.plan] == ["first"]


def test_a_step_that_ends_after_the_turn_hands_off_to_nobody() -> None:
    story = Story(steps("two", ("a", ""), ("b", ""), retry=ONCE))
    story.rejected("b")
    story.done("a", handoff=(to(),))
    assert story.state.beside.plan == ()
    assert compensations(story) == ["a"]


def test_a_hand_off_that_comes_late_to_a_parked_task_is_not_lost() -> None:
    """Once known: the step was done, and what it handed off to was forgotten."""
    story = Story(steps("again", ("a", ""), ("b", "a")))
    story.timed_out("a")
    story.wait_until_due()
    story.held("a", attempt=2)
    story.done("a", attempt=1, handoff=(to(),))
    assert (story.status, story.statuses()["desk-look-1"]) == ("parked", "waiting")
    story.retry()
    assert story.actions == (Dispatch("desk-look-1", ACTION, 1, 0),)


def test_a_hand_off_that_resumes_a_stuck_task_is_not_lost_either() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.timed_out("p")
    assert story.status == "parked"
    story.done("p", handoff=(to("desk.look", undo=None),))
    assert story.actions == (Dispatch("desk-look-1", ACTION, 1, 0),)


def test_an_agent_that_the_manifest_does_not_allow_is_not_handed_off_to() -> None:
    story = Story(LINEAR, bounds=Bounds(agents=("agent", "desk")))
    story.done("a", handoff=(to(), to("bank.pay", "desk.undo")))
    assert refused(story) == (
        "step 'a' hands off, refused: the manifest does not allow agent 'bank'"
    )
    assert story.state.beside.plan == ()
    undoing = Story(LINEAR, bounds=Bounds(agents=("agent", "desk")))
    undoing.done("a", handoff=(to("desk.look", "bank.undo"),))
    assert refused(undoing).endswith("the manifest does not allow agent 'bank'")


def test_no_more_steps_than_the_manifest_allows_are_handed_off_to() -> None:
    story = Story(LINEAR, bounds=Bounds(max_steps=3))
    story.done("a", handoff=(to(), to("desk.tell")))
    assert refused(story) == (
        "step 'a' hands off, refused: the manifest allows 3 steps; there would be 4"
    )
    enough = Story(LINEAR, bounds=Bounds(max_steps=3))
    enough.done("a", handoff=(to(),))
    assert enough.status == "running"


def test_a_step_that_could_not_be_undone_is_not_handed_off_to_before_the_pivot() -> None:
    story = Story(PIVOT)
    step = Step("", "desk.look")
    story.done("a", handoff=(step,))
    assert refused(story) == (
        "step 'a' hands off, refused: saga 'pivot': step 'desk-look-1' has no compensation; "
        "add compensate='agent.action', mark it read_only=True, or make it the pivot"
    )


def test_a_step_with_a_compensation_is_not_handed_off_to_past_the_pivot() -> None:
    story = Story(steps("leap", ("a !", ""), ("z >", "a"), retry=ONCE))
    story.done("a", handoff=(to(),))
    assert refused(story) == (
        "step 'a' hands off, refused: saga 'leap': step 'desk-look-1' is not before the pivot 'a', "
        "so it is never compensated; drop its `compensate` or move the pivot behind it"
    )


def test_past_the_pivot_what_cannot_be_undone_is_handed_off_to() -> None:
    story = Story(PIVOT)
    story.done("a")
    story.done("p", handoff=(Step("", "desk.look"),))
    assert story.actions == (Dispatch("desk-look-1", ACTION, 1, 0),)
    story.done("desk-look-1", handoff=(Step("", "desk.look"),))
    assert story.actions == (Dispatch("desk-look-2", ACTION, 1, 0),)


def test_a_name_that_is_taken_is_refused_and_one_that_is_none_too() -> None:
    taken, bad, same = Story(LINEAR), Story(LINEAR), Story(LINEAR)
    taken.done("a", handoff=(to(name="b"),))
    assert refused(taken) == (
        "step 'a' hands off, refused: saga 'linear': two steps are named 'b'; rename one"
    )
    bad.done("a", handoff=(to(name="look here"),))
    assert "step 'look here': a name has 1 to 64 of A-Z a-z 0-9 _ and -" in refused(bad)
    same.done("a", handoff=(to(name="x"), to(name="x")))
    assert "two steps are named 'x'; rename one" in refused(same)


def test_a_name_that_is_made_up_is_one_that_nobody_has() -> None:
    story = Story(steps("named", ("a", ""), ("desk-look-1", "a"), retry=ONCE))
    story.done("a", handoff=(to(), to(name="desk-look-3"), to()))
    assert [each.step.name for each in story.state.beside.plan] == [
        "desk-look-2",
        "desk-look-3",
        "desk-look-4",
    ]


def test_a_long_action_gives_a_name_that_fits() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(f"{'d' * 64}.{'l' * 64}"),))
    assert story.state.beside.plan[0].step.name == f"{'d' * 56}-1"


def test_after_a_refused_hand_off_a_person_may_go_on_without_it_or_undo_it_all() -> None:
    resumed, cancelled = (Story(LINEAR, bounds=Bounds(max_steps=2)) for _ in range(2))
    for story in (resumed, cancelled):
        story.done("a", handoff=(to(),))
    resumed.retry()
    assert resumed.actions == (Dispatch("b", ACTION, 1, 0),)
    cancelled.cancel()
    assert compensations(cancelled) == ["a"]


def test_a_refused_hand_off_is_told_of_a_task_that_is_held_already() -> None:
    """Once known: nobody was told that what was handed off to would not be done."""
    story = Story(LINEAR, bounds=Bounds(max_steps=2))
    story.guarded("a")
    story.done("a", handoff=(to(),))
    assert story.status == "parked"
    assert story.state.reason == (
        "step 'a': budget-spent: nothing is left; "
        "step 'a' hands off, refused: the manifest allows 2 steps; there would be 3"
    )
    assert [hold.kind for hold in story.state.beside.holds] == ["budget-spent", "HandoffRefused"]


def handed_on(story: Story, *steps: Step) -> None:
    """Each hands off to the next."""
    by = "b"
    for step in steps:
        story.done(by, handoff=(step,))
        by = story.state.beside.plan[-1].step.name


def test_the_same_hand_off_five_times_in_a_row_is_a_loop() -> None:
    story = Story(LINEAR)
    story.done("a")
    handed_on(story, *[to()] * 4)
    assert story.status == "running"
    handed_on_from = story.state.beside.plan[-1].step.name
    story.done(handed_on_from, handoff=(to(),))
    hold = story.state.beside.hold
    assert hold is not None
    assert hold.kind == "LoopDetected"
    assert story.state.reason == (
        "hand-offs go round in a loop: 'desk.look#74234e98' 5 times in a row"
    )
    assert story.status == "parked"
    assert story.statuses()["desk-look-5"] == "waiting"


def test_two_agents_that_hand_off_to_each_other_are_a_loop() -> None:
    story = Story(LINEAR)
    story.done("a")
    handed_on(story, *[to("desk.look"), to("shelf.look")] * 5)
    assert story.status == "parked"
    assert story.state.reason.startswith("hand-offs go round in a loop: the cycle 'desk.look#")
    assert story.state.reason.endswith("5 times")


def test_the_same_hand_off_many_times_side_by_side_is_no_loop() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),) * 9)
    assert (story.status, len(story.sent)) == ("running", 10)


def test_hand_offs_with_other_inputs_are_no_loop() -> None:
    story = Story(LINEAR)
    story.done("a")
    handed_on(story, *[to(input=number) for number in range(12)])
    assert story.status == "running"


def test_after_a_loop_that_a_person_resumed_it_is_counted_anew() -> None:
    story = Story(LINEAR)
    story.done("a")
    handed_on(story, *[to()] * 5)
    story.retry()
    assert story.actions == (Dispatch("desk-look-5", ACTION, 1, 0),)
    assert story.state.beside.trail == ()
    story.done("desk-look-5", handoff=(to(),))
    assert story.status == "running"


def test_a_plan_keeps_the_name_the_version_and_the_digest_of_its_saga() -> None:
    story = Story(LINEAR)
    story.done("a", handoff=(to(),))
    assert isinstance(story.definition, Definition)
    assert (story.definition.name, story.definition.digest) == ("linear", LINEAR.digest)
    assert list(story.definition.steps) == ["a", "desk-look-1", "b"]
    assert list(LINEAR.steps) == ["a", "b"]
