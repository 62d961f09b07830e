"""What an agent's success means, whenever it arrives.

The first success of any attempt wins. One that comes when its step is already under compensation
is recorded and changes nothing, unless the compensation had answered that there was nothing to
undo: then there is an effect left, and the step is compensated again.
"""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.progress import Progress
from headway.sagas.task import UNDER_COMPENSATION, Phase, StepStatus


def succeeded(progress: Progress, happened: i.Succeeded) -> None:
    if happened.phase is Phase.COMPENSATION:
        _compensation_succeeded(progress, happened)
    elif progress.state(happened.step).status in UNDER_COMPENSATION or progress.task.ended:
        _late_success(progress, happened)
    elif progress.state(happened.step).status is not StepStatus.COMPLETED:
        _resume(progress, happened)
        progress.record(
            e.StepCompleted(happened.at, happened.step, happened.attempt, happened.result)
        )


def _compensation_succeeded(progress: Progress, happened: i.Succeeded) -> None:
    state = progress.state(happened.step)
    if state.status is StepStatus.COMPENSATED or happened.attempt <= state.spent:
        return  # repeated, or the answer to an earlier series that was not enough
    _resume(progress, happened)
    progress.record(e.StepCompensated(happened.at, happened.step, happened.attempt, happened.empty))


def _late_success(progress: Progress, happened: i.Succeeded) -> None:
    state = progress.state(happened.step)
    if state.known:
        return
    incident = state.status is StepStatus.FAILED or (
        state.status is StepStatus.COMPENSATED and state.empty
    )
    again = incident and not progress.task.ended
    if again:
        _resume(progress, happened)
    progress.record(
        e.LateSuccess(
            happened.at, happened.step, happened.attempt, incident, again, happened.result
        )
    )


def _resume(progress: Progress, happened: i.Succeeded) -> None:
    """A parked task goes on when what it was parked for turns out to have succeeded."""
    if progress.task.parked:
        reason = f"step {happened.step!r}: its {happened.phase} succeeded after all"
        progress.record(e.TaskResumed(happened.at, reason))
