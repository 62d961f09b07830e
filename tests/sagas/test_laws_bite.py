"""Each law bites: a machine with one fault in it is caught, by the law that is meant to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import explore
import laws
import pytest
from corpus import SHAPES, Shape
from explore import LawBroken, Search
from headway.sagas import Action, Definition, Dispatch, Phase, StepStatus, Task
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.progress import OfAttempt, Progress
from headway.sagas.task import Claim, may_need_compensation

advance = import_module("headway.sagas.advance")
attempts = import_module("headway.sagas.attempts")
replay = import_module("headway.sagas.replay")
successes = import_module("headway.sagas.successes")
machine = import_module("headway.sagas.transition")


def in_any_order(definition: Definition, task: Task, step: str) -> bool:
    return may_need_compensation(definition, task, step)


def whatever_was_executed(definition: Definition, task: Task, step: str) -> bool:
    return definition.steps[step].compensate is not None and task.steps[step].actions > 0


def only_what_completed(definition: Definition, task: Task, step: str) -> bool:
    return (
        task.steps[step].status is StepStatus.COMPLETED
        and definition.steps[step].compensate is not None
    )


def a_success_is_a_success(progress: Progress, happened: i.Succeeded) -> None:
    """The fault of a peer: events that do not say of which phase they are."""
    if progress.state(happened.step).status is StepStatus.COMPENSATING:
        progress.record(e.StepCompensated(happened.at, happened.step, happened.attempt))
    else:
        successes.succeeded(progress, happened)


def an_empty_answer_is_always_believed(progress: Progress, happened: i.Succeeded) -> None:
    if progress.state(happened.step).status is not StepStatus.COMPENSATED:
        successes._resume(progress, happened)
        where = (happened.at, happened.step, happened.attempt)
        progress.record(e.StepCompensated(*where, happened.empty))


def every_answer_counts(progress: Progress, happened: i.Succeeded) -> None:
    where = (happened.at, happened.step, happened.attempt)
    progress.record(e.StepCompensated(*where, happened.empty))


def a_timeout_is_a_failure(status: StepStatus) -> bool:
    """The fault of another peer: what timed out is taken to have left nothing."""
    return False


def any_attempt(progress: Progress, attempt: OfAttempt) -> bool:
    return progress.state(attempt.step).outstanding


def turn_without_stopping(
    progress: Progress, at: int, reason: str, *, failed: str = "", by: str = ""
) -> None:
    progress.record(e.RecoveryStarted(at, reason, failed, by))


def lost_again_and_again(progress: Progress, happened: i.DispatchLost) -> None:
    if happened.step in progress.task.steps and progress.is_current(happened):
        epoch = progress.state(happened.step).epoch + 1
        where = (happened.at, happened.step, happened.phase, happened.attempt)
        progress.record(e.AttemptRepublished(*where, epoch))


def twice(_: Progress, before: Task | None, events: tuple[e.Event, ...]) -> Iterator[Action]:
    for event in events:
        if isinstance(event, e.AttemptDispatched):
            yield Dispatch(event.step, event.phase, event.attempt, 0)
            yield Dispatch(event.step, event.phase, event.attempt, 0)


def sent_and_never_withdrawn(
    _: Progress, before: Task | None, events: tuple[e.Event, ...]
) -> Iterator[Action]:
    for event in events:
        if isinstance(event, e.AttemptDispatched):
            yield Dispatch(event.step, event.phase, event.attempt, 0)


def all_that_was_sent(_: Definition, task: Task) -> tuple[Dispatch, ...]:
    return tuple(
        Dispatch(name, state.phase, state.attempt, state.epoch)
        for name, state in task.steps.items()
        if state.outstanding
    )


def shape_named(name: str) -> Shape:
    return next(shape for shape in SHAPES if shape.name == name)


def anything_goes(*_: object) -> bool:
    return True


def nothing_is(*_: object) -> bool:
    return False


def never(*_: object) -> None:
    return None


FAULTS: list[tuple[Any, str, Callable[..., Any], str, str]] = [
    (advance, "_is_next_to_compensate", in_any_order, "linear", "compensation_covers"),
    (advance, "may_need_compensation", only_what_completed, "single", "a_compensated_task"),
    (advance, "_is_next_to_compensate", whatever_was_executed, "single", "compensation_covers"),
    (machine, "succeeded", a_success_is_a_success, "linear", "was never told"),
    (replay, "_may_matter", a_timeout_is_a_failure, "single", "a_compensated_task"),
    (successes, "_compensation_succeeded", every_answer_counts, "single", "a_repeated_input"),
    (successes, "_is_too_late", nothing_is, "single", "the_state_is_sound"),
    (Progress, "is_current", any_attempt, "single", "a_repeated_input"),
    (advance, "recover", turn_without_stopping, "two roots", "nothing_new_is_begun"),
    (
        machine,
        "dispatch_lost",
        lost_again_and_again,
        "single, redelivered and lost",
        "a_repeated_input",
    ),
    (machine, "_actions", twice, "single", "no_attempt_is_sent_twice"),
    (machine, "_actions", sent_and_never_withdrawn, "single", "what_is_no_longer_wanted"),
    (
        Claim,
        "precedes",
        anything_goes,
        "single, redelivered and lost",
        "only_a_later_delivery_takes_over",
    ),
    (attempts, "closes_at", never, "single, all timeouts", "only_actions_have_an_end"),
    (laws, "outstanding", all_that_was_sent, "single", "nothing_new_is_begun"),
    (laws, "due", never, "single", "an_unfinished_task_waits"),
    (machine, "_check_possible", anything_goes, "single", "raised KeyError"),
    (advance, "_forward", anything_goes, "linear", "the_state_is_sound"),
]


@pytest.mark.parametrize(
    ("module", "name", "fault", "shape", "law"),
    FAULTS,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_in_the_machine_breaks_a_law(
    module: Any,
    name: str,
    fault: Callable[..., Any],
    shape: str,
    law: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(LawBroken, match=law):
        Search(shape_named(shape)).run()


@pytest.mark.parametrize(
    ("module", "name", "fault", "shape"),
    [
        (replay, "_may_matter", a_timeout_is_a_failure, "single, fenced"),
        (
            successes,
            "_compensation_succeeded",
            an_empty_answer_is_always_believed,
            "single, keyed",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_left_downstream_is_found_without_any_other_law(
    module: Any,
    name: str,
    fault: Callable[..., Any],
    shape: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, name, fault)
    monkeypatch.setattr(explore, "complaints", lambda _: [])
    with pytest.raises(LawBroken, match="the effect of 'a' is left downstream"):
        Search(shape_named(shape)).run()


def test_a_broken_law_tells_the_way_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "_may_matter", a_timeout_is_a_failure)
    with pytest.raises(LawBroken) as caught:
        Search(SHAPES[0]).run()
    told = str(caught.value)
    assert told.startswith("single (Faults(attempts=3")
    assert "\n  Submit\n" in told
    assert Phase.ACTION in told
