"""Everything that can happen to a task from outside. `at` is ms since 1970, UTC.

`jitter` is a number from -1 to 1, drawn by the caller, for a retry that the input may cause.
"""

from __future__ import annotations

from typing import Any, Literal

from headway.sagas.circumstances import Bounds, Fork
from headway.sagas.step import Step
from headway.sagas.task import Claim, Failure, Phase
from headway.sagas.values import value


@value
class Submit:
    """`bounds` are those of the task's manifest; `child`: it is a step of another task; `fork`: it
    keeps what another task finished."""

    at: int
    bounds: Bounds | None = None
    child: bool = False
    fork: Fork | None = None


@value
class Started:
    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@value
class Heartbeat:
    """A handler is alive. `progress` is for people to look at; None is nothing new. `waiting`: it
    waits for a person, so that its time does not run."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    progress: Any = None
    waiting: bool = False


@value
class HandedBack:
    """A worker that stops in an orderly way gave the attempt's command back, unfinished."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int


@value
class Succeeded:
    """An agent reports success. `empty`: its compensation found nothing to undo. `handoff`: steps
    that are to be appended to the plan; those without a name get one."""

    at: int
    step: str
    phase: Phase
    attempt: int
    result: Any = None
    empty: bool = False
    handoff: tuple[Step, ...] = ()


@value
class Failed:
    """An agent reports failure. `no_effect`: it states that nothing was left behind. `hold`: it is
    not to be tried again before a person has looked."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    error: Failure
    retryable: bool
    no_effect: bool
    retry_after_ms: int | None = None
    jitter: float = 0.0
    hold: bool = False


@value
class TimedOut:
    """A worker stopped a handler at its `start_to_close`."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    jitter: float = 0.0


@value
class Tick:
    """The task's timer went off."""

    at: int
    jitter: float = 0.0


@value
class ClaimAsked:
    """A worker asks whether it may run a redelivered, re-published or old command."""

    at: int
    step: str
    phase: Phase
    attempt: int
    claim: Claim
    jitter: float = 0.0


@value
class DispatchLost:
    """The command of an outstanding attempt is in no stream any more, nor is its answer; or it was
    with a worker that is gone. If `fenced`, what is left of it is void from now on."""

    at: int
    step: str
    phase: Phase
    attempt: int
    epoch: int
    fenced: bool = False


@value
class Cancel:
    at: int
    by: str
    reason: str


@value
class RetryStuck:
    """A person asks for another series of attempts: of one stuck step, or of all."""

    at: int
    by: str
    reason: str
    step: str | None = None


@value
class Settle:
    """A person states how a stuck step really ended."""

    at: int
    step: str
    outcome: Literal["happened", "did_not_happen"]
    by: str
    reason: str
    result: Any = None


@value
class Approval:
    """A person approves a step that waits for that, or rejects it."""

    at: int
    step: str
    approved: bool
    by: str
    reason: str


@value
class SignalSent:
    """A signal for the task's steps that wait for one of this name. An id counts once."""

    at: int
    name: str
    id: str
    payload: Any = None
    by: str = ""


@value
class ChildEnded:
    """How the child task of a step's attempt stands. `refused`: it could not be begun, or cannot be
    undone, for this `reason`. `result` is the output of one that succeeded."""

    at: int
    step: str
    attempt: int
    outcome: Literal["succeeded", "compensated", "refused"]
    reason: str = ""
    result: Any = None


@value
class Revoke:
    """The task that this one is a child of has it undone."""

    at: int
    reason: str


@value
class Guarded:
    """A guard stopped what a step was about to do: nothing new until a person has looked."""

    at: int
    step: str
    kind: str
    reason: str


@value
class Move:
    """A person has the task go on under another version of its saga. `seen` is the task's version
    for which it was found out that the history fits (`moving.misfit`)."""

    at: int
    by: str
    reason: str
    origin: int
    target: int
    seen: int


Input = (
    Submit
    | Started
    | Heartbeat
    | HandedBack
    | Succeeded
    | Failed
    | TimedOut
    | Tick
    | ClaimAsked
    | DispatchLost
    | Cancel
    | RetryStuck
    | Settle
    | Approval
    | SignalSent
    | ChildEnded
    | Revoke
    | Guarded
    | Move
)
