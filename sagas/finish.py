"""The end of a task that did all it was to do: its output is accepted, or what is done about it."""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas.checks import UNCHECKED, output_of
from headway.sagas.circumstances import OUTPUT
from headway.sagas.progress import Progress
from headway.sagas.recovery import is_past_return, recover
from headway.sagas.task import StepStatus

REJECTIONS_MAX = 3  # of one task's output, after which a person must look


def finish(progress: Progress, at: int) -> bool:
    """Succeed, if the output is accepted. False: it is not, and the task goes on for that."""
    beside = progress.task.beside
    reason = ""
    if progress.checks is not UNCHECKED and not beside.accepted:
        reason = progress.checks.rejected(output_of(progress.definition, progress.task))
    if not reason:
        progress.record(e.TaskSucceeded(at))
        return True
    reason = f"the output is not accepted: {reason}"
    then = "park" if beside.bounds is None else beside.bounds.on_rejection
    again = _last_actions(progress)
    if then == "retry" and again and beside.rejections < REJECTIONS_MAX:
        progress.record(e.OutputRejected(at, reason, again))
    elif then == "compensate" and not is_past_return(progress):
        recover(progress, at, reason)
    else:
        progress.record(e.TaskHeld(at, OUTPUT, reason))
    return False


def _last_actions(progress: Progress) -> tuple[str, ...]:
    """The agents' steps that gave the output; empty if something else had part in it."""
    last = [
        name
        for name in progress.definition.last
        if progress.state(name).status is StepStatus.COMPLETED
    ]
    by_agents = all(
        progress.definition.steps[name].kind == "action" and not progress.state(name).kept
        for name in last
    )
    return tuple(last) if by_agents else ()
