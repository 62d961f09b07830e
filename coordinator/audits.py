"""The audit log, page by page. Changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import asyncpg
import orjson
from headway.agents.auditing import AuditEntry, AuditPage, AuditRequest
from headway.coordinator.errors import Refusal
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store

_BEGINNING = datetime.fromtimestamp(0, UTC)
_END = datetime.max.replace(tzinfo=UTC)
_FIRST = (_BEGINNING, UUID(int=0), "")


class Audits:
    def __init__(self, store: Store) -> None:
        self._store = store

    def operations(self) -> dict[str, Serve]:
        return {"audit": typed(AuditRequest, AuditPage, self.page)}

    async def page(self, request: AuditRequest) -> AuditPage:
        """Entries in the order of their time, task and place: the same each time they are asked."""
        at, task, entry = _read(request.after) if request.after else _FIRST
        since, until = request.since or _BEGINNING, request.until or _END
        asked = (since, until, at, task, entry, request.limit + 1)
        if request.task is None:
            rows = await self._store.fetch("audit", *asked)
        else:
            rows = await self._store.fetch("audit_of_task", *asked, request.task)
        page = rows[: request.limit]
        return AuditPage(
            entries=[_entry(row) for row in page],
            cursor=_cursor(page[-1]) if page else request.after,
            more=len(rows) > len(page),
        )


def _entry(row: asyncpg.Record) -> AuditEntry:
    return AuditEntry(
        at=row["at"],
        task=row["task_id"] if row["task_id"].int else None,
        step=row["step"],
        kind=row["kind"],
        who=row["who"],
        what=row["what"],
        reason=row["reason"],
        data=orjson.loads(row["data"]),
    )


def _cursor(row: asyncpg.Record) -> str:
    return f"{row['at'].isoformat()} {row['task_id']} {row['id']}"


def _read(cursor: str) -> tuple[datetime, UUID, str]:
    try:
        at, task, entry = cursor.split(" ", 2)
        moment = datetime.fromisoformat(at)
        if moment.tzinfo is None or "\0" in entry:
            raise ValueError(cursor)
        return moment, UUID(task), entry
    except ValueError as error:
        raise Refusal("after: not a cursor that this API gave", 422) from error
