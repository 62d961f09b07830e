"""What the API takes and answers about sagas and agents (`saga.*`, `agents`), and what an instance
of an agent says of itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from headway.agents.limit_views import BreakerView
from headway.agents.views import Number, TaskStatus
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SagaDefinition(RootModel[dict[str, Any]]):
    """saga.register: a saga, as `Saga.definition()` writes it."""


class SagaRef(_Model):
    name: str
    version: Number | None = None


class SagaView(_Model):
    """A version of a saga. In lists without its definition, and with `counts`: how many of its
    tasks have which status."""

    name: str
    version: int
    digest: str
    registered_at: datetime
    definition: dict[str, Any] | None = None
    counts: dict[TaskStatus, int] = Field(default_factory=dict)


class SagaList(_Model):
    """`counted_at` is when the tasks were counted: a while ago, if there are many."""

    sagas: list[SagaView]
    counted_at: datetime | None = None


class Presence(_Model):
    """Said every `PRESENCE_INTERVAL_S` by each agent instance on `hw.presence.<agent>`."""

    agent: str
    worker: str
    actions: list[str]
    host: str
    pid: int
    busy: int
    slots: int
    stopping: bool = False
    server: str = ""


PRESENCE_INTERVAL_S, PRESENCE_LAPSE_S = 1.0, 4.0
INSTANCE_HEADER = "Headway-Instance"


class Instance(BaseModel):
    """What an instance says of itself beside its presence, as JSON in the header INSTANCE_HEADER.

    Attributes:
        sdk: what it runs on, as "headway 0.3.0".
        config: a digest of what the agent declares. Two that differ in it differ in their actions,
            in the tools of these, or in how calls are taken up again.
        ended: attempts that ended in the last minute; `failed`: those of them that failed.
    """

    sdk: str = Field(default="", max_length=128)
    config: str = Field(default="", max_length=128)
    started_at: AwareDatetime | None = None
    ended: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)


class InstanceView(Presence, Instance):
    """An instance of an agent that is there; what it does not say of itself is empty."""


class AgentView(_Model):
    """An agent as coordinators see it: who is there, and what waits for it. `ended` and `failed`
    are attempts of the last minute, of all instances that tell."""

    agent: str
    instances: list[InstanceView]
    queued: int
    in_flight: int
    waiting: int = 0  # for admission, because of a limit
    ended: int = 0
    failed: int = 0
    breaker: BreakerView | None = None


class AgentList(_Model):
    agents: list[AgentView]
