"""Limits on agents, sagas and keys, and pauses of agents: what people declare of throughput.

Each may be asked again: it says how things are to be, not what is to be changed.
"""

from __future__ import annotations

from typing import Literal

from headway.agents.api import Api, made
from headway.agents.limit_views import (
    BreakerRequest,
    BreakerView,
    LimitList,
    LimitRef,
    LimitRemoval,
    LimitRequest,
    LimitView,
)
from headway.agents.views import Nothing

Scope = Literal["agent", "saga", "key"]


class Limiting(Api):
    """They hold on all coordinators within two seconds, also for what waits already."""

    async def set_limit(
        self,
        scope: Scope,
        name: str,
        *,
        rate: float | None = None,
        burst: int | None = None,
        concurrency: int | None = None,
        by: str = "",
    ) -> LimitView:
        """Let at most `rate` attempts begin a second, `burst` of them at once, and `concurrency` go
        on at a time: for an agent, a saga, or each value of a task's attribute, named
        `AGENT:ATTRIBUTE`. InvalidInput says what does not fit."""
        request = made(
            LimitRequest,
            scope=scope,
            name=name,
            rate=rate,
            burst=burst,
            concurrency=concurrency,
            by=by,
        )
        return await self.ask("limits.set", request, LimitView)

    async def remove_limit(self, scope: Scope, name: str, *, by: str = "") -> LimitRef:
        """What waits goes on without; NotFound if there is no such limit."""
        request = made(LimitRemoval, scope=scope, name=name, by=by)
        return await self.ask("limits.remove", request, LimitRef, repeatable=False)

    async def limits(self) -> LimitList:
        """All that is declared, and how it is used."""
        return await self.ask("limits.list", Nothing(), LimitList)

    async def pause_agent(self, agent: str, reason: str = "", *, by: str = "") -> BreakerView:
        """Deliver nothing to an agent, until `resume_agent`; what it has in hand goes on."""
        request = made(BreakerRequest, agent=agent, reason=reason, by=by)
        return await self.ask("agents.pause", request, BreakerView)

    async def resume_agent(self, agent: str, reason: str = "", *, by: str = "") -> BreakerView:
        """Deliver to an agent again, whether a person paused it or its failures did."""
        request = made(BreakerRequest, agent=agent, reason=reason, by=by)
        return await self.ask("agents.resume", request, BreakerView)
