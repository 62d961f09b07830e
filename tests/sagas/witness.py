"""What an onlooker knows of a task: from what the machine was told, recorded and sent.

The laws judge by this and never by the machine's own state, so that a fault in the state cannot
hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.sagas import Definition, Dispatch, Phase, Task, TaskStatus, Transition
from headway.sagas import events as e
from headway.sagas import inputs as i


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one step.

    Attributes:
        actions, compensations: how many attempts of each phase were sent.
        open: the phase of which an attempt is sent and has not ended; "" if none is.
        clean: every ended attempt of the action stated that it left nothing behind.
        happened: the action was reported as done.
        told_after: how many compensations had been sent when that was first reported.
        undone: a compensation was reported as done, and there is no reason to doubt it.
        undone_empty: it had found nothing to undo.
    """

    actions: int = 0
    compensations: int = 0
    open: str = ""
    clean: bool = True
    happened: bool = False
    told_after: int = 0
    undone: bool = False
    undone_empty: bool = False

    @property
    def may_have_effect(self) -> bool:
        return self.actions > 0 and (self.happened or not self.clean or self.open == Phase.ACTION)


Witness = dict[str, Seen]


def nothing_seen(definition: Definition) -> Witness:
    return dict.fromkeys(definition.steps, Seen())


def watch(seen: Witness, before: Task | None, happened: i.Input, moved: Transition) -> Witness:
    """The onlooker's knowledge after a transition."""
    known = dict(seen)
    if before is not None:
        _hear(known, before, happened)
    for event in moved.events:
        _read(known, event)
    for action in moved.actions:
        if isinstance(action, Dispatch):
            known[action.step] = _sent(known[action.step], action)
    return known


def needs_undoing(definition: Definition, seen: Witness, step: str) -> bool:
    """Whether this step has or may have an effect that nothing has undone."""
    compensable = definition.steps[step].compensate is not None
    return compensable and seen[step].may_have_effect and not seen[step].undone


def _hear(known: Witness, before: Task, happened: i.Input) -> None:
    match happened:
        case i.Succeeded(phase=Phase.ACTION):
            known[happened.step] = _told_done(known[happened.step])
        case i.Succeeded(phase=Phase.COMPENSATION):
            known[happened.step] = _told_undone(known[happened.step], happened)
        case _:
            pass


def _told_done(state: Seen) -> Seen:
    if state.happened:
        return state
    return replace(
        state,
        happened=True,
        told_after=state.compensations,
        undone=state.undone and not state.undone_empty,
        undone_empty=False,
    )


def _told_undone(state: Seen, answer: i.Succeeded) -> Seen:
    if not 1 <= answer.attempt <= state.compensations:
        return state  # impossible: that one was never sent
    if not answer.empty:
        return replace(state, undone=True, undone_empty=False)
    doubtful = state.happened and answer.attempt <= state.told_after
    if doubtful or state.undone:
        return state
    return replace(state, undone=True, undone_empty=True)


def _read(known: Witness, event: e.Event) -> None:
    match event:
        case e.AttemptFailed() | e.AttemptTimedOut():
            state = replace(known[event.step], open="")
            harmless = isinstance(event, e.AttemptFailed) and event.no_effect
            harmless = harmless or not known[event.step].open  # no attempt, but all retrying
            if event.phase is Phase.ACTION and not harmless:
                state = replace(state, clean=False)
            known[event.step] = state
        case e.AttemptClaimed() | e.AttemptRepublished():
            # somebody may have worked on this attempt before, and may be still at it
            first = isinstance(event, e.AttemptClaimed) and event.delivery == 1
            if event.phase is Phase.ACTION and not first:
                known[event.step] = replace(known[event.step], clean=False)
        case e.StepCompleted() | e.StepCompensated() | e.EmptyDoubted():
            known[event.step] = replace(known[event.step], open="")
        case e.StepSettled():
            known[event.step] = _settled(known[event.step], event)
        case _:
            pass


def _settled(state: Seen, event: e.StepSettled) -> Seen:
    if state.compensations:
        return replace(state, undone=True, undone_empty=event.empty)
    if event.status == "completed":
        return replace(state, happened=True)
    return replace(state, clean=True)


def _sent(state: Seen, sent: Dispatch) -> Seen:
    if sent.phase is Phase.ACTION:
        return replace(state, actions=max(state.actions, sent.attempt), open=sent.phase)
    return replace(state, compensations=max(state.compensations, sent.attempt), open=sent.phase)


def turned_around(task: Task | None) -> bool:
    return task is not None and task.status in (
        TaskStatus.COMPENSATING,
        TaskStatus.COMPENSATED,
        TaskStatus.FAILED_TO_COMPENSATE,
    )
