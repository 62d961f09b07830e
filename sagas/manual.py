"""What a person may do to a parked task: ask for more attempts, or state what really happened."""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.advance import stuck
from headway.sagas.progress import Progress
from headway.sagas.task import StepStatus, TaskStatus


def retry_stuck(progress: Progress, happened: i.RetryStuck) -> None:
    """Give the stuck step, or all of them, another series of attempts."""
    names = _stuck_steps(progress, happened.step)
    if names:
        progress.record(e.TaskResumed(happened.at, happened.reason, happened.by, names))


def settle(progress: Progress, happened: i.Settle) -> None:
    """Take a person's word for how a stuck step ended."""
    if not _stuck_steps(progress, happened.step):
        return
    empty = False
    if progress.task.status is TaskStatus.FAILED_TO_COMPENSATE:
        status, empty = StepStatus.COMPENSATED, happened.outcome == "did_not_happen"
    elif happened.outcome == "happened":
        status = StepStatus.COMPLETED
    elif happened.step == progress.definition.pivot:
        status = StepStatus.FAILED
    else:
        progress.refuse(
            f"step {happened.step!r} is past the point of no return and must happen: "
            "retry it, or settle it as happened once it has"
        )
        return
    progress.record(
        e.StepSettled(
            happened.at,
            happened.step,
            status,
            happened.by,
            happened.reason,
            happened.result,
            empty,
        )
    )


def _stuck_steps(progress: Progress, step: str | None) -> tuple[str, ...]:
    """The stuck steps that are meant; refuses when there is none."""
    task = progress.task
    if not task.parked:
        progress.refuse(f"the task is {task.status}; only a parked task waits for a person")
        return ()
    names = stuck(task)
    if step is None:
        return names
    if step not in names:
        progress.refuse(f"step {step!r} is not stuck; stuck are: {', '.join(names)}")
        return ()
    return (step,)
