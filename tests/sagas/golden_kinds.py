"""The golden stories of other kinds of steps, holds, hand-offs, outputs and deadlines."""

from __future__ import annotations

from collections.abc import Callable

from corpus import ONCE, Judged, steps
from headway.sagas import Saga, Step
from headway.sagas.circumstances import Bounds
from telling import START, Story


def what_waits_goes_on_by_a_word_a_signal_and_time() -> Story:
    saga = Saga("waits").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.approval("ok", after="a", timeout=60.0).wait("paid", after="ok")
    saga.sleep("rest", 5.0, after="paid").approval(
        "sure", after="rest", timeout=9.0, default="approve"
    )
    story = Story(saga.define(), checks=Judged())
    story.signal("paid", "s-1", {"amount": 7})
    story.signal("paid", "s-1", {"amount": 7})
    story.done("a")
    story.wait(10)
    story.approve("ok")
    story.wait_until_due()
    story.wait_until_due()
    return story


def a_rejection_undoes_what_came_before() -> Story:
    saga = Saga("waits").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.approval("ok", after="a").wait("paid", timeout=60.0)
    story = Story(saga.define(), checks=Judged())
    story.done("a")
    story.reject("ok")
    story.undone("a")
    return story


def a_child_is_undone_with_its_parent() -> Story:
    saga = Saga("calls").child("first", "smaller", version=2)
    saga.child("second", "smaller", input={"part": 2}).step(
        "b", "x.b", after="first", read_only=True, retry=ONCE
    )
    story = Story(saga.define(), checks=Judged())
    story.lost("second")
    story.child_succeeded("first", result={"id": 9})
    story.rejected("b")
    story.child_undone("second")
    story.child_refused("first")
    story.retry("first")
    story.child_undone("first")
    return story


def a_child_that_succeeded_is_revoked() -> Story:
    definition = steps("smaller", ("a", ""), ("b", "a"), retry=ONCE)
    story = Story(definition, child=True, checks=Judged())
    story.done("a")
    story.done("b")
    story.revoke()
    story.undone("b")
    story.undone("a")
    return story


def a_condition_skips_one_step_and_nobody_can_tell_another() -> Story:
    saga = Saga("forks").step("a", "x.a", compensate="x.undo", retry=ONCE)
    saga.step("b", "x.b", read_only=True, after="a", when="a", retry=ONCE)
    saga.step("c", "x.c", read_only=True, after="b", retry=ONCE)
    story = Story(
        saga.step("d", "x.d", read_only=True, after="c", when="c").define(), checks=Judged()
    )
    story.done("a", result="no")
    story.done("c", result="odd")
    story.undone("a")
    return story


def a_step_hands_off_and_one_more_is_refused() -> Story:
    definition = steps("hands", ("a", ""), ("b", "a"), retry=ONCE)
    story = Story(definition, bounds=Bounds(max_steps=4, agents=("agent", "desk")), checks=Judged())
    look = Step("", "desk.look", "desk.undo", input={"order": 7})
    tell = Step("tell", "desk.tell", read_only=True)
    story.done("a", handoff=(look, tell))
    story.done("desk-look-1")
    story.done("tell", handoff=(look,))
    story.retry()
    story.done("b")
    return story


def a_guard_stops_a_step_and_a_person_resumes() -> Story:
    story = Story(steps("held", ("a", ""), ("b", "a"), retry=ONCE), checks=Judged())
    story.guarded("a")
    story.faulted("a", retryable=False, no_effect=True)
    story.wait(1_000)
    story.retry()
    story.done("a", attempt=2)
    story.held("b")
    story.happened("b", result="seen")
    return story


def an_output_is_given_again_until_a_person_takes_it() -> Story:
    definition = steps("output", ("a", ""), ("b", "a"), retry=ONCE)
    story = Story(definition, bounds=Bounds(on_rejection="retry"), checks=Judged())
    story.done("a")
    for attempt in range(1, 5):
        story.done("b", attempt, result="bad")
    story.wait(1_000)
    story.retry("b")
    story.done("b", attempt=5, result="bad")
    story.wait(1_000)
    story.retry()
    return story


def a_deadline_passes_beyond_the_point_of_no_return() -> Story:
    definition = steps("late", ("p !", ""), ("z >", "p"), retry=ONCE)
    story = Story(definition, bounds=Bounds(deadline=START + 20_000), checks=Judged())
    story.wait_until_due()
    story.done("p")
    story.wait(1_000)
    story.retry()
    story.done("z")
    return story


def a_deadline_turns_a_task_around() -> Story:
    definition = steps("late", ("a", ""), ("b", "a"), retry=ONCE)
    story = Story(definition, bounds=Bounds(deadline=START + 20_000), checks=Judged())
    story.done("a")
    story.wait_until_due()
    story.rejected("b")
    story.undone("a")
    return story


def a_task_is_moved_to_another_version_in_the_middle() -> Story:
    story = Story(steps("mended", ("a", ""), ("b", "a"), ("c", "b")), checks=Judged())
    story.done("a")
    story.wait(1_000)
    story.moved(2)
    story.done("b")
    story.done("c")
    return story


def a_worker_is_told_to_stop_and_another_goes_on() -> Story:
    story = Story(steps("deployed", ("a", ""), ("b", "a")), checks=Judged())
    story.wait(1_000)
    story.hand_back("a")
    story.wait(1)
    story.claim("a", delivery=2)
    story.done("a")
    story.done("b")
    return story


STORIES_OF_KINDS: tuple[Callable[[], Story], ...] = (
    what_waits_goes_on_by_a_word_a_signal_and_time,
    a_rejection_undoes_what_came_before,
    a_child_is_undone_with_its_parent,
    a_child_that_succeeded_is_revoked,
    a_condition_skips_one_step_and_nobody_can_tell_another,
    a_step_hands_off_and_one_more_is_refused,
    a_guard_stops_a_step_and_a_person_resumes,
    an_output_is_given_again_until_a_person_takes_it,
    a_deadline_passes_beyond_the_point_of_no_return,
    a_deadline_turns_a_task_around,
    a_task_is_moved_to_another_version_in_the_middle,
    a_worker_is_told_to_stop_and_another_goes_on,
)
