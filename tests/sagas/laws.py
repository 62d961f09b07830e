"""The laws of the saga machine, as checkers that share no code with it.

Each law is a function from one step of a search (`Taken`) to its complaints. They hold after
every transition, of every shape in the corpus:

- the history folds to the state, and versions have no gap
- state and events survive their JSON
- ended tasks never change their status, and nothing is sent for them, but for a child's success,
  which its parent may have undone
- an input that is given twice changes nothing the second time
- the state is sound (`violations`), and an unfinished task waits for something
- no attempt is sent twice without a failure, a timeout or a loss in between
- an attempt that was answered is not waited for any longer
- a command that is not wanted any more is withdrawn, before another of its step is sent
- what is recorded was told: an input of one phase is never taken for the other's
- nothing new is begun in a task that has turned around
- compensation covers exactly what may have an effect, after that of all that was built on it
- a task that is compensated has undone everything, or names an incident, and only then
- an incident is raised for two answers that contradict each other, and for nothing else
- a command is taken over by a later delivery only, and only so often
- no action is tried again beyond its schedule_to_close, which no compensation has
- a refusal records nothing but the end of the attempt that it is about
- what is ready is begun, and a skipped step never is, nor does it keep others from it
- nothing is begun while a person must look first; the task is parked once no agent is at it,
  whatever the agent says that was stopped
- a signal counts once and is taken once, the oldest first
- no second child is begun while the first may have an effect
- a child that cannot be undone keeps its parent from being compensated
- an output is accepted before a task succeeds, and one that was rejected is not taken again
- a plan only grows, by what was handed off
- a deadline counts once: it turns the task around, or has a person look
- a timer that goes off is heard, and none is left behind in the past
- what a fork keeps of another task it neither does nor undoes

Those that need more than one transition are checked by the search itself (`LAWS_OF_SEARCH`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from forks import what_is_kept_is_neither_done_nor_undone
from headway.sagas import (
    Action,
    Dispatch,
    Phase,
    TaskStatus,
    UndoChild,
    Withdraw,
    attempts,
    due,
    fold,
    outstanding,
    transition,
    violations,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.codec import decode_event, decode_task, encode_event, encode_task, event_type
from headway.sagas.task import unborn
from laws_beside import (
    a_child_that_cannot_be_undone_is_stuck,
    a_deadline_counts_once,
    a_held_task_is_parked_once_no_agent_is_at_it,
    a_rejected_output_is_not_taken_again,
    a_signal_counts_once_and_is_taken_once,
    a_timer_is_heard,
    an_output_is_accepted_before_success,
    no_second_child_is_begun,
    nothing_is_begun_while_held,
    the_plan_only_grows,
    what_a_guard_stopped_turns_nothing_around,
    what_is_ready_is_begun,
)
from taken import Law, Taken, begins, ended
from witness import needs_undoing, turned_around


def the_history_folds_to_the_state(taken: Taken) -> Iterator[str]:
    before, task = taken.before or unborn(taken.definition), taken.after
    if reduce(fold, taken.moved.events, before) != task:
        yield "the fold of the events is not the state"
    if task.version != before.version + len(taken.moved.events):
        yield f"{len(taken.moved.events)} events led from {before.version} to {task.version}"


def all_survives_its_json(taken: Taken) -> Iterator[str]:
    task = taken.after
    if decode_task(task.status.value, task.version, encode_task(task)) != task:
        yield "the state is not what its JSON says"
    for event in taken.moved.events:
        if decode_event(event_type(event), event.at, encode_event(event)) != event:
            yield f"{event} is not what its JSON says"


def ended_tasks_stay_ended(taken: Taken) -> Iterator[str]:
    if taken.before is None or not taken.before.ended:
        return
    revoked = isinstance(taken.happened, i.Revoke) and taken.before.beside.child
    if revoked and taken.before.status is TaskStatus.SUCCEEDED:
        return
    if taken.after.status is not taken.before.status:
        yield f"{taken.before.status} became {taken.after.status}"
    if taken.moved.actions:
        yield f"an ended task asks for {taken.moved.actions}"


def a_repeated_input_changes_nothing(taken: Taken) -> Iterator[str]:
    again = transition(taken.definition, taken.after, taken.happened, taken.checks)
    if again.events or again.actions or again.task != taken.after:
        yield f"given twice, it led to {again.events} {again.actions}"


def the_state_is_sound(taken: Taken) -> Iterator[str]:
    yield from violations(taken.definition, taken.after)


def an_unfinished_task_waits_for_something(taken: Taken) -> Iterator[str]:
    task = taken.after
    waits = due(taken.definition, task) is not None
    if waits == (task.ended or task.parked):
        yield f"its timer is {due(taken.definition, task)} though it is {task.status}"
    if (task.ended or task.parked) and outstanding(taken.definition, task):
        yield "it is at rest and yet has commands outstanding"


def no_attempt_is_sent_twice(taken: Taken) -> Iterator[str]:
    sent = [action for action in taken.moved.actions if isinstance(action, Dispatch)]
    for place, action in enumerate(sent):
        known = taken.seen_before[action.step]
        acting = action.phase is Phase.ACTION
        latest = known.actions if acting else known.compensations
        if any(action.step == earlier.step for earlier in sent[:place]):
            yield f"{action} is the second for this step at once"
        if action.epoch > 0:
            lost = taken.happened
            if not isinstance(lost, i.DispatchLost) or (lost.step, lost.attempt) != (
                action.step,
                action.attempt,
            ):
                yield f"{action} was not lost"
        elif action.attempt != latest + 1:
            yield f"{action} follows attempt {latest}"
        elif known.open and not ended(taken, action.step):
            yield f"{action} though an attempt ({known.open}) is still open"


def an_answered_attempt_is_waited_for_no_more(taken: Taken) -> Iterator[str]:
    answer = taken.happened
    if taken.before is None or not isinstance(answer, i.Succeeded | i.Failed | i.TimedOut):
        return
    state = taken.before.steps[answer.step]
    waited = state.outstanding and (state.phase, state.attempt) == (answer.phase, answer.attempt)
    if not waited or (not isinstance(answer, i.Succeeded) and answer.epoch != state.epoch):
        return
    state = taken.after.steps[answer.step]
    if state.outstanding and (state.phase, state.attempt) == (answer.phase, answer.attempt):
        yield f"attempt {state.attempt} of {answer.step!r} was answered and is still outstanding"


def what_is_no_longer_wanted_is_withdrawn(taken: Taken) -> Iterator[str]:
    for name, state in taken.before.steps.items() if taken.before else ():
        if not state.outstanding or state.stop_by:
            continue
        if taken.definition.steps[name].kind != "action":
            yield from _child_left_alone(taken, name)
            continue
        now, attempt = taken.after.steps[name], (state.phase, state.attempt)
        if now.outstanding and not now.stop_by and (now.phase, now.attempt) == attempt:
            continue
        answer = taken.happened
        if isinstance(answer, i.Succeeded | i.Failed) and (
            (answer.step, answer.phase, answer.attempt) == (name, *attempt)
        ):
            continue  # the worker that answered also takes the command out of its stream
        asked = [action for action in taken.moved.actions if action.step == name]
        if not asked or asked[0] != Withdraw(name, state.phase):
            yield f"the command of attempt {state.attempt} of {name!r} is left in its stream"


def _child_left_alone(taken: Taken, name: str) -> Iterator[str]:
    """A child that runs when its parent turns around is undone."""
    turned = any(isinstance(event, e.RecoveryStarted) for event in taken.moved.events)
    if not turned or taken.definition.steps[name].kind != "child":
        return
    child = UndoChild(name, taken.seen_before[name].actions)
    if taken.after.steps[name].outstanding and child not in taken.moved.actions:
        yield f"the child of {name!r} is not undone"


def what_is_recorded_was_told(taken: Taken) -> Iterator[str]:
    for event in taken.moved.events:
        if not (_was_told(taken, event) and _another_kind_was_told(taken, event)):
            yield f"{event} was never told"


def _was_told(taken: Taken, event: e.Event) -> bool:
    happened = taken.happened
    match event:
        case e.StepCompleted() | e.LateSuccess():
            return _is_success(taken, event.step, Phase.ACTION)
        case e.StepCompensated() | e.EmptyDoubted():
            return _is_success(taken, event.step, Phase.COMPENSATION)
        case e.AttemptFailed():
            if isinstance(happened, i.ChildEnded):
                return happened.step == event.step and happened.outcome != "succeeded"
            return isinstance(happened, i.Failed) and (
                (happened.step, happened.phase, happened.attempt)
                == (event.step, event.phase, event.attempt)
            )
        case e.AttemptTimedOut():
            lost = isinstance(happened, i.DispatchLost) and happened.step == event.step
            return (
                isinstance(happened, i.Tick)
                or lost
                or (
                    isinstance(happened, i.TimedOut | i.ClaimAsked)
                    and (happened.step, happened.phase, happened.attempt)
                    == (event.step, event.phase, event.attempt)
                )
            )
        case _:
            return True


def _another_kind_was_told(taken: Taken, event: e.Event) -> bool:
    happened = taken.happened
    match event:
        case e.StepSettled():
            return isinstance(happened, i.Settle) and happened.step == event.step
        case e.StepApproved() | e.StepRejected():
            approved = isinstance(event, e.StepApproved)
            if isinstance(happened, i.Approval):
                return (happened.step, happened.approved) == (event.step, approved)
            default = taken.definition.steps[event.step].default
            by_default = default == ("approve" if approved else "reject")
            return isinstance(happened, i.Tick) and by_default
        case e.SignalReceived():
            return isinstance(happened, i.SignalSent) and happened.id == event.id
        case e.StepsAppended():
            return isinstance(happened, i.Succeeded) and happened.step == event.by
        case e.TaskForked() | e.StepKept():
            return isinstance(happened, i.Submit) and happened.fork is not None
        case e.OutputRejected():
            return event.by == "" or isinstance(happened, i.RetryStuck)
        case e.TaskResumed():
            asked = isinstance(happened, i.RetryStuck)
            return asked or (event.by == "" and isinstance(happened, i.Succeeded | i.ChildEnded))
        case _:
            return True


def _is_success(taken: Taken, step: str, phase: Phase) -> bool:
    happened, kind = taken.happened, taken.definition.steps[step].kind
    if kind == "child":
        outcome = "succeeded" if phase is Phase.ACTION else "compensated"
        return isinstance(happened, i.ChildEnded) and (happened.step, happened.outcome) == (
            step,
            outcome,
        )
    if kind == "sleep":
        return isinstance(happened, i.Tick)
    told = isinstance(happened, i.Succeeded) and (happened.step, happened.phase) == (step, phase)
    return told and kind == "action"


def nothing_new_is_begun_once_turned_around(taken: Taken) -> Iterator[str]:
    turned = turned_around(taken.before) or turned_around(taken.after)
    for action in taken.moved.actions:
        if not begins(action):
            continue
        if turned:
            yield f"{action} in a task that is being undone"
        for before in taken.definition.ancestors[action.step]:
            if not taken.seen[before].over:
                yield f"{action} though {before!r} has not happened"
    if turned:
        for command in outstanding(taken.definition, taken.after):
            if command.phase is Phase.ACTION:
                yield f"{command} would be published again in a task that is being undone"


def compensation_covers_what_has_an_effect(taken: Taken) -> Iterator[str]:
    definition, pivot = taken.definition, taken.definition.pivot
    for action in taken.moved.actions:
        if not _undoes(taken, action):
            continue
        known = taken.seen[action.step]
        if definition.steps[action.step].compensate is None and isinstance(action, Dispatch):
            yield f"{action} for a step without compensation"
        if not known.may_have_effect:
            yield f"{action} for a step that is known to have left nothing"
        if any(state.open == Phase.ACTION for state in taken.seen.values()):
            yield f"{action} while an action is still running"
        if pivot is not None and taken.seen_before[pivot].happened and not taken.after.incident:
            yield f"{action} after the pivot {pivot!r} has happened"
        if taken.seen_before[action.step].compensations == 0:
            for later in definition.descendants[action.step]:
                if needs_undoing(definition, taken.seen, later):
                    yield f"{action} before the compensation of {later!r}"


def _undoes(taken: Taken, action: Action) -> bool:
    """Whether it compensates a step; a child that still runs is only asked to stop."""
    if isinstance(action, UndoChild):
        return taken.seen[action.step].open != Phase.ACTION
    return isinstance(action, Dispatch) and action.phase is Phase.COMPENSATION


def a_compensated_task_has_undone_everything(taken: Taken) -> Iterator[str]:
    task, definition = taken.after, taken.definition
    if task.status is TaskStatus.SUCCEEDED:
        for name, known in taken.seen.items():
            if not known.over:
                yield f"it succeeded, but {name!r} has not happened"
    if task.status is not TaskStatus.COMPENSATED:
        return
    left = [name for name in definition.steps if needs_undoing(definition, taken.seen, name)]
    if definition.pivot is not None and taken.seen[definition.pivot].happened:
        left.append(definition.pivot)
    if left and not task.incident:
        yield f"it is compensated, but {left} is not undone, and no incident says so"


def an_incident_has_a_cause(taken: Taken) -> Iterator[str]:
    if not taken.after.incident or (taken.before is not None and taken.before.incident):
        return
    happened = taken.happened
    if isinstance(happened, i.ChildEnded) and happened.outcome == "succeeded":
        known = taken.seen_before[happened.step]
        if known.happened or (known.gone and not known.compensations):
            yield f"{happened} is no news"
        return
    if not isinstance(happened, i.Succeeded):
        yield f"{happened} cannot be an incident"
        return
    if taken.definition.steps[happened.step].read_only:
        yield f"{happened.step!r} is read-only, so its late answer is no incident"
    known = taken.seen_before[happened.step]
    doubted = happened.phase is Phase.COMPENSATION and happened.empty and known.told_after > 0
    contradicted = happened.phase is Phase.ACTION and not known.happened
    if not (doubted or contradicted):
        yield "an incident without two answers that contradict each other"


def only_a_later_delivery_takes_over(taken: Taken) -> Iterator[str]:
    for event in taken.moved.events:
        if not isinstance(event, e.AttemptClaimed) or taken.before is None:
            continue
        state = taken.before.steps[event.step]
        granted = state.claim and (state.claim.command_epoch, state.claim.delivery)
        if granted and (event.command_epoch, event.delivery) <= granted:
            yield f"{event} takes over from delivery {granted}"
        if state.claims >= attempts.CLAIMS_MAX and not state.handed_back:
            yield f"{event} is take-over {state.claims + 1} of one attempt"


def only_actions_have_an_end_of_all_retrying(taken: Taken) -> Iterator[str]:
    for event in taken.moved.events:
        if not isinstance(event, e.AttemptFailed | e.AttemptTimedOut):
            continue
        timeout = event.timeout if isinstance(event, e.AttemptTimedOut) else ""
        if event.phase is Phase.COMPENSATION and timeout == "schedule_to_close":
            yield f"{event} ends a compensation"
        limit = taken.definition.steps[event.step].timeouts.schedule_to_close
        holds = taken.after.beside.holds + (taken.before.beside.holds if taken.before else ())
        if any(hold.step == event.step for hold in holds):
            continue  # it gets another series once a person has looked
        if event.phase is Phase.ACTION and event.retry_at and limit is not None:
            end = taken.after.steps[event.step].scheduled_at + limit * 1000
            if event.retry_at >= end:
                yield f"{event} is to be tried again though its schedule_to_close is at {end}"


def a_refusal_records_nothing_else(taken: Taken) -> Iterator[str]:
    if not taken.moved.refusal:
        return
    if taken.moved.events and not isinstance(taken.happened, i.ClaimAsked):
        yield f"refused, and yet {taken.moved.events}"


LAWS: tuple[Law, ...] = (
    the_history_folds_to_the_state,
    all_survives_its_json,
    ended_tasks_stay_ended,
    a_repeated_input_changes_nothing,
    the_state_is_sound,
    an_unfinished_task_waits_for_something,
    no_attempt_is_sent_twice,
    an_answered_attempt_is_waited_for_no_more,
    what_is_no_longer_wanted_is_withdrawn,
    what_is_recorded_was_told,
    nothing_new_is_begun_once_turned_around,
    compensation_covers_what_has_an_effect,
    a_compensated_task_has_undone_everything,
    an_incident_has_a_cause,
    only_a_later_delivery_takes_over,
    only_actions_have_an_end_of_all_retrying,
    a_refusal_records_nothing_else,
    what_is_ready_is_begun,
    nothing_is_begun_while_held,
    a_held_task_is_parked_once_no_agent_is_at_it,
    what_a_guard_stopped_turns_nothing_around,
    a_signal_counts_once_and_is_taken_once,
    no_second_child_is_begun,
    a_child_that_cannot_be_undone_is_stuck,
    an_output_is_accepted_before_success,
    a_rejected_output_is_not_taken_again,
    the_plan_only_grows,
    a_deadline_counts_once,
    a_timer_is_heard,
    what_is_kept_is_neither_done_nor_undone,
)

LAWS_OF_SEARCH = (
    "every input is decided, or refused as impossible; nothing else is raised",
    "what no history can explain changes nothing",
    "what a task says of its end is what is found downstream",
    "from each step, a task at rest is refused to be forked, or keeps what it may",
    "once faults stop, every task ends, with people retrying what is parked",
)


LAWS_OF_SILENCE = (
    an_answered_attempt_is_waited_for_no_more,
    a_timer_is_heard,
    a_deadline_counts_once,
)


def complaints(taken: Taken) -> list[str]:
    return [f"{law.__name__}: {wrong}" for law in LAWS for wrong in law(taken)]


def complaints_of_silence(taken: Taken) -> list[str]:
    """Where nothing came of an input, every other law holds as it did before."""
    return [f"{law.__name__}: {wrong}" for law in LAWS_OF_SILENCE for wrong in law(taken)]
