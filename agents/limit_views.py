"""What the API takes and answers about limits and breakers (`limits.*`, `agents.pause`, …)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

NAME_MAX_CHARS = 129  # an agent, a colon and an attribute
RATE_MIN, RATE_MAX = 1 / 86_400, 1_000_000.0  # attempts begun a second

Scope = Literal["agent", "saga", "key"]
Name = Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
BreakerState = Literal["closed", "open", "probing", "paused"]


def rate_text(rate: float) -> str:
    """As people write it, in the unit in which it is not below one: 50/s, 90/m, 10/h."""
    units = (("s", 1), ("m", 60), ("h", 3_600))
    unit, seconds = next((each for each in units if rate * each[1] >= 1), units[-1])
    return f"{rate * seconds:.6g}/{unit}"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LimitRef(_Model):
    """A limit. `name` is an agent, a saga, or for a key `AGENT:ATTRIBUTE`."""

    scope: Scope
    name: Name


class LimitRemoval(LimitRef):
    """limits.remove: what waits goes on without."""

    by: str = ""


class LimitRequest(LimitRef):
    """limits.set: attempts begun a second and at once, and attempts at a time; takes the place of
    what was declared before. Without a burst, it is what 0.2 s of the rate are, and
    one."""

    rate: Annotated[float, Field(ge=RATE_MIN, le=RATE_MAX)] | None = None
    burst: Count | None = None
    concurrency: Count | None = None
    by: str = ""


class LimitView(LimitRef):
    """What is declared. `waiting` commands are not admitted yet, `running` attempts are."""

    rate: float | None
    burst: int
    concurrency: int | None
    set_by: str
    set_at: datetime
    waiting: int = 0
    running: int = 0


class LimitList(_Model):
    limits: list[LimitView]


class BreakerRequest(_Model):
    """agents.pause, agents.resume: deliver no commands to an agent, or deliver them again."""

    agent: Name
    by: str = ""
    reason: str = ""


class BreakerView(_Model):
    """Whether an agent gets commands: all (closed), none (open, or paused by a person), or one at a
    time (probing). `until` is when an open one is probed."""

    agent: str
    state: BreakerState
    since: datetime
    until: datetime | None = None
    reason: str = ""
    by: str = ""
