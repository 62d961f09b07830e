"""What a task waits for that no agent does: a person's word, a signal, time, a child task."""

from __future__ import annotations

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.definition import Definition
from headway.sagas.errors import ImpossibleInput
from headway.sagas.progress import Progress
from headway.sagas.step import Step
from headway.sagas.successes import succeeded
from headway.sagas.task import Failure, Phase, StepState, StepStatus, Task

SIGNALS_MAX = 1_000  # that a task takes in all

CHILD_COMPENSATED = "ChildCompensated"
CHILD_REFUSED = "ChildRefused"


def approve(progress: Progress, happened: i.Approval) -> None:
    """Take a person's word on a step that waits for it; the same word again changes nothing."""
    step = _step_of_kind(progress, happened.step, "approval")
    if step is None:
        return
    state = progress.state(step.name)
    if state.outstanding and not progress.task.ended:
        event = e.StepApproved if happened.approved else e.StepRejected
        progress.record(event(happened.at, step.name, happened.by, happened.reason))
    elif (state.status is StepStatus.COMPLETED) != happened.approved or not state.actions:
        progress.refuse(f"step {step.name!r} does not wait for an approval; it is {state.status}")


def take_signal(progress: Progress, happened: i.SignalSent) -> None:
    """Keep a signal until a step takes it."""
    task = progress.task
    names = {step.waits_for for step in progress.definition.steps.values() if step.kind == "wait"}
    if happened.id in task.beside.signal_ids:
        return
    if task.ended:
        progress.refuse(f"the task is {task.status}; no signal reaches it any more")
    elif happened.name not in names:
        known = ", ".join(sorted(names)) or "none"
        progress.refuse(f"no step waits for a signal {happened.name!r}; awaited are: {known}")
    elif len(task.beside.signal_ids) >= SIGNALS_MAX:
        progress.refuse(f"the task has had {SIGNALS_MAX} signals, which is all that one takes")
    else:
        signal = (happened.name, happened.id, happened.payload, happened.by)
        progress.record(e.SignalReceived(happened.at, *signal))
        for name, step in progress.definition.steps.items():
            if step.kind == "wait" and progress.state(name).outstanding:
                serve_signal(progress, step, happened.at)


def serve_signal(progress: Progress, step: Step, at: int) -> None:
    """Give a step that waits the oldest signal of its name, if there is one."""
    for signal in progress.task.beside.signals:
        if signal.name == step.waits_for:
            progress.record(e.SignalTaken(at, step.name, signal.id))
            return


def waits_for_person(definition: Definition, task: Task) -> bool:
    """Whether it is parked, or at an approval."""
    return task.parked or (
        definition.approvable
        and any(
            state.dispatched_at and definition.steps[name].kind == "approval"
            for name, state in task.steps.items()
        )
    )


def child_ended(progress: Progress, happened: i.ChildEnded) -> None:
    """Take how the child task of a step stands; news of another attempt's child changes nothing."""
    step = progress.definition.steps.get(happened.step)
    if step is None or step.kind != "child":
        raise ImpossibleInput(f"step {happened.step!r} has no child task")
    state = progress.state(step.name)
    if not 1 <= happened.attempt <= state.actions:
        raise ImpossibleInput(f"step {step.name!r} never began child {happened.attempt}")
    if happened.attempt != state.actions:
        return
    if happened.outcome == "succeeded":
        if not _is_gone(state):
            answer = (happened.at, step.name, Phase.ACTION, happened.attempt, happened.result)
            succeeded(progress, i.Succeeded(*answer))
    elif state.phase is Phase.ACTION:
        cannot_stop = state.stop_by and happened.outcome == "refused"
        if state.outstanding and not cannot_stop:
            _child_failed(progress, happened, StepStatus.FAILED)
    elif happened.outcome == "compensated":
        answered = (happened.at, step.name, Phase.COMPENSATION, state.attempt)
        succeeded(progress, i.Succeeded(*answered))
    elif state.outstanding:
        _child_failed(progress, happened, StepStatus.FAILED_TO_COMPENSATE)


def _child_failed(progress: Progress, happened: i.ChildEnded, status: StepStatus) -> None:
    state = progress.state(happened.step)
    kind = CHILD_REFUSED if happened.outcome == "refused" else CHILD_COMPENSATED
    progress.record(
        e.AttemptFailed(
            happened.at,
            happened.step,
            state.phase,
            state.attempt,
            Failure(kind, happened.reason),
            no_effect=status is StepStatus.FAILED,
            status=status,
        )
    )


def _is_gone(state: StepState) -> bool:
    """Whether the last child was undone, or never began: older news of it counts no more."""
    if state.status is not StepStatus.FAILED or state.error is None:
        return False
    return state.error.type in (CHILD_COMPENSATED, CHILD_REFUSED)


def _step_of_kind(progress: Progress, name: str, kind: str) -> Step | None:
    """The step, if it is of this kind; refuses otherwise."""
    steps = progress.definition.steps
    step = steps.get(name)
    if step is not None and step.kind == kind:
        return step
    known = ", ".join(each.name for each in steps.values() if each.kind == kind) or "none"
    progress.refuse(f"step {name!r} is not of kind {kind}; those are: {known}")
    return None
