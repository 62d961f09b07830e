"""The laws of `laws_beside` bite too: each catches a fault alone, whatever the others would say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import Any

import laws
import pytest
from corpus import Shape
from explore import LawBroken, Search
from headway.sagas import Action, Definition, Dispatch, Phase, Step, StepState, StepStatus, Task
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.progress import Progress
from kinds import KINDS

advance = import_module("headway.sagas.advance")
attempts = import_module("headway.sagas.attempts")
deadlines = import_module("headway.sagas.deadlines")
finish = import_module("headway.sagas.finish")
handoff = import_module("headway.sagas.handoff")
machine = import_module("headway.sagas.transition")
manual = import_module("headway.sagas.manual")
recovery = import_module("headway.sagas.recovery")
replay = import_module("headway.sagas.replay")
successes = import_module("headway.sagas.successes")
waiting = import_module("headway.sagas.waiting")

_forward, _begin, _is_wanted = advance._forward, advance._begin, advance._is_wanted
_rejected, _resumed = replay._rejected, replay._resumed
_child_ended, _approve, _lapsed = waiting.child_ended, waiting.approve, deadlines.lapsed
_hand_off, _stopped, _retry_stuck = handoff.hand_off, machine._stopped, manual.retry_stuck


def only_completed(step: Step, known: dict[str, StepState]) -> bool:
    """A skipped step keeps what comes after it from beginning."""
    return all(known[before].status is StepStatus.COMPLETED for before in step.after)


def skipped_and_done(progress: Progress, step: Step, at: int) -> bool:
    _is_wanted(progress, step, at)
    return progress.state(step.name).status is not StepStatus.FAILED


def forward_although_held(progress: Progress, at: int) -> bool:
    for name, step in progress.definition.steps.items():
        waits = progress.state(name).status is StepStatus.WAITING
        if waits and advance._is_ready(step, progress.task.steps) and not step.when:
            _begin(progress, step, at)
    return _forward(progress, at)


def held_for_ever(progress: Progress, at: int) -> bool:
    return progress.task.beside.hold is not None or _forward(progress, at)


def at_once(progress: Progress, at: int) -> bool:
    """The fault of sending what comes before a condition that then fails."""
    for name, step in progress.definition.steps.items():
        waits = progress.state(name).status is StepStatus.WAITING
        if not waits or not advance._is_ready(step, progress.task.steps):
            continue
        if step.when and not _is_wanted(progress, step, at):
            if progress.state(name).status is StepStatus.FAILED:
                return False
            continue
        _begin(progress, step, at)
    return _forward(progress, at)


def the_newest_signal(progress: Progress, step: Step, at: int) -> None:
    for signal in reversed(progress.task.beside.signals):
        if signal.name == step.waits_for:
            progress.record(e.SignalTaken(at, step.name, signal.id))
            return


def every_signal_counts(progress: Progress, happened: i.SignalSent) -> None:
    signal = (happened.name, happened.id, happened.payload, happened.by)
    if happened.name == "go":
        progress.record(e.SignalReceived(happened.at, *signal))


def not_served(progress: Progress, step: Step, at: int) -> None:
    """The fault of a wait that is tried again and does not look at what has come."""
    progress.record(
        e.AttemptDispatched(at, step.name, Phase.ACTION, progress.state(step.name).attempt + 1)
    )


def always_another_child(progress: Progress, step: Step, at: int) -> None:
    attempt = progress.state(step.name).attempt + 1
    progress.record(e.AttemptDispatched(at, step.name, Phase.ACTION, attempt))


def a_refusal_is_an_undoing(progress: Progress, happened: i.ChildEnded) -> None:
    refused = happened.outcome == "refused"
    _child_ended(progress, replace(happened, outcome="compensated") if refused else happened)


def only_by_its_own_compensation(definition: Definition, task: Task, step: str) -> bool:
    may = task.steps[step].status in (StepStatus.COMPLETED, StepStatus.UNKNOWN)
    return may and definition.steps[step].compensate is not None


def children_run_on(
    progress: Progress, before: Task | None, event: e.RecoveryStarted
) -> Iterator[Action]:
    for action in _stopped(progress, before, event):
        if progress.definition.steps[action.step].kind != "child":
            yield action


def by_its_phase(step: str, state: StepState) -> Dispatch:
    """The fault of asking a child that is to stop whether it has begun."""
    return Dispatch(step, state.phase, state.actions, state.epoch)


def any_word_approves(progress: Progress, happened: i.Approval) -> None:
    _approve(progress, replace(happened, approved=True))


def always_good(progress: Progress, at: int) -> bool:
    progress.record(e.TaskSucceeded(at))
    return True


def nothing_is_discounted(task: Task, event: e.OutputRejected) -> Task:
    after = _rejected(task, event)
    steps = {name: state._replace(discounted=0) for name, state in after.steps.items()}
    return replace(after, steps=steps)


def accepted_by_any_resumption(task: Task, event: e.TaskResumed) -> Task:
    after = _resumed(task, event)
    return replace(after, beside=after.beside._replace(accepted=True))


def lost_unless_running(progress: Progress, by: str, wanted: tuple[Step, ...], at: int) -> None:
    if not progress.task.parked:
        _hand_off(progress, by, wanted, at)


def lapsed_although_held(step: Step, state: StepState, at: int, *, held: bool) -> str | None:
    return _lapsed(step, state, at, held=False)


def anyone_is_revoked(progress: Progress, happened: i.Revoke) -> None:
    if progress.task.status.value != "compensating":
        recovery.recover(progress, happened.at, happened.reason)


def shape_named(name: str) -> Shape:
    return next(shape for shape in KINDS if shape.name == name)


def anything_goes(*_: object) -> bool:
    return True


def nothing_is(*_: object) -> bool:
    return False


def never(*_: object) -> None:
    return None


FAULTS: list[tuple[Any, str, Callable[..., Any], str, str]] = [
    (machine, "_revoke", anyone_is_revoked, "holds, two steps", "ended_tasks_stay_ended"),
    (machine, "approve", any_word_approves, "an approval", "what_is_recorded_was_told"),
    (advance, "_is_ready", only_completed, "forks", "what_is_ready_is_begun"),
    (advance, "_is_wanted", skipped_and_done, "forks", "what_is_ready_is_begun"),
    (advance, "_forward", at_once, "forks", "nothing_new_is_begun_once_turned_around"),
    (advance, "_forward", at_once, "a fork at a signal", "nothing_new_is_begun_once_turned_around"),
    (advance, "_forward", forward_although_held, "holds", "nothing_is_begun_while_held"),
    (
        advance,
        "_forward",
        held_for_ever,
        "holds",
        "a_held_task_is_parked_once_no_agent_is_at_it",
    ),
    (
        attempts,
        "_is_held_for",
        nothing_is,
        "holds, two steps",
        "what_a_guard_stopped_turns_nothing_around",
    ),
    (attempts, "lapsed", lapsed_although_held, "holds, two timed", "a_timer_is_heard"),
    (
        advance,
        "serve_signal",
        the_newest_signal,
        "waits",
        "a_signal_counts_once_and_is_taken_once",
    ),
    (
        machine,
        "take_signal",
        every_signal_counts,
        "waits",
        "a_signal_counts_once_and_is_taken_once",
    ),
    (advance, "serve_signal", never, "waits", "a_signal_counts_once_and_is_taken_once"),
    (advance, "_begin", not_served, "past return", "a_signal_counts_once_and_is_taken_once"),
    (advance, "_begin", always_another_child, "a child past the pivot", "no_second_child_is_begun"),
    (
        machine,
        "child_ended",
        a_refusal_is_an_undoing,
        "a child before the pivot",
        "a_child_that_cannot_be_undone_is_stuck",
    ),
    (
        advance,
        "may_need_compensation",
        only_by_its_own_compensation,
        "a child before the pivot",
        "a_compensated_task_has_undone_everything",
    ),
    (waiting, "_is_gone", nothing_is, "a child", "an_incident_has_a_cause"),
    (machine, "_stopped", children_run_on, "a child", "what_is_no_longer_wanted_is_withdrawn"),
    (
        advance,
        "finish",
        always_good,
        "an output of 1, park",
        "an_output_is_accepted_before_success",
    ),
    (
        replay,
        "_rejected",
        nothing_is_discounted,
        "an output of 1, retry",
        "a_rejected_output_is_not_taken_again",
    ),
    (
        replay,
        "_resumed",
        accepted_by_any_resumption,
        "an output of 1, park",
        "an_output_is_accepted_before_success",
    ),
    (successes, "hand_off", never, "hand-offs", "the_plan_only_grows"),
    (successes, "hand_off", lost_unless_running, "hand-offs, late", "the_plan_only_grows"),
    (attempts, "overdue", nothing_is, "a deadline", "a_deadline_counts_once"),
    (attempts, "is_past_return", nothing_is, "a deadline", "a_deadline_counts_once"),
    (deadlines, "overdue", anything_goes, "a deadline", "a_timer_is_heard"),
]


@pytest.mark.parametrize(
    ("module", "name", "fault", "shape", "law"),
    FAULTS,
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_fault_in_the_machine_breaks_the_one_law_that_is_asked(
    module: Any,
    name: str,
    fault: Callable[..., Any],
    shape: str,
    law: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = getattr(laws, law)
    monkeypatch.setattr(laws, "LAWS", (asked,))
    monkeypatch.setattr(laws, "LAWS_OF_SILENCE", {asked} & set(laws.LAWS_OF_SILENCE))
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(LawBroken, match=f"{law}: "):
        Search(shape_named(shape)).run()


@pytest.mark.parametrize(
    ("module", "name", "fault", "shape", "wrong"),
    [
        (
            advance,
            "_begin",
            always_another_child,
            "a child past the pivot, truly",
            "a second child of 'c' was begun though the first may have an effect",
        ),
        (
            machine,
            "child_ended",
            a_refusal_is_an_undoing,
            "a child beside a step, truly",
            "it is compensated, but the child of 'c' is past",
        ),
        (
            machine,
            "asked_of_child",
            by_its_phase,
            "a child beside a step, truly",
            "a child that was lost is not asked for again",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_really_becomes_of_children_is_found_without_any_law(
    module: Any,
    name: str,
    fault: Callable[..., Any],
    shape: str,
    wrong: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(laws, "LAWS", ())
    monkeypatch.setattr(laws, "LAWS_OF_SILENCE", ())
    monkeypatch.setattr(module, name, fault)
    with pytest.raises(LawBroken, match=wrong):
        Search(shape_named(shape)).run()
