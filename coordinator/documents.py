"""What the API can do with collections and documents: requests in, views out."""

from __future__ import annotations

from collections.abc import Callable

import asyncpg
import orjson
from headway.agents.document_views import (
    CollectionRequest,
    CollectionView,
    Document,
    DocumentChange,
    DocumentChanges,
    DocumentChangesRequest,
    DocumentDelete,
    DocumentGet,
    DocumentHistory,
    DocumentHistoryRequest,
    DocumentList,
    DocumentPage,
    DocumentPut,
    DocumentRow,
    DocumentVersion,
    WriteOutcome,
)
from headway.coordinator.authors import Authors
from headway.coordinator.caller import Caller
from headway.coordinator.document_writes import DocumentWrites
from headway.coordinator.documenting import Write, body_of, unknown_collection, unknown_document
from headway.coordinator.errors import Refusal
from headway.coordinator.rulebook import Rulebook
from headway.coordinator.serving import Serve, typed, typed_by
from headway.coordinator.store import Store


class Documents:
    """Reads from the store; writes many at a time."""

    def __init__(
        self, store: Store, publish: Callable[[str, bytes], None], clock: Callable[[], int]
    ) -> None:
        """`publish` as for DocumentWrites; `clock` gives ms."""
        self._store = store
        self._clock = clock
        self._authors = Authors(store.read)
        self._rulebook = Rulebook(store)
        self._writes = DocumentWrites(store, self._rulebook, publish, clock)

    def operations(self) -> dict[str, Serve]:
        """For people, and for agents' workers."""
        return {
            "document.collection": typed_by(CollectionRequest, CollectionView, self.collection),
            "document.get": typed(DocumentGet, Document, self.get),
            "document.put": typed_by(DocumentPut, WriteOutcome, self.put),
            "document.delete": typed_by(DocumentDelete, WriteOutcome, self.delete),
            "document.list": typed(DocumentList, DocumentPage, self.list),
            "document.history": typed(DocumentHistoryRequest, DocumentHistory, self.history),
            "document.changes": typed(DocumentChangesRequest, DocumentChanges, self.changes),
        }

    async def collection(self, request: CollectionRequest, caller: Caller) -> CollectionView:
        """Register a collection. Only people may change the rules of one that is there."""
        return await self._rulebook.register(request, self._clock(), change=not caller.agent)

    async def put(self, request: DocumentPut, caller: Caller) -> WriteOutcome:
        await self._authors.check(caller, request.task, request.step)
        fields = dict(request)
        value = fields.pop("body")
        return await self._writes.write(Write(**fields, body=body_of(value), value=value))

    async def delete(self, request: DocumentDelete, caller: Caller) -> WriteOutcome:
        await self._authors.check(caller, request.task, request.step)
        return await self._writes.write(Write(**dict(request)))

    async def get(self, request: DocumentGet) -> Document:
        collection, key, version = request.collection, request.key, request.version
        if version is None:
            rows = await self._store.fetch("document", collection, key)
        else:
            rows = await self._store.fetch("document_version", collection, key, version)
        if not rows:
            await self._check_collection(collection)
            if version is not None:
                raise Refusal(
                    f"document {key!r} of collection {collection!r} has no version {version}", 404
                )
        if not rows or rows[0]["body"] is None:
            raise unknown_document(collection, key, rows[0]["version"] if rows else 0)
        row = rows[0]
        return Document(
            collection=collection,
            key=key,
            version=row["version"],
            body=orjson.loads(row["body"]),
            digest=row["digest"],
            at=row["at"],
        )

    async def list(self, request: DocumentList) -> DocumentPage:
        rows = await self._store.fetch(
            "list_documents", request.collection, request.prefix, request.after, request.limit + 1
        )
        if not rows:
            await self._check_collection(request.collection)
        page = [
            DocumentRow(key=row["key"], version=row["version"], digest=row["digest"], at=row["at"])
            for row in rows[: request.limit]
        ]
        more = len(rows) > request.limit
        return DocumentPage(documents=page, after=page[-1].key if more else None)

    async def history(self, request: DocumentHistoryRequest) -> DocumentHistory:
        rows = await self._store.fetch(
            "document_history", request.collection, request.key, request.after, request.limit + 1
        )
        if not rows and request.after == 0:
            await self._check_collection(request.collection)
            raise unknown_document(request.collection, request.key, 0)
        return DocumentHistory(
            versions=[_version(row) for row in rows[: request.limit]],
            more=len(rows) > request.limit,
        )

    async def changes(self, request: DocumentChangesRequest) -> DocumentChanges:
        collection, after, limit = request.collection, request.after, request.limit
        if request.key is None:
            rows = await self._store.fetch("changes_of_collection", collection, after, limit + 1)
        else:
            rows = await self._store.fetch("changes_of_document", collection, after, request.key)
        if not rows:
            raise unknown_collection(collection)
        changes = [_change(collection, row) for row in rows[:limit] if row["key"] is not None]
        return DocumentChanges(changes=changes, newest=rows[0]["newest"], more=len(rows) > limit)

    async def _check_collection(self, name: str) -> None:
        """Refusal (404) if there is no such collection."""
        if not await self._store.fetch("newest_definitions", [name]):
            raise unknown_collection(name)


def _version(row: asyncpg.Record) -> DocumentVersion:
    return DocumentVersion(
        version=row["version"],
        deleted=row["body"] is None,
        body=None if row["body"] is None else orjson.loads(row["body"]),
        digest=row["digest"],
        at=row["at"],
        operation=row["operation"],
        by=row["by"],
        task=row["task"],
        step=row["step"],
    )


def _change(collection: str, row: asyncpg.Record) -> DocumentChange:
    return DocumentChange(
        collection=collection,
        key=row["key"],
        version=row["version"],
        revision=row["revision"],
        deleted=row["body"] is None,
        body=None if row["body"] is None else orjson.loads(row["body"]),
        digest=row["digest"],
        at=row["at"],
    )
