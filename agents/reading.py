"""Reading what coordinators know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

from headway.agents.api import Api, made
from headway.agents.auditing import AUDIT_PAGE_MAX, AuditEntry, AuditPage, AuditRequest
from headway.agents.catalogue_views import AgentList, SagaList, SagaRef, SagaView
from headway.agents.entries import Entry, JournalPage, JournalRead, Phase
from headway.agents.errors import InvalidInput
from headway.agents.export_views import ExportRequest, TaskRecord
from headway.agents.messages import describe
from headway.agents.views import (
    GetRequest,
    History,
    HistoryEntry,
    HistoryRequest,
    TaskView,
)
from pydantic import BaseModel, ValidationError

ANSWER_S = 2.0  # for a coordinator to say how a task is, beyond what it is to wait


class Health(BaseModel):
    """How a coordinator and its servers are, by its own words."""

    status: str
    postgres: str
    nats: str = "ok"  # which carried the answer
    version: str
    now: datetime


class Reading(Api):
    """Questions that change nothing."""

    async def status(self, task: UUID) -> TaskView:
        """The task as it is now; NotFound if no coordinator has accepted it."""
        return await self._get(task)

    async def _get(self, task: UUID, wait_s: float = 0.0) -> TaskView:
        request = GetRequest(task=task, wait_s=wait_s)
        return await self.ask("get", request, TaskView, try_s=wait_s + ANSWER_S)

    async def history(self, task: UUID) -> list[HistoryEntry]:
        """All that happened to the task, oldest first."""
        entries: list[HistoryEntry] = []
        while True:
            after = entries[-1].version if entries else 0
            page = await self.ask("history", HistoryRequest(task=task, after=after), History)
            entries += page.entries
            if not page.more or not page.entries:
                return entries

    async def export(self, task: UUID) -> TaskRecord:
        """All that is kept of the task, in one document, to be kept or replayed."""
        return await self.ask("export", made(ExportRequest, task=task), TaskRecord)

    async def journal(self, task: UUID, step: str, phase: Phase = "action") -> AsyncIterator[Entry]:
        """What the agents of a step did, call by call, oldest first."""
        request = made(JournalRead, task=task, step=step, phase=phase)
        while True:
            page = await self.ask("journal.read", request, JournalPage)
            for entry in page.entries:
                yield entry
            if not page.more or not page.entries:
                return
            request = request.model_copy(update={"after": page.entries[-1].seq})

    async def audit(
        self,
        task: UUID | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """Who did what, when and why, oldest first; of one task, or of all. See `AuditRequest`."""
        request = made(AuditRequest, task=task, since=since, until=until, limit=AUDIT_PAGE_MAX)
        while True:
            page = await self.ask("audit", request, AuditPage)
            for entry in page.entries:
                yield entry
            if not page.more:
                return
            request = request.model_copy(update={"after": page.cursor})

    async def sagas(self) -> SagaList:
        """The registered sagas, each version."""
        return await self.ask("saga.list", b"{}", SagaList)

    async def saga(self, name: str, version: int | None = None) -> SagaView:
        """One saga with its definition; the newest version unless one is given."""
        try:
            wanted = SagaRef(name=name, version=version)
        except ValidationError as error:
            raise InvalidInput(describe(error)) from error
        return await self.ask("saga.get", wanted, SagaView)

    async def agents(self) -> AgentList:
        """Which agents are there or are wanted, and what waits for each."""
        return await self.ask("agents", b"{}", AgentList)

    async def health(self) -> Health:
        """How a coordinator and its servers are."""
        return await self.ask("health", b"{}", Health)
