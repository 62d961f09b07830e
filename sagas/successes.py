"""What an agent's success means, whenever it arrives.

The first success of any attempt wins. One that comes when its step is already under compensation
is recorded and changes nothing, unless the compensation had answered that there was nothing to
undo: then there is an effect left, and the step is compensated again. In which order the two
answers arrive makes no difference. A pivot that turns out to have happened while its task is
being undone cannot be undone itself: it is an incident.
"""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.handoff import hand_off
from headway.sagas.progress import Progress
from headway.sagas.task import UNDER_COMPENSATION, Phase, StepStatus, TaskStatus


def succeeded(progress: Progress, happened: i.Succeeded) -> None:
    state = progress.state(happened.step)
    if happened.phase is Phase.COMPENSATION:
        _compensation_succeeded(progress, happened)
    elif happened.attempt <= state.discounted:
        return
    elif _is_too_late(progress, happened.step):
        _late_success(progress, happened)
    elif state.status is not StepStatus.COMPLETED:
        _resume(progress, happened)
        progress.record(
            e.StepCompleted(happened.at, happened.step, happened.attempt, happened.result)
        )
        hand_off(progress, happened.step, happened.handoff, happened.at)


def _is_too_late(progress: Progress, step: str) -> bool:
    """Whether the task has gone on without this action: undone it, ended, or turned around."""
    task = progress.task
    turned = task.status in (TaskStatus.COMPENSATING, TaskStatus.FAILED_TO_COMPENSATE)
    return (
        task.ended
        or task.steps[step].status in UNDER_COMPENSATION
        or (turned and step == progress.definition.pivot)
    )


def _compensation_succeeded(progress: Progress, happened: i.Succeeded) -> None:
    state = progress.state(happened.step)
    if state.status is StepStatus.COMPENSATED:
        return
    if happened.empty and happened.attempt <= state.doubted:
        if progress.is_current(happened):
            progress.record(e.EmptyDoubted(happened.at, happened.step, happened.attempt))
        return
    _resume(progress, happened)
    progress.record(e.StepCompensated(happened.at, happened.step, happened.attempt, happened.empty))


def _late_success(progress: Progress, happened: i.Succeeded) -> None:
    state = progress.state(happened.step)
    if state.known:
        return
    found_nothing = state.status is StepStatus.COMPENSATED and state.empty
    incident = found_nothing or state.status is StepStatus.FAILED
    if progress.definition.steps[happened.step].read_only:
        incident = False
    again = found_nothing and not progress.task.ended
    if again:
        _resume(progress, happened)
    progress.record(
        e.LateSuccess(
            happened.at, happened.step, happened.attempt, incident, again, happened.result
        )
    )


def _resume(progress: Progress, happened: i.Succeeded) -> None:
    """A parked task goes on when what it was parked for turns out to have succeeded."""
    if progress.task.parked and not progress.task.beside.holds:
        reason = f"step {happened.step!r}: its {happened.phase} succeeded after all"
        progress.record(e.TaskResumed(happened.at, reason))
