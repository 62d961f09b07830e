"""What a task waits for in time. One timer a task: the earliest of everything.

A worker reports `start_to_close` itself; the machine's own clock for it runs a little longer,
and only where it is known that an agent has begun. All results are ms since 1970, UTC.
"""

from __future__ import annotations

from collections.abc import Iterator

from headway.sagas.definition import Definition
from headway.sagas.retry import DURATION_MAX_S
from headway.sagas.step import Step
from headway.sagas.task import Phase, StepState, Task, TaskStatus

DISPATCH_CHECK_MS = 30_000  # a dispatch without an answer is looked after for the first time
CLOSE_GRACE_MS = 2_000  # the worker's own report of a timeout comes before ours
WAIT_CHECK_MS = 86_400_000  # what waits for a person or a signal is looked at once a day
STOP_WAIT_MS = 30_000  # for a running attempt without start_to_close that was asked to stop


def due(definition: Definition, task: Task, checked_at: int = 0) -> int | None:
    """When to look at this task again even if nothing happens; None: not until something does.

    `checked_at` is when its dispatches were last found in order. Their next check is put on a
    grid, so that a task's timer seldom changes.
    """
    if task.ended or task.parked:
        return None
    held, times = bool(task.beside.holds), []
    for name, state in task.steps.items():
        if state.dispatched_at or (state.retry_at and not held):
            times += _times(definition.steps[name], state, checked_at)
    deadline = _deadline(task)
    if deadline is not None:
        times.append(deadline)
    return min(times, default=None)


def _deadline(task: Task) -> int | None:
    """When the task is given up, unless that was done or a person looks at it already."""
    beside = task.beside
    if beside.bounds is None or not beside.bounds.deadline or beside.overdue:
        return None
    if task.status is not TaskStatus.RUNNING or beside.holds:
        return None
    return beside.bounds.deadline


def overdue(task: Task, at: int) -> bool:
    """Whether the task is to be given up for its deadline."""
    deadline = _deadline(task)
    return deadline is not None and deadline <= at


def check_due(state: StepState, at: int) -> bool:
    """Whether the dispatch of an outstanding attempt is old enough to be looked after."""
    return state.outstanding and at >= state.dispatched_at + DISPATCH_CHECK_MS


def clock_due(definition: Definition, task: Task, at: int) -> bool:
    """Whether a retry or a timeout of this task is due; a dispatch's check does not count."""
    if task.ended or task.parked:
        return False
    held = bool(task.beside.holds)
    return overdue(task, at) or any(
        (0 < state.retry_at <= at and not held)
        or (wakes_at(definition.steps[name], state) or at + 1) <= at
        or lapsed(definition.steps[name], state, at, held=held) is not None
        for name, state in task.steps.items()
    )


def lapsed(step: Step, state: StepState, at: int, *, held: bool) -> str | None:
    """The name of a timeout that has passed: of the outstanding attempt, or of all retrying, which
    waits in a task that is `held`."""
    if not state.outstanding:
        closing = closes_at(step, state)
        over = state.retry_at > 0 and closing is not None and closing <= at and not held
        return "schedule_to_close" if over else None
    return next((name for time, name in _deadlines(step, state) if time <= at), None)


def closes_at(step: Step, state: StepState) -> int | None:
    """When `schedule_to_close` ends all retrying of an action; compensations know no such end."""
    limit = step.timeouts.schedule_to_close
    if limit is None or state.phase is Phase.COMPENSATION:
        return None
    return state.scheduled_at + _ms(limit)


def stop_by(step: Step, at: int) -> int:
    """When a running attempt that is asked to stop at `at` is given up as unknown; a child is
    waited for, however long it takes to undo."""
    if step.kind == "child":
        return at + _ms(DURATION_MAX_S)
    limit = step.timeouts.start_to_close
    return at + (STOP_WAIT_MS if limit is None else _ms(limit) + CLOSE_GRACE_MS)


def wakes_at(step: Step, state: StepState) -> int | None:
    """When a sleep that goes on is over (ms); None for anything else."""
    if step.kind != "sleep" or not state.outstanding:
        return None
    return state.dispatched_at + max(1, round(step.seconds * 1000))


def _times(step: Step, state: StepState, checked_at: int) -> list[int]:
    times = [state.retry_at] if state.retry_at else []
    if not state.outstanding:
        return times
    if not state.stop_by or step.kind == "child":  # else its command was withdrawn: no check
        every = DISPATCH_CHECK_MS if step.kind in ("action", "child") else WAIT_CHECK_MS
        check = max(state.dispatched_at, checked_at) + 2 * every - 1
        times.append(check - check % every)
    wakes = wakes_at(step, state)
    if wakes is not None:
        times.append(wakes)
    times += [time for time, _ in _deadlines(step, state)]
    return times


def _deadlines(step: Step, state: StepState) -> Iterator[tuple[int, str]]:
    limits = step.timeouts
    if state.stop_by:
        yield state.stop_by, "stop"
    closing = closes_at(step, state)
    if closing is not None:
        yield closing, "schedule_to_close"
    if state.started_at == 0:
        if limits.schedule_to_start is not None:
            yield state.dispatched_at + _ms(limits.schedule_to_start), "schedule_to_start"
        return
    if limits.start_to_close is not None and not state.waits:
        yield state.started_at + _ms(limits.start_to_close) + CLOSE_GRACE_MS, "start_to_close"
    if limits.heartbeat is not None:
        yield state.heartbeat_at + _ms(limits.heartbeat), "heartbeat"


def _ms(seconds: float) -> int:
    return max(1, round(seconds * 1000))
