"""What few tasks have beside their steps: bounds, a plan that grew, signals, a hold.

One value of its own, so that tasks without any of it pay nothing for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from headway.sagas.step import Step

OUTPUT = "output"  # kind of a hold: the output was not accepted
DEADLINE = "deadline"  # kind of a hold: the deadline passed beyond the point of no return

OnRejection = Literal["retry", "compensate", "park"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a task's manifest lets the machine decide.

    Attributes:
        deadline: ms since 1970 after which the task is given up; 0 is never.
        max_steps: steps in all; 0 is without limit.
        agents: agents that steps may be for; None is any.
        on_rejection: what follows when the output is not accepted.
    """

    deadline: int = 0
    max_steps: int = 0
    agents: tuple[str, ...] | None = None
    on_rejection: OnRejection = "park"


@dataclass(frozen=True, slots=True)
class Fork:
    """What a task is forked from: the task `origin`, of which it keeps these results by step, and
    the first step that is done anew."""

    origin: str
    step: str
    kept: dict[str, Any]
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    """Why nothing new is begun until a person has looked; `kind` is a word for programs, `since`
    is ms since 1970."""

    kind: str
    reason: str
    step: str = ""
    since: int = 0

    @property
    def is_of_output(self) -> bool:
        """Whether it is for an output that was not accepted; an agent may use any word as kind."""
        return self.kind == OUTPUT and not self.step


@dataclass(frozen=True, slots=True)
class Signal:
    """A signal that no wait has taken yet."""

    name: str
    id: str
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Appended:
    """A step that was handed off to by the step `by`."""

    by: str
    step: Step


class Circumstances(NamedTuple):
    """The rest of a task's state.

    Attributes:
        bounds: of its manifest.
        holds: why it is, or is about to be, parked although no step is stuck; oldest first.
        plan: steps that its own steps appended.
        trail: signatures of the last hand-offs, for the loop breaker.
        signals: those that came and were not taken; oldest first.
        signal_ids: of all that ever came: each counts once.
        rejection: why its output was not accepted, if it is done again.
        rejections: how often that was.
        accepted: a person took the output as it is.
        overdue: its deadline was acted on.
        child: it is a step of another task, which may have it undone after its success.
        forked_from: the task of which it keeps results.
    """

    bounds: Bounds | None = None
    holds: tuple[Hold, ...] = ()
    plan: tuple[Appended, ...] = ()
    trail: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    signal_ids: tuple[str, ...] = ()
    rejection: str = ""
    rejections: int = 0
    accepted: bool = False
    overdue: bool = False
    child: bool = False
    forked_from: str = ""

    @property
    def hold(self) -> Hold | None:
        """What a person is to look at first."""
        return self.holds[0] if self.holds else None

    @property
    def why_held(self) -> str:
        return "; ".join(hold.reason for hold in self.holds)


ORDINARY = Circumstances()
"""Those of most tasks; one value for all of them."""
