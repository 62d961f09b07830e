"""Writing documents: what waits is read, decided and committed together, in one statement.

Always holds: a version is only written after the one that it was decided on; nothing is answered,
and no news is told, before it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from headway.agents.document_views import WriteOutcome
from headway.agents.subjects import document_subject
from headway.coordinator.documenting import (
    NEVER,
    Decision,
    Done,
    Rules,
    Stored,
    Write,
    decide,
    written,
)
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.groupcommit import GroupCommit
from headway.coordinator.rulebook import Rulebook
from headway.coordinator.store import Store

Document = tuple[str, str]  # its collection and key
Answer = WriteOutcome | CoordinatorError


class _Found(NamedTuple):
    """What is stored of a document; `definition` is the newest version of its collection's."""

    definition: int | None
    stored: Stored


class DocumentWrites:
    def __init__(
        self,
        store: Store,
        rulebook: Rulebook,
        publish: Callable[[str, bytes], None],
        clock: Callable[[], int],
    ) -> None:
        """`publish` sends news to a subject; ConnectionError or ValueError if it cannot."""
        self._store = store
        self._rulebook = rulebook
        self._publish = publish
        self._clock = clock
        self._commits: GroupCommit[Write, WriteOutcome] = GroupCommit(
            self._commit, lambda write: (write.document,)
        )

    async def write(self, write: Write) -> WriteOutcome:
        """What came of a write, once that is committed. Refusal, or an error of the store."""
        return await self._commits.ask(write, len(write.body or b""))

    async def _commit(self, writes: Sequence[Write]) -> list[Answer]:
        """Commit writes, each to another document; those whose document a peer changed in the
        meantime are decided anew."""
        answers: dict[Document, Answer] = {}
        left = writes
        while left:
            answers |= await self._try(left)
            left = [write for write in left if write.document not in answers]
        return [answers[write.document] for write in writes]

    async def _try(self, writes: Sequence[Write]) -> dict[Document, Answer]:
        """The answers to those that went through or need not."""
        found, done = await self._read(writes)
        known = {name: each.definition for (name, _), each in found.items() if each.definition}
        rules = await self._rulebook.newest(known)
        decisions: dict[Document, Decision] = {}
        for write in writes:
            name = write.document
            decisions[name] = decide(
                rules.get(write.collection), found[name].stored, done.get(name), write
            )
        at = self._clock()
        changed = [
            (write, found[write.document].stored.version, following)
            for write in writes
            if isinstance(following := decisions[write.document], Stored)
        ]
        through = await self._write(rules, changed, at) if changed else set()
        answers: dict[Document, Answer] = {}
        for name, decision in decisions.items():
            if not isinstance(decision, Stored):
                answers[name] = decision
            elif name in through:
                answers[name] = written(Done(decision.version, decision.digest, at))
                self._announce(name, decision)
        return answers

    async def _read(
        self, writes: Sequence[Write]
    ) -> tuple[dict[Document, _Found], dict[Document, Done]]:
        """What is stored of the documents, and which of the writes were carried out before."""
        repeatable = [
            (*write.document, write.operation) for write in writes if write.operation is not None
        ]
        rows = await self._store.fetch(
            "documents_before_writes",
            *_columns([write.document for write in writes], 2),
            *_columns(repeatable, 3),
        )
        found: dict[Document, _Found] = {}
        done: dict[Document, Done] = {}
        for row in rows:
            name = row["collection"], row["key"]
            if row["operation"] is not None:
                at = round(row["at"].timestamp() * 1000)
                done[name] = Done(row["version"], row["digest"], at)
            elif row["version"] is None:
                found[name] = _Found(row["definition"], NEVER)
            else:
                stored = Stored(row["version"], row["body"], row["digest"])
                found[name] = _Found(row["definition"], stored)
        return found, done

    async def _write(
        self,
        rules: Mapping[str, Rules],
        changed: Sequence[tuple[Write, int, Stored]],
        at: int,
    ) -> set[Document]:
        """Commit each of `changed` whose document is still at the version read, which stands beside
        it; returns which ones went through."""
        checked = {write.collection: rules[write.collection].version for write, _, _ in changed}
        rows = await self._store.fetch(
            "write_documents",
            *_columns(list(checked.items()), 2),
            *_columns([_row(*each) for each in changed], 10),
            at,
        )
        return {(row["collection"], row["key"]) for row in rows}

    def _announce(self, name: Document, stored: Stored) -> None:
        """Tell whoever watches, without the body; lossy."""
        collection, key = name
        news = {
            "collection": collection,
            "key": key,
            "version": stored.version,
            "deleted": stored.body is None,
        }
        try:
            self._publish(document_subject(collection, key), orjson.dumps(news))
        except (ConnectionError, ValueError):
            return  # whoever watches looks again by and by


def _row(write: Write, expected: int, following: Stored) -> tuple[Any, ...]:
    return (
        *write.document,
        expected,
        *following,
        write.operation,
        write.by,
        write.task,
        write.step,
    )


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[]] * width
