"""Looking closer at what coordinators know: a task in time, one of its steps, the whole system,
and who asks."""

from __future__ import annotations

from uuid import UUID

from headway.agents.api import Api
from headway.agents.overview_views import OverviewRequest, OverviewView
from headway.agents.step_views import StepDetail, StepLook
from headway.agents.timeline_views import Phase, TimelineRequest, TimelineView
from headway.agents.whoami_views import Whoami


class Insight(Api):
    """Questions that change nothing."""

    async def timeline(self, task: UUID) -> TimelineView:
        """What happened to the task until now, as bars and marks; NotFound if there is none."""
        return await self.ask("timeline", TimelineRequest(task=task), TimelineView)

    async def step(self, task: UUID, step: str, phase: Phase | None = None) -> StepDetail:
        """What went into a step and came out, in the phase that it is in unless one is given;
        NotFound if there is no such task, or it has no such step."""
        return await self.ask("step", StepLook(task=task, step=step, phase=phase), StepDetail)

    async def overview(self) -> OverviewView:
        """How the whole system does: over the last hour, and now."""
        return await self.ask("overview", OverviewRequest(), OverviewView)

    async def whoami(self) -> Whoami:
        """Whom coordinators take this client for, and what it may ask for."""
        return await self.ask("whoami", b"{}", Whoami)
