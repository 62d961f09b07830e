"""What an onlooker knows of a task: from what the machine was told, recorded and sent.

The laws judge by this and never by the machine's own state, so that a fault in the state cannot
hide itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.sagas import (
    Action,
    Definition,
    Dispatch,
    Phase,
    StartChild,
    Task,
    TaskStatus,
    Transition,
    UndoChild,
)
from headway.sagas import events as e
from headway.sagas import inputs as i


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of one step.

    Attributes:
        actions, compensations: how many attempts of each phase were sent; of a step that is a
            child, how many children were begun.
        open: the phase of which an attempt is sent and has not ended; "" if none is.
        clean: every ended attempt of the action stated that it left nothing behind.
        happened: the action was reported as done.
        told_after: how many compensations had been sent when that was first reported.
        undone: a compensation was reported as done, and there is no reason to doubt it.
        undone_empty: it had found nothing to undo.
        skipped: its condition was false.
        discounted: attempts up to this one gave an output that was not accepted.
        revoked: its child was asked to be undone.
        kept: another task did it, of which this one was forked.
        gone: its child was undone, or never began, so that older news of it counts no more.
    """

    actions: int = 0
    compensations: int = 0
    open: str = ""
    clean: bool = True
    happened: bool = False
    told_after: int = 0
    undone: bool = False
    undone_empty: bool = False
    skipped: bool = False
    discounted: int = 0
    revoked: bool = False
    gone: bool = False
    kept: bool = False

    @property
    def may_have_effect(self) -> bool:
        return self.actions > 0 and (self.happened or not self.clean or self.open == Phase.ACTION)

    @property
    def over(self) -> bool:
        """What comes after it may begin."""
        return self.happened or self.skipped


Witness = dict[str, Seen]

NOTHING = Seen()


def nothing_seen(definition: Definition) -> Witness:
    return dict.fromkeys(definition.steps, NOTHING)


def watch(seen: Witness, before: Task | None, happened: i.Input, moved: Transition) -> Witness:
    """The onlooker's knowledge after a transition."""
    known = dict(seen)
    if before is not None:
        _hear(known, happened)
    for event in moved.events:
        _read(known, event)
    for action in moved.actions:
        _see_sent(known, action)
    return known


def needs_undoing(definition: Definition, seen: Witness, step: str) -> bool:
    """Whether this step has or may have an effect that nothing has undone."""
    described = definition.steps[step]
    is_child = described.kind == "child" and not (described.read_only or described.pivot)
    compensable = described.compensate is not None or is_child
    return compensable and seen[step].may_have_effect and not seen[step].undone


def _hear(known: Witness, happened: i.Input) -> None:
    match happened:
        case i.Succeeded(phase=Phase.ACTION):
            if happened.attempt > known[happened.step].discounted:
                known[happened.step] = _told_done(known[happened.step])
        case i.Succeeded(phase=Phase.COMPENSATION):
            known[happened.step] = _told_undone(known[happened.step], happened)
        case i.ChildEnded():
            if happened.attempt == known[happened.step].actions:
                known[happened.step] = _told_of_child(known[happened.step], happened)
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


def _told_of_child(state: Seen, news: i.ChildEnded) -> Seen:
    """A child is done once, and undone for good; it is undone only by itself or when asked."""
    if news.outcome == "succeeded":
        return state if state.gone else _told_done(state)
    running = state.open == Phase.ACTION
    if news.outcome == "refused":
        if not running:
            return state
        return replace(state, clean=not state.revoked, gone=not state.revoked)
    if state.compensations:
        return replace(state, undone=True, undone_empty=False, gone=True)
    return replace(state, clean=True, gone=True) if running else state


def _read(known: Witness, event: e.Event) -> None:
    match event:
        case e.AttemptDispatched(phase=Phase.COMPENSATION):
            sent = max(known[event.step].compensations, event.attempt)
            known[event.step] = replace(
                known[event.step], compensations=sent, open=Phase.COMPENSATION
            )
        case e.AttemptFailed() | e.AttemptTimedOut():
            _read_ending(known, event)
        case e.AttemptClaimed() | e.AttemptRepublished():
            # somebody may have worked on this attempt before, and may be still at it
            first = isinstance(event, e.AttemptClaimed) and event.delivery == 1
            if event.phase is Phase.ACTION and not first:
                known[event.step] = replace(known[event.step], clean=False)
        case e.StepCompleted() | e.StepApproved() | e.SignalTaken():
            known[event.step] = replace(known[event.step], open="", happened=True)
        case e.StepCompensated() | e.EmptyDoubted():
            known[event.step] = replace(known[event.step], open="")
        case e.StepSettled():
            known[event.step] = _settled(known[event.step], event)
        case e.StepKept():
            known[event.step] = replace(known[event.step], happened=True, kept=True)
        case e.StepSkipped():
            known[event.step] = replace(known[event.step], skipped=True)
        case e.StepsAppended():
            known.update(dict.fromkeys((step.name for step in event.steps), NOTHING))
        case e.OutputRejected():
            for name in event.steps:
                known[name] = _rejected(known[name])
        case _:
            pass


def _read_ending(known: Witness, event: e.AttemptFailed | e.AttemptTimedOut) -> None:
    harmless = isinstance(event, e.AttemptFailed) and event.no_effect
    harmless = harmless or not known[event.step].open  # no attempt, but all retrying
    state = replace(known[event.step], open="")
    if event.phase is Phase.ACTION and not harmless:
        state = replace(state, clean=False)
    known[event.step] = state


def _settled(state: Seen, event: e.StepSettled) -> Seen:
    if state.compensations:
        return replace(state, undone=True, undone_empty=event.empty)
    if event.status == "completed":
        return replace(state, happened=True)
    return replace(state, clean=True)


def _rejected(state: Seen) -> Seen:
    """What it gave did happen, and is to happen again."""
    return replace(state, happened=False, clean=False, discounted=state.actions)


def _see_sent(known: Witness, action: Action) -> None:
    match action:
        case Dispatch(phase=Phase.ACTION) | StartChild():
            state, sent = known[action.step], action.attempt
            anew = sent > state.actions
            known[action.step] = replace(
                state,
                actions=max(state.actions, sent),
                open=Phase.ACTION,
                gone=state.gone and not anew,
                revoked=state.revoked and not anew,
            )
        case Dispatch():
            state = known[action.step]
            sent = max(state.compensations, action.attempt)
            known[action.step] = replace(state, compensations=sent, open=action.phase)
        case UndoChild():
            known[action.step] = replace(known[action.step], revoked=True)
        case _:
            pass


def turned_around(task: Task | None) -> bool:
    return task is not None and task.status in (
        TaskStatus.COMPENSATING,
        TaskStatus.COMPENSATED,
        TaskStatus.FAILED_TO_COMPENSATE,
    )
