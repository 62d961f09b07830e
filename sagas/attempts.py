"""How attempts end without success, and what keeps them honest: retries, timeouts, claims."""

from __future__ import annotations

from dataclasses import dataclass

from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.actions import Dispatch
from headway.sagas.circumstances import DEADLINE
from headway.sagas.deadlines import closes_at, lapsed, overdue, wakes_at
from headway.sagas.progress import Progress
from headway.sagas.recovery import is_past_return, recover
from headway.sagas.task import Phase, StepState, StepStatus, TaskStatus

RETRY_AFTER_MAX_MS = 31 * 86_400_000  # however long an agent asks to be left alone
EPOCHS_MAX = 20  # publications and take-overs of one attempt before it is called unknown
CLAIMS_MAX = 3  # take-overs of one attempt before a person must look
RECOVERY_LIMIT = "RecoveryLimit"

_FINAL_TIMEOUTS = frozenset({"stop", "abandoned", "schedule_to_close"})


@dataclass(frozen=True, slots=True)
class _Ending:
    """An attempt that ended without success, as far as retrying is concerned."""

    at: int
    error_type: str
    retryable: bool
    no_effect: bool
    jitter: float
    retry_after_ms: int | None = None


def attempt_ended(progress: Progress, happened: i.Failed | i.TimedOut) -> None:
    """An agent reports failure or its own timeout; heard only for the attempt outstanding."""
    state = progress.state(happened.step)
    if not progress.is_current(happened) or happened.epoch != state.epoch:
        return
    if isinstance(happened, i.TimedOut):
        time_out(progress, happened.step, "start_to_close", happened.at, happened.jitter)
        return
    ending = _Ending(
        happened.at,
        happened.error.type,
        happened.retryable and not happened.hold,
        happened.no_effect,
        happened.jitter,
        happened.retry_after_ms,
    )
    held = happened.hold and progress.task.status is TaskStatus.RUNNING
    if held:
        status, retry_at = StepStatus.SCHEDULED, happened.at
    else:
        status, retry_at = _after(progress, happened.step, ending)
    progress.record(
        e.AttemptFailed(
            happened.at,
            happened.step,
            happened.phase,
            happened.attempt,
            happened.error,
            happened.no_effect,
            status,
            retry_at,
        )
    )
    if held:
        why = f"step {happened.step!r}: {happened.error.type}: {happened.error.message}"
        hold(progress, happened.at, happened.error.type, why, happened.step)


def guarded(progress: Progress, happened: i.Guarded) -> None:
    """A guard stopped a step: nothing new is begun until a person has looked, whatever its agent
    says of it."""
    state = progress.task.steps.get(happened.step)
    if state is None or not state.outstanding or progress.task.status is not TaskStatus.RUNNING:
        return
    why = f"step {happened.step!r}: {happened.kind}: {happened.reason}"
    hold(progress, happened.at, happened.kind, why, happened.step)


def hold(progress: Progress, at: int, kind: str, reason: str, step: str = "") -> None:
    """Begin nothing new until a person has looked at this step, or at the whole task."""
    if all(held.step != step for held in progress.task.beside.holds):
        progress.record(e.TaskHeld(at, kind, reason, step))


def time_out(progress: Progress, step: str, timeout: str, at: int, jitter: float) -> None:
    """Give up the outstanding attempt, whose outcome is unknown, or the one that was to come."""
    state = progress.state(step)
    retryable = timeout not in _FINAL_TIMEOUTS
    ending = _Ending(at, f"Timeout.{timeout}", retryable, not state.outstanding, jitter)
    status, retry_at = _after(progress, step, ending)
    progress.record(
        e.AttemptTimedOut(at, step, state.phase, state.attempt, timeout, status, retry_at)
    )


def tick(progress: Progress, happened: i.Tick) -> None:
    """Give up what has run out of time, wake what slept; what is due again is dispatched by
    `advance`."""
    at, held = happened.at, bool(progress.task.beside.holds)
    if progress.task.ended or progress.task.parked:
        return
    for name, step in progress.definition.steps.items():
        state = progress.state(name)
        wakes = wakes_at(step, state)
        if wakes is not None and wakes <= at:
            progress.record(e.StepCompleted(at, name, state.attempt))
        timeout = lapsed(step, progress.state(name), at, held=held)
        if timeout is None:
            continue
        if step.default:
            word = e.StepApproved if step.default == "approve" else e.StepRejected
            progress.record(word(at, name))
        else:
            time_out(progress, name, timeout, at, happened.jitter)
    if overdue(progress.task, at):
        _give_up(progress, at)


def _give_up(progress: Progress, at: int) -> None:
    """The deadline passed: undo the task or, where that cannot be, let a person look."""
    if is_past_return(progress):
        hold(progress, at, DEADLINE, "the deadline passed beyond the point of no return")
    else:
        recover(progress, at, "the deadline passed")


def claim_asked(progress: Progress, happened: i.ClaimAsked) -> None:
    """Grant a command to the worker with its latest delivery, or refuse it.

    A claim tells that an earlier holder is gone or frozen. The same claim is granted again: its
    answer may have been lost. A command that was taken over too often is not tried again by itself:
    whatever kills its workers would go on doing so.
    """
    state, asked = progress.state(happened.step), happened.claim
    if not progress.is_current(happened):
        progress.refuse("this attempt is not outstanding any more")
    elif state.claim == asked:
        pass
    elif state.claim is not None and not state.claim.precedes(asked):
        progress.refuse("a later delivery of this command was granted already")
    elif state.stop_by:
        time_out(progress, happened.step, "abandoned", happened.at, happened.jitter)
        progress.refuse("the task is being undone")
    elif state.claims >= CLAIMS_MAX and not state.handed_back:
        why = f"the command was taken over {CLAIMS_MAX} times without an answer"
        if state.phase is Phase.ACTION and progress.task.status is TaskStatus.RUNNING:
            reason = f"step {happened.step!r}: {why}; a person must look at its agent"
            hold(progress, happened.at, RECOVERY_LIMIT, reason, happened.step)
        time_out(progress, happened.step, "delivery_limit", happened.at, happened.jitter)
        progress.refuse(why)
    else:
        progress.record(
            e.AttemptClaimed(
                happened.at,
                happened.step,
                happened.phase,
                happened.attempt,
                state.epoch + 1,
                asked.command_epoch,
                asked.delivery,
                asked.worker,
            )
        )


def handed_back(progress: Progress, happened: i.HandedBack) -> None:
    """The next take-over does not count: its worker was stopped, not killed by the work."""
    state = progress.state(happened.step)
    current = progress.is_current(happened) and happened.epoch == state.epoch
    if current and not state.handed_back:
        where = (happened.at, happened.step, happened.phase, happened.attempt)
        progress.record(e.AttemptHandedBack(*where))


def dispatch_lost(progress: Progress, happened: i.DispatchLost) -> None:
    """Publish the outstanding attempt again, unless its command was withdrawn on purpose; ask again
    for a child, or for its being undone."""
    step = progress.definition.steps.get(happened.step)
    if step is None or not progress.state(step.name).outstanding:
        return
    state = progress.state(step.name)
    if step.kind == "child":
        sent = asked_of_child(step.name, state)
    elif step.kind == "action" and not state.stop_by:
        sent = Dispatch(step.name, state.phase, state.attempt, state.epoch)
    else:
        return
    if (sent.phase, sent.attempt, sent.epoch) != (happened.phase, happened.attempt, happened.epoch):
        return
    if state.epoch >= EPOCHS_MAX:
        time_out(progress, step.name, "delivery_limit", happened.at, jitter=0.0)
        return
    progress.record(
        e.AttemptRepublished(
            happened.at,
            step.name,
            state.phase,
            state.attempt,
            state.epoch + 1,
            happened.fenced,
        )
    )


def asked_of_child(step: str, state: StepState) -> Dispatch:
    """What the child of a step that waits for it is asked for; its attempt is the child's number.

    A child whose parent has turned around is to be undone, though it may still be running.
    """
    undo = state.phase is Phase.COMPENSATION or state.stop_by
    phase = Phase.COMPENSATION if undo else Phase.ACTION
    return Dispatch(step, phase, state.actions, state.epoch)


def _after(progress: Progress, name: str, ending: _Ending) -> tuple[StepStatus, int]:
    """The step's status after such an ending, and when it is tried again (0: it is not)."""
    step, state = progress.definition.steps[name], progress.state(name)
    if state.phase is Phase.COMPENSATION:
        policy, again, ended = (
            step.compensation_retry,
            StepStatus.COMPENSATING,
            StepStatus.FAILED_TO_COMPENSATE,
        )
    else:
        left_nothing = step.without_effect or (ending.no_effect and not state.uncertain)
        policy, again = step.retry, StepStatus.SCHEDULED
        ended = StepStatus.FAILED if left_nothing else StepStatus.UNKNOWN
        if progress.task.status is TaskStatus.COMPENSATING:
            return ended, 0
        if _is_held_for(progress, name):
            return again, ending.at
        if step.kind != "action":
            return ended, 0
    count = state.attempt - state.spent
    if not ending.retryable or not policy.allows(count, ending.error_type):
        return ended, 0
    if ending.retry_after_ms is None:
        delay = policy.delay_ms(count, ending.jitter)
    else:
        delay = min(max(ending.retry_after_ms, 0), RETRY_AFTER_MAX_MS)
    retry_at = ending.at + delay
    closing = closes_at(step, state)
    if closing is not None and retry_at >= closing:
        return ended, 0
    return again, retry_at


def _is_held_for(progress: Progress, step: str) -> bool:
    """Whether a person is to look at this very step before it is tried again, or given up."""
    return any(held.step == step for held in progress.task.beside.holds)


__all__ = [
    "CLAIMS_MAX",
    "asked_of_child",
    "attempt_ended",
    "claim_asked",
    "dispatch_lost",
    "guarded",
    "hold",
    "tick",
    "time_out",
]
