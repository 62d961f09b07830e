"""What `headway top` shows at one moment, as one document."""

from __future__ import annotations

from headway.agents.catalogue_views import AgentView
from headway.agents.overview_views import OverviewView
from headway.agents.views import TaskRow
from pydantic import BaseModel, ConfigDict


class TopView(BaseModel):
    """`recent` are the newest tasks."""

    model_config = ConfigDict(extra="forbid")

    overview: OverviewView
    agents: list[AgentView]
    recent: list[TaskRow]
