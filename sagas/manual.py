"""What a person may do to a parked task: ask for more attempts, or state what really happened."""

from __future__ import annotations

from dataclasses import replace

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.circumstances import Hold
from headway.sagas.progress import Progress
from headway.sagas.recovery import stuck
from headway.sagas.task import StepStatus, Task, TaskStatus


def retry_stuck(progress: Progress, happened: i.RetryStuck) -> None:
    """Give the stuck step, or all of them, another series of attempts; end what the task is held
    for, or what it is held for because of this step."""
    task, held, step = progress.task, progress.task.beside.hold, happened.step
    resumed = e.TaskResumed(happened.at, happened.reason, happened.by)
    if not task.parked or held is None:
        names = _stuck_steps(progress, step)
        news = [name for name in names if _is_news(task, name, happened.at)]
        if news:
            progress.refuse(f"step {news[0]!r} failed only when this was asked: look at it first")
        elif names:
            progress.record(replace(resumed, steps=names))
    elif held.is_of_output and held.since == happened.at:
        progress.refuse("the output was rejected only when this was asked: look at it first")
    elif step is None:
        progress.record(replace(resumed, steps=_kept_waiting(task)))
    elif any(hold.step == step for hold in task.beside.holds):
        again = (step,) if step in _kept_waiting(task) else ()
        progress.record(replace(resumed, steps=again, step=step))
    elif held.is_of_output:
        _do_again(progress, happened, held, resumed)
    else:
        known = ", ".join(repr(hold.step) for hold in task.beside.holds if hold.step)
        instead = f", or retry {known}" if known else ""
        progress.refuse(f"step {step!r} is not what the task is held for; resume it{instead}")


def _is_news(task: Task, step: str, at: int) -> bool:
    """Whether a step's condition failed at this very time, so that a request of then is not about
    it: it was handled before, and is handled again."""
    return task.steps[step].attempt == 0 and task.steps[step].scheduled_at == at


def _kept_waiting(task: Task) -> tuple[str, ...]:
    """The steps that get another series of attempts when a hold ends: stuck, or due again."""
    due_again = (name for name, state in task.steps.items() if state.retry_at)
    return (*stuck(task), *due_again)


def _do_again(
    progress: Progress, happened: i.RetryStuck, held: Hold, resumed: e.TaskResumed
) -> None:
    """Have one of the last steps done again, whose output was not accepted."""
    step = happened.step
    if step is None or not _gave_output(progress, step):
        last = ", ".join(progress.definition.last)
        progress.refuse(f"step {step!r} did not give the output; those that may be redone: {last}")
        return
    progress.record(resumed)
    progress.record(e.OutputRejected(happened.at, held.reason, (step,), happened.by))


def _gave_output(progress: Progress, step: str) -> bool:
    """Whether an agent did this step for this very task, and it is one of the last."""
    if step not in progress.definition.last or progress.definition.steps[step].kind != "action":
        return False
    state = progress.state(step)
    return state.status is StepStatus.COMPLETED and not state.kept


def settle(progress: Progress, happened: i.Settle) -> None:
    """Take a person's word for how a stuck step ended."""
    if not _stuck_steps(progress, happened.step):
        return
    empty = False
    if progress.task.status is TaskStatus.FAILED_TO_COMPENSATE:
        status, empty = StepStatus.COMPENSATED, happened.outcome == "did_not_happen"
    elif happened.outcome == "happened":
        status = StepStatus.COMPLETED
    elif not progress.definition.is_after_pivot(happened.step):
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
    held_for = any(hold.step == step for hold in task.beside.holds)
    if held_for and task.steps[step].retry_at:
        return (step,)
    if step not in names:
        known = ", ".join(names) or "none"
        progress.refuse(f"step {step!r} is not stuck; stuck are: {known}")
        return ()
    return (step,)
