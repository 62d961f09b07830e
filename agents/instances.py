"""What an instance of an agent says of itself: what it runs on, how it is configured, and how much
it did lately."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version
from typing import Any

import orjson
from headway.agents.agent import Agent
from headway.agents.binding import Binding
from headway.agents.catalogue_views import Instance
from headway.agents.tools import Tool

LATELY_S = 60
CONFIG_DIGITS = 16  # of a digest: for comparing by eye, not against forgery


class Instances:
    """One instance. `clock` is in seconds, from anywhere."""

    def __init__(self, agent: Agent, started_at: datetime, clock: Callable[[], float]) -> None:
        self._sdk = f"headway {version('headway')}"
        self._config = config_digest(agent)
        self._started_at = started_at
        self._clock = clock
        self._seconds: deque[list[int]] = deque()  # which, how many ended, how many of them failed

    def ended(self, *, failed: bool) -> None:
        """An attempt ended just now."""
        now = int(self._clock())
        if not self._seconds or self._seconds[-1][0] != now:
            self._seconds.append([now, 0, 0])
            self._forget(now)
        self._seconds[-1][1] += 1
        self._seconds[-1][2] += failed

    def look(self) -> Instance:
        self._forget(int(self._clock()))
        return Instance(
            sdk=self._sdk,
            config=self._config,
            started_at=self._started_at,
            ended=sum(second[1] for second in self._seconds),
            failed=sum(second[2] for second in self._seconds),
        )

    def _forget(self, now: int) -> None:
        while self._seconds and self._seconds[0][0] <= now - LATELY_S:
            self._seconds.popleft()


def config_digest(agent: Agent) -> str:
    """Over all that an agent declares of its handlers and their tools, but for their code."""
    declared = {name: _handler(binding) for name, binding in agent.handlers.items()}
    written = orjson.dumps([agent.name, declared], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(written).hexdigest()[:CONFIG_DIGITS]


def _handler(binding: Binding) -> dict[str, Any]:
    tools = binding.tools
    return {
        "phase": binding.phase,
        "tools": None if tools is None else [_tool(tools[name]) for name in sorted(tools)],
    }


def _tool(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "recovery": tool.recovery,
        "retry": tool.retry,
        "timeout_s": tool.timeout_s,
        "sensitive": tool.sensitive,
        "requires_approval": tool.requires_approval,
        "model": tool.model,
    }
