"""The support desk's sagas, of one step each: what takes long and can die is within the step.

Each lane of the desk has an agent of its own, so that it is known which process a task runs in.
"""

from __future__ import annotations

from headway.demo.support.agent import ANSWER, BUY
from headway.sagas.builder import Saga
from headway.sagas.retry import Retry

SUPPORT = "support"
RESEARCH = "research"

_DOGGED = Retry(initial_interval=0.1, maximum_interval=1.0, maximum_attempts=0)


def saga(kind: str, agent: str) -> Saga:
    """The saga, of the agent's name, that has a ticket answered or something bought."""
    action = ANSWER if kind == SUPPORT else BUY
    return Saga(agent, version=1).step(action, f"{agent}.{action}", pivot=True, retry=_DOGGED)
