"""What may be forked, and what the fork keeps: each refusal with its words."""

from __future__ import annotations

from importlib import import_module

import pytest
from corpus import ONCE, Shape, steps
from explore import LawBroken, Search
from forks import FORKED, from_step
from golden import order_desk, until_charged
from headway.sagas import Definition, ForkRefused, Task, kept
from kinds import called, handing_off
from telling import Story, compensations

REMEDY = "fork from it or from a step that it comes after, or submit the task anew"


def shipped() -> Story:
    story = until_charged()
    story.done("charge", result={"receipt": "r-1"})
    story.done("ship", result={"parcel": 7})
    story.done("notify")
    return story


def refusal(story: Story, step: str) -> str:
    with pytest.raises(ForkRefused) as refused:
        kept(story.definition, story.state, step)
    return str(refused.value)


def test_a_fork_keeps_the_results_of_all_that_does_not_come_after_its_step() -> None:
    story = shipped()
    results = kept(story.definition, story.state, "charge")
    assert results == {"reserve": {"shelf": 12}, "credit": "good"}


def test_a_step_beside_the_one_that_is_done_anew_is_kept_or_begun_anew() -> None:
    definition = steps("beside", ("p !", ""), ("x >", "p"), ("y >", "p"), retry=ONCE)
    story = Story(definition)
    story.done("p", result=1)
    story.done("x", result=2)
    story.rejected("y")
    assert story.status == "parked"
    assert kept(definition, story.state, "y") == {"p": 1, "x": 2}
    assert kept(definition, story.state, "x") == {"p": 1}
    fork = Story(definition, fork=from_step("x", p="one"))
    assert [sent.step for sent in fork.sent] == ["x", "y"]


def test_a_fork_undoes_what_it_did_itself_and_nothing_else() -> None:
    story = Story(order_desk(), fork=from_step("charge", reserve="r", credit="c"))
    story.done("charge")
    story.rejected("ship")
    story.undone("charge")
    assert story.status == "compensated"
    assert compensations(story) == ["charge"]
    assert story.step("reserve").kept


def test_a_fork_past_its_point_of_no_return_cannot_be_cancelled() -> None:
    done = {"reserve": "r", "credit": "c", "charge": "c", "ship": "s"}
    story = Story(order_desk(), fork=from_step("notify", **done))
    assert story.cancel().refusal == (
        "step 'ship', the point of no return, has been dispatched; "
        "from here the task can only go forward"
    )


def test_an_unknown_step_is_named_with_those_there_are() -> None:
    assert refusal(shipped(), "pack") == (
        "there is no step 'pack' in this task; its steps are reserve, credit, charge, ship, notify"
    )


def test_a_task_that_still_runs_cannot_be_forked() -> None:
    words = "only one that ended or is parked can be forked: wait until it is, or cancel it"
    story = until_charged()
    assert refusal(story, "charge") == f"the task is running; {words}"
    story.rejected("charge")
    assert refusal(story, "charge") == f"the task is compensating; {words}"


def test_a_child_cannot_be_forked() -> None:
    story = Story(steps("small", ("a", "")), child=True)
    story.done("a")
    assert refusal(story, "a") == "the task is a step of another one; fork that one"


def test_what_was_undone_cannot_be_kept() -> None:
    story = until_charged()
    story.rejected("charge")
    story.undone("reserve")
    assert refusal(story, "charge") == f"step 'reserve' was undone; {REMEDY}"
    assert kept(story.definition, story.state, "reserve") == {"credit": "good"}


def test_what_is_still_to_be_undone_cannot_be_kept() -> None:
    definition = steps(
        "stuck", ("a", ""), ("b", "a"), ("c", "b"), retry=ONCE, compensation_retry=ONCE
    )
    story = Story(definition)
    story.done("a")
    story.done("b")
    story.rejected("c")
    story.faulted("b", phase=story.step("b").phase)
    assert story.status == "failed_to_compensate"
    assert refusal(story, "b") == f"step 'a' is still to be undone; {REMEDY}"
    assert refusal(story, "c") == f"step 'a' is still to be undone; {REMEDY}"
    assert kept(definition, story.state, "a") == {}


def test_what_may_have_taken_effect_is_settled_first() -> None:
    definition = steps("leap", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)
    story = Story(definition)
    story.done("a", result=1)
    story.timed_out("p")
    assert refusal(story, "z") == (
        f"step 'p' may have taken effect, and nobody knows; settle it first, or {REMEDY}"
    )
    assert kept(definition, story.state, "p") == {"a": 1}


def test_what_a_kept_step_handed_off_to_cannot_be_taken_over() -> None:
    story = Story(handing_off())
    story.done("a", handoff=(called(name="h"),))
    story.done("h")
    story.done("b")
    assert story.status == "succeeded"
    words = f"step 'a' handed off to others, which a fork cannot take over; {REMEDY}"
    assert refusal(story, "b") == words
    assert refusal(story, "h") == words
    assert kept(story.definition, story.state, "a") == {}


def undone_all_the_same(definition: Definition, task: Task, step: str) -> bool:
    return task.steps[step].status == "completed" and definition.steps[step].undoable


@pytest.mark.parametrize(
    ("module", "name", "fault", "shape"),
    [
        ("advance", "may_need_compensation", undone_all_the_same, "a fork, linear of three"),
        ("fork", "begin", lambda *_: None, "a fork past return"),
    ],
)
def test_a_machine_that_touches_what_is_kept_is_caught(
    module: str, name: str, fault: object, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = import_module(f"headway.sagas.{module}")
    monkeypatch.setattr(machine, name, fault)
    [asked] = [each for each in FORKED if each.name == shape]
    with pytest.raises(LawBroken):
        Search(asked).run()


def test_a_fork_that_would_do_again_what_may_have_happened_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(import_module("headway.sagas.fork"), "_is_doubtful", lambda _: False)
    definition = steps("leap", ("p !", ""), ("z >", "p"), retry=ONCE)
    with pytest.raises(LawBroken, match="would be done a second time"):
        Search(Shape("leap", definition)).run()
