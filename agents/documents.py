"""Documents: shared state that agents read and write under version checks.

    docs = client.documents
    stages = Transitions(field="status", initial=["new"], legal={"new": ["paid"], "paid": ["sent"]})
    await docs.collection("orders", transitions=stages)
    await docs.put("orders", "A-17", {"status": "new", "total": 5}, expected=0)
    await docs.update("orders", "A-17", lambda order: {**order, "status": "paid"})

What always holds: a write that names a version goes through only if that version is still the
newest, and a write that is asked for again with its operation is carried out once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar
from uuid import UUID, uuid4

import orjson
from headway.agents import plainjson
from headway.agents.api import NOT_UNDERSTOOD, TIMEOUT_S, Api, made
from headway.agents.connection import Connection
from headway.agents.document_views import (
    BODY_MAX_BYTES,
    VERSION_CONFLICT,
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
    DocumentVersion,
    Transitions,
    WriteOutcome,
    Written,
    too_large,
)
from headway.agents.errors import Conflict, InvalidInput, NotFound, Refused, Unavailable
from headway.agents.news import news_on, wait_for
from headway.agents.signatures import ANYTHING
from headway.agents.subjects import document_subject, documents_of
from pydantic import BaseModel

UPDATE_TRIES_MAX = 64
PAUSE_FIRST_S = 0.01  # at most, between two tries of an update; the next ones may be twice as long
PAUSE_MAX_S = 0.5
POLL_S = 1.0

M = TypeVar("M", bound=BaseModel)


class VersionConflict(Conflict):
    """Another version is the newest than the one that a write expected.

    `current_version` is 0 if there is no document, `current_digest` is its body's.
    """

    def __init__(self, reason: str, *, current_version: int, current_digest: str) -> None:
        super().__init__(reason, code=409, kind=VERSION_CONFLICT)
        self.current_version = current_version
        self.current_digest = current_digest


class Documents(Api):
    """What can be done with documents. `by`, or `task` and `step`, say in their history who did it.

    All raise InvalidInput for what cannot be asked or does not fit the collection's schema,
    NotFound where there is no such collection or document, Unavailable if nobody answers.

    `expected` is the version that a write replaces; 0: there must be no document; None: whatever
    there is. `operation` names one write to one document: asked for again under the same, after a
    crash perhaps, it is answered as the first time and not carried out again.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        timeout: float = TIMEOUT_S,
        agent: str = "",
        token: str = "",
        by: str = "",
        task: UUID | None = None,
        step: str = "",
    ) -> None:
        super().__init__(connection, timeout=timeout, agent=agent, token=token)
        self._author = {"by": by, "task": task, "step": step}

    async def collection(
        self,
        name: str,
        *,
        schema: dict[str, Any] | None = None,
        transitions: Transitions | None = None,
    ) -> CollectionView:
        """Register a collection, its JSON Schema and which states may follow which; again is
        harmless. Other rules than before make a new version of them, for what is written then."""
        request = made(CollectionRequest, name=name, body_schema=schema, transitions=transitions)
        return await self.ask("document.collection", request, CollectionView)

    async def get(self, collection: str, key: str, *, version: int | None = None) -> Document:
        """A document as it is, or as it was at a version."""
        request = made(DocumentGet, collection=collection, key=key, version=version)
        return await self.ask("document.get", request, Document)

    async def put(
        self,
        collection: str,
        key: str,
        body: Any,
        *,
        expected: int | None,
        operation: UUID | None = None,
    ) -> Written:
        """Write the next version of a document, or its first.

        `body` is JSON of at most BODY_MAX_BYTES, or a model or dataclass that becomes it. Raises
        VersionConflict, or Conflict of kind "illegal-transition".
        """
        return await self._put(collection, key, _encode(body), expected, operation)

    async def delete(
        self, collection: str, key: str, *, expected: int | None, operation: UUID | None = None
    ) -> Written:
        """Delete a document. Its history stays, and counts on if the key is used again."""
        request = made(DocumentDelete, **self._write(collection, key, expected, operation))
        return _written(await self.ask("document.delete", request, WriteOutcome))

    async def update(
        self,
        collection: str,
        key: str,
        change: Callable[[Any], Any],
        *,
        operation: UUID | None = None,
    ) -> Document:
        """Read a document, have `change` make its next body from its body, and write that; again,
        from the newest body, while others come before. So no update is lost.

        `change` gets None if there is no document. It may be called many times, and its effects
        beside its result are not undone. Raises VersionConflict after UPDATE_TRIES_MAX tries.
        """
        operation = operation or uuid4()
        current: VersionConflict | None = None
        for number in range(UPDATE_TRIES_MAX):
            before = await self._find(collection, key)
            encoded = _encode(change(None if before is None else before.body))
            expected = 0 if before is None else before.version
            try:
                written = await self._put(collection, key, encoded, expected, operation)
            except VersionConflict as conflict:
                current = conflict
                pause_s = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2**number)
                await asyncio.sleep(random.uniform(0, pause_s))  # noqa: S311 - jitter, not secrets
                continue
            if written.repeated:
                return await self.get(collection, key, version=written.version)
            return Document(
                collection=collection,
                key=key,
                version=written.version,
                body=orjson.loads(encoded),
                digest=written.digest,
                at=written.at,
            )
        assert current is not None
        raise VersionConflict(
            f"document {key!r} of collection {collection!r} was changed by others during each of "
            f"{UPDATE_TRIES_MAX} tries to update it: try again later, or let fewer write to it",
            current_version=current.current_version,
            current_digest=current.current_digest,
        )

    async def history(self, collection: str, key: str) -> Sequence[DocumentVersion]:
        """All versions of a document, oldest first."""
        versions: list[DocumentVersion] = []
        while True:
            after = versions[-1].version if versions else 0
            request = made(DocumentHistoryRequest, collection=collection, key=key, after=after)
            page = await self.ask("document.history", request, DocumentHistory)
            versions += page.versions
            if not page.more:
                return versions

    async def watch(self, collection: str, key: str | None = None) -> AsyncIterator[DocumentChange]:
        """Each document of a collection, or one of them, as it is now and after each change.

        No version comes twice, or after a newer one of its document; changes that follow each other
        closely may come as one. Rides out coordinators and servers that are away.
        """
        fields = {"collection": collection, "key": key}
        after = made(DocumentChangesRequest, **fields).after
        subject = documents_of(collection) if key is None else document_subject(collection, key)
        began: int | None = None
        async with news_on(self.connection.wire, subject) as news:
            while True:
                news.clear()
                request = made(DocumentChangesRequest, **fields, after=after)
                try:
                    page = await self.ask("document.changes", request, DocumentChanges)
                except Unavailable:
                    await wait_for(news, POLL_S)
                    continue
                began = page.newest if began is None else began
                for change in page.changes:
                    after = change.revision
                    if not change.deleted or change.revision > began:
                        yield change
                if not page.more:
                    await wait_for(news, POLL_S)

    async def list(
        self, collection: str, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> DocumentPage:
        """Keys that begin with `prefix`, a page at a time, in the order of their UTF-8 bytes."""
        fields: dict[str, Any] = {} if limit is None else {"limit": limit}
        request = made(DocumentList, collection=collection, prefix=prefix, after=after, **fields)
        return await self.ask("document.list", request, DocumentPage)

    async def _find(self, collection: str, key: str) -> Document | None:
        try:
            return await self.get(collection, key)
        except NotFound:
            return None

    async def _put(
        self,
        collection: str,
        key: str,
        encoded: bytes,
        expected: int | None,
        operation: UUID | None,
    ) -> Written:
        write = self._write(collection, key, expected, operation)
        request = made(DocumentPut, **write, body=None).model_dump(mode="json")
        body = orjson.dumps({**request, "body": orjson.Fragment(encoded)})
        return _written(await self.ask("document.put", body, WriteOutcome))

    def _write(
        self, collection: str, key: str, expected: int | None, operation: UUID | None
    ) -> dict[str, Any]:
        """What all writes say. An operation of its own lets a write be asked for until somebody
        answers."""
        return {
            "collection": collection,
            "key": key,
            "expected": expected,
            "operation": operation or uuid4(),
            **self._author,
        }


def _written(outcome: WriteOutcome) -> Written:
    if outcome.written is not None:
        return outcome.written
    conflict = outcome.conflict
    if conflict is None:
        raise Refused(
            "the coordinator says neither what was written nor why not", code=NOT_UNDERSTOOD
        )
    raise VersionConflict(
        conflict.detail,
        current_version=conflict.current_version,
        current_digest=conflict.current_digest,
    )


def _encode(body: Any) -> bytes:
    try:
        encoded = plainjson.encode(ANYTHING.dump_python(body, mode="json"), made_of=body)
    except Exception as error:
        raise InvalidInput(
            f"the document cannot be written as JSON: {type(error).__name__}: {error}"
        ) from error
    if len(encoded) > BODY_MAX_BYTES:
        raise InvalidInput(too_large(len(encoded)))
    return encoded
