"""What the machine asks of the world after its events are committed."""

from __future__ import annotations

from headway.sagas.task import Phase
from headway.sagas.values import value


@value
class Dispatch:
    """Publish the command of this attempt."""

    step: str
    phase: Phase
    attempt: int
    epoch: int


@value
class Withdraw:
    """Remove the command of this step from its stream, if it is still there."""

    step: str
    phase: Phase


@value
class Stop:
    """Hint to the handler of an action's attempt, or of an earlier one, that it is not wanted."""

    step: str
    attempt: int


@value
class StartChild:
    """Submit the child task of this attempt of a step; again is harmless."""

    step: str
    attempt: int


@value
class UndoChild:
    """Have the child task of this attempt undone, whether it runs or has succeeded."""

    step: str
    attempt: int


Action = Dispatch | Withdraw | Stop | StartChild | UndoChild
