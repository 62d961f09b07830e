"""The laws of what tasks have beside their steps' attempts: conditions, holds, signals, children,
an accepted output, a plan that grows, a deadline. Like `laws`, which lists them all.
"""

from __future__ import annotations

from collections.abc import Iterator

from headway.sagas import (
    Action,
    Phase,
    StartChild,
    StepStatus,
    TaskStatus,
    UndoChild,
    circumstances,
    due,
    fold,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.deadlines import clock_due
from headway.sagas.task import unborn
from taken import Taken, begins, ended
from witness import turned_around


def no_second_child_is_begun(taken: Taken) -> Iterator[str]:
    for action in taken.moved.actions:
        if not isinstance(action, StartChild | UndoChild):
            continue
        known = taken.seen_before[action.step]
        if taken.definition.steps[action.step].kind != "child":
            yield f"{action} for a step that is no child"
        if action.attempt == known.actions:
            continue  # the same one, again
        if isinstance(action, UndoChild) or action.attempt != known.actions + 1:
            yield f"{action}, but the last child was {known.actions}"
        elif taken.seen[action.step].happened or not known.clean or _still_open(taken, action):
            yield f"{action} though child {known.actions} may have an effect"


def _still_open(taken: Taken, action: Action) -> bool:
    known = taken.seen_before[action.step]
    return known.open == Phase.ACTION and not ended(taken, action.step)


def what_is_ready_is_begun(taken: Taken) -> Iterator[str]:
    task = taken.after
    if task.status is TaskStatus.RUNNING and task.beside.hold is None:
        for name, step in taken.definition.steps.items():
            waits = task.steps[name].status is StepStatus.WAITING
            if waits and all(taken.seen[before].over for before in step.after):
                yield f"{name!r} is not begun, though all that it comes after is over"
    for action in taken.moved.actions:
        if begins(action) and taken.seen[action.step].skipped:
            yield f"{action} for a step that was skipped"


def nothing_is_begun_while_held(taken: Taken) -> Iterator[str]:
    task = taken.before or unborn(taken.definition)
    for event in taken.moved.events:
        again = isinstance(event, e.AttemptDispatched) and event.phase is Phase.ACTION
        if task.beside.hold is not None and (again or isinstance(event, e.StepSkipped)):
            yield f"{event} though a person is to look first"
        task = fold(task, event)


def a_held_task_is_parked_once_no_agent_is_at_it(taken: Taken) -> Iterator[str]:
    task, definition = taken.after, taken.definition
    if task.beside.hold is None:
        failed = (StepStatus.FAILED, StepStatus.UNKNOWN)
        stuck = any(state.status in failed for state in task.steps.values())
        if task.status is TaskStatus.PARKED and not stuck:
            yield "it is parked for nothing"
        return
    at_it = any(
        state.outstanding and definition.steps[name].kind in ("action", "child")
        for name, state in task.steps.items()
    )
    if at_it != (task.status is TaskStatus.RUNNING):
        yield f"it is {task.status}, held, and at work: {at_it}"


def what_a_guard_stopped_turns_nothing_around(taken: Taken) -> Iterator[str]:
    """Whatever the agent says that was stopped: a person looks first."""
    happened = taken.happened
    if taken.before is None or not isinstance(
        happened, i.Failed | i.TimedOut | i.ClaimAsked | i.DispatchLost
    ):
        return
    held = any(hold.step == happened.step for hold in taken.before.beside.holds)
    if held and turned_around(taken.after):
        yield f"{happened} turned it around"


def a_signal_counts_once_and_is_taken_once(taken: Taken) -> Iterator[str]:
    before = (taken.before or unborn(taken.definition)).beside
    waiting, ids = list(before.signals), list(before.signal_ids)
    for event in taken.moved.events:
        if isinstance(event, e.SignalReceived):
            if event.id in ids:
                yield f"{event} counts twice"
            ids.append(event.id)
            waiting.append(circumstances.Signal(event.name, event.id, event.payload))
        elif isinstance(event, e.SignalTaken):
            name = taken.definition.steps[event.step].waits_for
            oldest = next((each for each in waiting if each.name == name), None)
            if oldest is None or oldest.id != event.id:
                yield f"{event}, but the oldest is {oldest}"
            elif taken.after.steps[event.step].result != oldest.payload:
                yield f"{event} did not bring what {oldest} brought"
            waiting = [each for each in waiting if each.id != event.id]
    after = taken.after.beside
    if (after.signals, after.signal_ids) != (tuple(waiting), tuple(ids)):
        yield f"signals left are {after.signals} of {after.signal_ids}"
    for name, state in taken.after.steps.items():
        step = taken.definition.steps[name]
        waits = state.outstanding and step.kind == "wait"
        if waits and any(signal.name == step.waits_for for signal in after.signals):
            yield f"{name!r} waits for a signal that is there"


def a_child_that_cannot_be_undone_is_stuck(taken: Taken) -> Iterator[str]:
    happened = taken.happened
    if taken.before is None or not isinstance(happened, i.ChildEnded):
        return
    state, known = taken.before.steps[happened.step], taken.seen_before[happened.step]
    refused = happened.outcome == "refused" and happened.attempt == known.actions
    status = taken.after.steps[happened.step].status
    if refused and state.outstanding and known.compensations:
        if status is StepStatus.FAILED_TO_COMPENSATE:
            return
        yield f"{happened} left it {status}"


def an_output_is_accepted_before_success(taken: Taken) -> Iterator[str]:
    before, after = taken.before or unborn(taken.definition), taken.after
    if after.beside.accepted and not before.beside.accepted:
        held = before.beside.hold
        resumed = isinstance(taken.happened, i.RetryStuck) and taken.happened.step is None
        if held is None or held.kind != circumstances.OUTPUT or not resumed:
            yield f"{taken.happened} made it accepted"
    if not any(isinstance(event, e.TaskSucceeded) for event in taken.moved.events):
        return
    last = [name for name, after in taken.definition.descendants.items() if not after]
    given = {name: after.steps[name].result for name in last if after.steps[name].known}
    output = given.get(last[0]) if len(last) == 1 else given
    if taken.checks.rejected(output) and not after.beside.accepted:
        yield f"it succeeded with {output}"


def a_rejected_output_is_not_taken_again(taken: Taken) -> Iterator[str]:
    for event in taken.moved.events:
        if not isinstance(event, e.StepCompleted | e.LateSuccess):
            continue
        if event.attempt <= taken.seen_before[event.step].discounted:
            yield f"{event} is of an attempt whose output was not accepted"


def the_plan_only_grows(taken: Taken) -> Iterator[str]:
    if taken.before is None:
        return
    before, after = taken.before.beside.plan, taken.after.beside.plan
    appended = [event for event in taken.moved.events if isinstance(event, e.StepsAppended)]
    grown = [(event.by, step) for event in appended for step in event.steps]
    if [*((each.by, each.step) for each in before), *grown] != [
        (each.by, each.step) for each in after
    ]:
        yield f"the plan was {before} and is {after}"
    happened = taken.happened
    if not isinstance(happened, i.Succeeded) or not happened.handoff or not _completes(taken):
        return
    held = any(isinstance(event, e.TaskHeld) for event in taken.moved.events)
    if not (grown or held or turned_around(taken.after)):
        yield f"what {happened.step!r} handed off to is lost"


def _completes(taken: Taken) -> bool:
    return any(isinstance(event, e.StepCompleted) for event in taken.moved.events)


def a_deadline_counts_once(taken: Taken) -> Iterator[str]:
    before, happened = taken.before, taken.happened
    if before is None or before.beside.bounds is None or not before.beside.bounds.deadline:
        return
    held = [event for event in taken.moved.events if isinstance(event, e.TaskHeld)]
    for event in held:
        if event.kind == circumstances.DEADLINE and before.beside.overdue:
            yield f"{event} is the second"
    passed = isinstance(happened, i.Tick) and before.beside.bounds.deadline <= happened.at
    free = before.status is TaskStatus.RUNNING and before.beside.hold is None
    if passed and free and not before.beside.overdue:
        if not turned_around(taken.after) and taken.after.beside.hold is None:
            yield "its deadline passed and nothing came of it"
        if is_past_return(taken) == turned_around(taken.after):
            yield f"its deadline passed, and it is {taken.after.status}"


def is_past_return(taken: Taken) -> bool:
    pivot = taken.definition.pivot
    return pivot is not None and (taken.seen[pivot].actions > 0 or taken.seen[pivot].kept)


def a_timer_is_heard(taken: Taken) -> Iterator[str]:
    tick, before = taken.happened, taken.before
    if before is None or not isinstance(tick, i.Tick):
        return
    definition = taken.definition
    if clock_due(definition, before, tick.at) != bool(taken.moved.events):
        yield f"at {tick.at} its clock had gone off or not, and what came is {taken.moved.events}"
    later = due(taken.definition, taken.after, checked_at=tick.at)
    if later is not None and later <= tick.at:
        yield f"its timer stays at {later}, and it is {tick.at}"
