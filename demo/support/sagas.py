"""The support desk's sagas, of one step each: what takes long and can die is within the step."""

from __future__ import annotations

from typing import Literal

from headway.demo.support.agent import ANSWER, BUY
from headway.demo.support.tickets import Ticket
from headway.sagas.builder import Saga
from headway.sagas.retry import Retry

Kind = Literal["support", "research"]
SUPPORT: Kind = "support"
RESEARCH: Kind = "research"
KINDS: tuple[Kind, ...] = (SUPPORT, RESEARCH)

_DOGGED = Retry(initial_interval=0.1, maximum_interval=1.0, maximum_attempts=0)


def agent_name(kind: Kind, lane: int) -> str:
    """The agent of a lane, and its saga: so it is known in which process a task runs."""
    return f"{kind}-{lane}"


def step_name(kind: Kind) -> str:
    """The only step of a saga, and its action."""
    return ANSWER if kind == SUPPORT else BUY


def saga(kind: Kind, lane: int) -> Saga:
    """Have a ticket answered, or something bought. There is no way back, only on."""
    agent, step = agent_name(kind, lane), step_name(kind)
    built = Saga(agent, version=1, input=Ticket if kind == SUPPORT else str)
    return built.step(step, f"{agent}.{step}", pivot=True, retry=_DOGGED)
