"""What a task may do, as its submitter says; every coordinator holds it to that."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from headway.agents.masks import PAYLOAD_TEXT
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

GOAL_MAX_CHARS = 10_000
NAMES_MAX = 1_000  # agents or tools
TOKENS_MAX = 1_000_000_000_000
COST_MAX_USD = 1_000_000_000.0

Name = Annotated[str, Field(min_length=1, max_length=128)]


class Manifest(BaseModel):
    """The bounds of one task. What is None is not bounded.

    Attributes:
        goal: in words, for agents and people.
        agents: the agents that steps may be for, handed-off ones included.
        tools: the tools that may be called, by name.
        max_steps: steps in all, handed-off ones included.
        max_tokens: of model calls, input and output together; reached, no further tool is called.
        max_cost_usd: US dollars, as tools report them; as `max_tokens`.
        max_tool_failures: failing calls in a row after which a person must look; 3 if None.
        deadline: when the task is given up: undone, or parked past its point of no return.
        acceptance: a JSON Schema for the task's output, that is the result of its last step, or the
            results of its last steps by name.
        on_rejection: what to do about an output that is not accepted: have the last steps done
            again (three times, then park), undo the task, or park it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Annotated[str, Field(max_length=GOAL_MAX_CHARS), PAYLOAD_TEXT] = ""
    agents: Annotated[list[Name], Field(max_length=NAMES_MAX)] | None = None
    tools: Annotated[list[Name], Field(max_length=NAMES_MAX)] | None = None
    max_steps: Annotated[int, Field(ge=1, le=256)] | None = None
    max_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = None
    max_cost_usd: Annotated[float, Field(ge=0, le=COST_MAX_USD, allow_inf_nan=False)] | None = None
    max_tool_failures: Annotated[int, Field(ge=1, le=1_000)] | None = None
    deadline: AwareDatetime | None = None
    acceptance: dict[str, Any] | None = None
    on_rejection: Literal["retry", "compensate", "park"] = "park"

    @property
    def deadline_ms(self) -> int:
        """Milliseconds since 1970, UTC; 0 if there is none."""
        return 0 if self.deadline is None else _ms(self.deadline)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
