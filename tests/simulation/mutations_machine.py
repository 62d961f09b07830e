"""Mistakes in the machine: what an input does to a task."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from headway.coordinator import decisions
from headway.sagas import (
    advance,
    attempts,
    codec,
    deadlines,
    finish,
    recovery,
    successes,
)
from headway.sagas.retry import Retry
from headway.sagas.task import Phase, StepStatus, TaskStatus
from simulation.mutants import Change, Mutation, instead, wrapped

transition = sys.modules["headway.sagas.transition"]  # the package has a function of that name
LONG = ("linear", "fan", "diamond", "looks")
CANCELS = {"people": 0.4}


def _timeout_is_failure(original: Any, progress: Any, name: str, ending: Any) -> Any:
    status, retry_at = original(progress, name, ending)
    timeout = ending.error_type.startswith("Timeout.")
    return StepStatus.FAILED if timeout and status is StepStatus.UNKNOWN else status, retry_at


def _failure_leaves_nothing(original: Any, progress: Any, name: str, ending: Any) -> Any:
    return original(progress, name, replace(ending, no_effect=True))


def _not_the_unknown(original: Any, definition: Any, task: Any, step: str) -> bool:
    return original(definition, task, step) and task.steps[step].status is not StepStatus.UNKNOWN


def _not_the_first(original: Any, definition: Any, task: Any, step: str) -> bool:
    return original(definition, task, step) and step != next(iter(definition.steps))


def _all_at_once(_original: Any, definition: Any, task: Any, step: str) -> bool:
    return bool(advance.may_need_compensation(definition, task, step))


def _forward_order(_original: Any, definition: Any, task: Any, step: str) -> bool:
    return advance.may_need_compensation(definition, task, step) and not any(
        advance.may_need_compensation(definition, task, earlier)
        for earlier in definition.ancestors[step]
    )


def _do_not_wait_for_running(original: Any, progress: Any, at: int) -> None:
    with_ends = [
        name for name, state in progress.task.steps.items() if state.status is StepStatus.SCHEDULED
    ]
    for name in with_ends:
        attempts.time_out(progress, name, "stop", at, 0.0)
    original(progress, at)


def _drop_success(original: Any, progress: Any, happened: Any) -> None:
    state = progress.state(happened.step)
    if happened.attempt == state.attempt or happened.phase is Phase.COMPENSATION:
        original(progress, happened)


def _drop_late_success(_original: Any, progress: Any, happened: Any) -> None:
    return


def _success_after_the_end(_original: Any, progress: Any, step: str) -> bool:
    return False


def _any_phase(original: Any, progress: Any, happened: Any) -> None:
    state = progress.state(happened.step)
    original(progress, replace(happened, phase=state.phase))


def _any_epoch(original: Any, progress: Any, happened: Any) -> None:
    state = progress.state(happened.step)
    current = (state.phase, state.attempt) == (happened.phase, happened.attempt)
    original(progress, replace(happened, epoch=state.epoch) if current else happened)


def _begin_after_any(original: Any, step: Any, known: Any) -> bool:
    return not step.after or any(
        known[before].status in (StepStatus.COMPLETED, StepStatus.SKIPPED) for before in step.after
    )


def _twice(original: Any, progress: Any, step: Any, at: int) -> None:
    original(progress, step, at)
    if step.kind == "action" and progress.state(step.name).attempt == 1:
        original(progress, step, at)


def _forget_retry(original: Any, definition: Any, task: Any, checked_at: int = 0) -> Any:
    found = original(definition, task, checked_at)
    waits = any(state.retry_at for state in task.steps.values())
    return found + 3_600_000 if found is not None and waits else found


def _end_early(original: Any, progress: Any, at: int) -> bool:
    running = progress.task.status is TaskStatus.RUNNING
    if running and any(s.status is StepStatus.COMPLETED for s in progress.task.steps.values()):
        return bool(finish.finish(progress, at))
    return bool(original(progress, at))


def _forget_claims(original: Any, task: Any) -> bytes:
    steps = {name: state._replace(claims=0) for name, state in task.steps.items()}
    found: bytes = original(replace(task, steps=steps))
    return found


def _events(**instead_of: Any) -> Change:
    """The machine of attempts records other events than it should."""
    return attempts, "e", lambda e: SimpleNamespace(**{**vars(e), **instead_of})


def _epoch_again(original: Any) -> Any:
    return lambda at, step, phase, attempt, epoch, *rest: original(
        at, step, phase, attempt, max(0, epoch - 1), *rest
    )


_e = attempts.e

MACHINE = (
    Mutation(
        "a timeout counts as a failure without effect",
        ((attempts, "_after", wrapped(_timeout_is_failure)),),
        {"handler_slow": 0.6, "handler_hangs": 0.6},
        quiet=True,
        sagas=("linear", "fan"),
    ),
    Mutation(
        "a failure counts as one without effect",
        ((attempts, "_after", wrapped(_failure_leaves_nothing)),),
        {"handler_answer_lost": 0.6},
        quiet=True,
        sagas=("linear", "roots"),
        quick=True,
    ),
    Mutation(
        "a step of which nobody knows is not undone",
        ((advance, "may_need_compensation", wrapped(_not_the_unknown)),),
        {"handler_answer_lost": 0.6},
        quiet=True,
        sagas=("linear", "roots"),
    ),
    Mutation(
        "the first step is not undone",
        ((advance, "may_need_compensation", wrapped(_not_the_first)),),
        {"handler_rejects": 0.3},
        quiet=True,
        sagas=LONG,
        quick=True,
    ),
    Mutation(
        "all is undone at once",
        ((advance, "_is_next_to_compensate", wrapped(_all_at_once)),),
        {"handler_rejects": 0.3},
        quiet=True,
        sagas=LONG,
    ),
    Mutation(
        "what came first is undone first",
        ((advance, "_is_next_to_compensate", wrapped(_forward_order)),),
        {"handler_rejects": 0.3},
        quiet=True,
        sagas=LONG,
        quick=True,
    ),
    Mutation(
        "running branches are given up at once when a task turns around",
        ((advance, "_backward", wrapped(_do_not_wait_for_running)),),
        CANCELS | {"handler_slow": 0.3},
        quiet=True,
        sagas=("fan", "diamond"),
    ),
    Mutation(
        "a success of an earlier attempt is dropped",
        ((transition, "succeeded", wrapped(_drop_success)),),
        {"freeze_at_effect": 0.4},
        quiet=True,
    ),
    Mutation(
        "a success that comes too late is dropped",
        ((successes, "_late_success", wrapped(_drop_late_success)),),
        {"freeze": 0.2} | CANCELS,
    ),
    Mutation(
        "a success counts even when its task has gone on without it",
        ((successes, "_is_too_late", wrapped(_success_after_the_end)),),
        {"freeze": 0.2} | CANCELS,
    ),
    Mutation(
        "a success of one phase is taken for the other's",
        ((transition, "succeeded", wrapped(_any_phase)),),
        {"freeze": 0.2, "handler_rejects": 0.2} | CANCELS,
    ),
    Mutation(
        "a failure counts under any epoch",
        ((transition, "attempt_ended", wrapped(_any_epoch)),),
        {"freeze_at_effect": 0.2, "handler_fails": 0.4},
        quiet=True,
        sagas=("linear", "roots"),
    ),
    Mutation(
        "a step begins when one of those before it is done",
        ((advance, "_is_ready", wrapped(_begin_after_any)),),
        {"handler_slow": 0.3},
        quiet=True,
        sagas=("diamond", "roots"),
    ),
    Mutation(
        "an attempt is dispatched twice",
        ((advance, "_begin", wrapped(_twice)),),
        quiet=True,
        quick=True,
    ),
    Mutation("a retry's timer is forgotten", ((decisions, "due", wrapped(_forget_retry)),)),
    Mutation(
        "a task ends when one of its steps is done",
        ((advance, "_forward", wrapped(_end_early)),),
        quiet=True,
        quick=True,
    ),
    Mutation(
        "a task turns around past its point of no return",
        (
            (transition, "is_past_return", instead(lambda _progress: False)),
            (attempts, "is_past_return", instead(lambda _progress: False)),
        ),
        CANCELS,
        quiet=True,
        sagas=("pivot", "tail"),
    ),
    Mutation(
        "a publication uses the epoch of the one before",
        (_events(AttemptRepublished=_epoch_again(_e.AttemptRepublished)),),
        CANCELS,
    ),
    Mutation(
        "a take-over uses the epoch of the one before",
        (_events(AttemptClaimed=_epoch_again(_e.AttemptClaimed)),),
    ),
    Mutation(
        "the state is stored without its claims",
        ((decisions, "encode_task", wrapped(_forget_claims)),),
    ),
)

__all__ = ["MACHINE", "Retry", "codec", "deadlines", "recovery"]
