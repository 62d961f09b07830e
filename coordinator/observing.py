"""What a commit means to whoever counts: tasks submitted, attempts ended, recoveries, ends.

`happenings` is a pure function of a committed decision. `Observers` hands what was committed to
those who listen. Always holds: a listener is told of a commit once, at most, and nothing that it
does, or that goes wrong in it, holds up or fails what it is told of. A commit whose answer was lost
is told to nobody: whoever must not miss one reads the history.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Literal, ParamSpec

from headway.coordinator.commands import agent_of
from headway.coordinator.decisions import Decision
from headway.coordinator.records import Loaded
from headway.sagas import events as e
from headway.sagas.definition import Definition
from headway.sagas.task import Phase
from headway.sagas.values import value

_LOG = logging.getLogger(__name__)

P = ParamSpec("P")

Observe = Callable[[Sequence[Decision]], None]
Count = Callable[[Sequence[tuple[str, "Happening"]]], None]
"""Is told what one commit means: by saga, what happened to a task of it."""
Outcome = Literal["succeeded", "failed", "timed_out"]


@value
class Submitted:
    at: int
    child: bool


@value
class AttemptEnded:
    """An attempt's success, failure, or that it was given up. `retry`: another one follows.
    `duration_ms` is since its command was published last; None if it had been given up before.
    `error` is a type, never a text."""

    at: int
    step: str
    phase: Phase
    attempt: int
    agent: str
    outcome: Outcome
    duration_ms: int | None
    error: str = ""
    retry: bool = False


@value
class Recovered:
    """A worker took over another's command, or one that was lost was published again."""

    at: int
    step: str
    phase: Phase
    agent: str
    how: Literal["claimed", "republished"]


@value
class TurnedAround:
    """From here on the task is undone."""

    at: int


@value
class Ended:
    """The task succeeded or was compensated; `duration_ms` is since it was submitted."""

    at: int
    status: Literal["succeeded", "compensated"]
    duration_ms: int


@value
class Parked:
    """The task waits for a person."""

    at: int
    status: Literal["parked", "failed_to_compensate"]


@value
class Resumed:
    """A person sent the parked task on."""

    at: int


Happening = Submitted | AttemptEnded | Recovered | TurnedAround | Ended | Parked | Resumed


def happenings(decision: Decision) -> list[Happening]:
    """What a committed decision means, in the order of its events."""
    change, definition = decision.change, decision.definition
    if change is None or definition is None:
        return []
    before = decision.before
    happened: list[Happening | None] = []
    for place, event in enumerate(change.events):
        match event:
            case e.AttemptDispatched():
                pass
            case e.StepCompleted() | e.StepCompensated() | e.AttemptFailed() | e.AttemptTimedOut():
                since = _dispatched_at(event.step, change.events[:place], before)
                happened.append(_attempt(definition, event, since))
            case e.AttemptClaimed() | e.AttemptRepublished():
                agent = agent_of(definition.steps[event.step], event.phase)
                claimed = isinstance(event, e.AttemptClaimed)
                how: Literal["claimed", "republished"] = "claimed" if claimed else "republished"
                happened.append(Recovered(event.at, event.step, event.phase, agent, how))
            case _:
                happened.append(_task(event, before))
    return [each for each in happened if each is not None]


def _dispatched_at(step: str, earlier: Sequence[e.Event], before: Loaded | None) -> int | None:
    """Since when an attempt of a step was outstanding; None if none was."""
    for event in reversed(earlier):
        match event:
            case e.AttemptDispatched() if event.step == step:
                return event.at
            case (
                e.StepCompleted() | e.StepCompensated() | e.AttemptFailed() | e.AttemptTimedOut()
            ) if event.step == step:
                return None
    if before is None or step not in before.task.steps:
        return None
    return before.task.steps[step].dispatched_at or None


def _attempt(
    definition: Definition,
    event: e.StepCompleted | e.StepCompensated | e.AttemptFailed | e.AttemptTimedOut,
    since: int | None,
) -> AttemptEnded | None:
    step = definition.steps[event.step]
    if step.kind != "action":
        return None  # nobody was at work for it
    outcome: Outcome = "succeeded"
    phase, error, retry = Phase.ACTION, "", False
    match event:
        case e.StepCompleted():
            pass
        case e.StepCompensated():
            phase = Phase.COMPENSATION
        case e.AttemptFailed():
            outcome, phase, error = "failed", event.phase, event.error.type
            retry = event.retry_at > 0
        case e.AttemptTimedOut():
            outcome, phase, error = "timed_out", event.phase, f"Timeout.{event.timeout}"
            retry = event.retry_at > 0
    took = None if since is None else max(0, event.at - since)
    agent = agent_of(step, phase)
    return AttemptEnded(
        event.at, step.name, phase, event.attempt, agent, outcome, took, error, retry
    )


def _task(event: e.Event, before: Loaded | None) -> Happening | None:
    match event:
        case e.TaskSubmitted():
            return Submitted(event.at, event.child)
        case e.TaskSucceeded():
            return Ended(event.at, "succeeded", _lasted(event.at, before))
        case e.TaskCompensated():
            return Ended(event.at, "compensated", _lasted(event.at, before))
        case e.RecoveryStarted():
            return TurnedAround(event.at)
        case e.TaskParked():
            return Parked(event.at, "parked")
        case e.TaskFailedToCompensate():
            return Parked(event.at, "failed_to_compensate")
        case e.TaskResumed():
            return Resumed(event.at)
        case _:
            return None


def _lasted(at: int, before: Loaded | None) -> int:
    """From a task's submission until `at`, in ms."""
    if before is None:
        return 0
    return max(0, at - round(before.created_at.timestamp() * 1000))


def harmless(listener: Callable[P, None]) -> Callable[P, None]:
    """`listener`, whose failures are told in the log, the first time, and keep nobody from going
    on."""
    failed = False

    def tell(*args: P.args, **kwargs: P.kwargs) -> None:
        nonlocal failed
        try:
            listener(*args, **kwargs)
        except Exception:
            if not failed:
                failed = True
                _LOG.exception("%r failed at what was committed; it goes on without", listener)

    return tell


class Counters:
    """Tells those who count what commits mean, which is found out once for all of them."""

    def __init__(self, *counters: Count) -> None:
        self._counters = [harmless(each) for each in counters]

    def __call__(self, decisions: Sequence[Decision]) -> None:
        happened = [
            (decision.definition.name, each)
            for decision in decisions
            if decision.definition is not None
            for each in happenings(decision)
        ]
        for count in self._counters:
            count(happened)


class Observers:
    """Hands what was committed to those who listen, in their order. None of them may wait for
    anything."""

    def __init__(self, *listeners: Observe) -> None:
        self._listeners = [harmless(each) for each in listeners]

    def __call__(self, decisions: Sequence[Decision]) -> None:
        for listener in self._listeners:
            listener(decisions)
