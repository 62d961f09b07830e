"""Statements of collections and their documents, as `documents.sql` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_tables import (
    CollectionRow,
    DocumentRow,
    SagaRow,
    Tables,
    reads,
    rows_of,
    writes,
)
from simulation.store_values import Row, moment


@writes
def register_collection(tables: Tables, name: str, digest: str, body: bytes, at: int) -> list[Row]:
    v.text(name, digest)
    v.stored_json(body)
    v.bigint(at)
    collection = tables.collections.setdefault(name, CollectionRow(0, "", 0))
    if collection.version == 0 or collection.digest != digest:
        collection.version, collection.digest = collection.version + 1, digest
        collection.definitions.append(SagaRow(digest, body, at))
    newest = collection.definitions[-1]
    return [Row(version=collection.version, registered_at=moment(newest.registered_at))]


@reads
def newest_definitions(tables: Tables, names: Sequence[str]) -> list[Row]:
    v.text(*names)
    found = (
        tables.collections[each] for each in dict.fromkeys(names) if each in tables.collections
    )
    return [Row(version=each.version, body=each.definitions[-1].body) for each in found]


@reads
def documents_before_writes(tables: Tables, *columns: Any) -> list[Row]:
    wanted, repeated = rows_of(*columns[:2]), rows_of(*columns[2:])
    v.text(*columns[0], *columns[1], *columns[2], *columns[3])
    v.uuid(*columns[4])
    answer = []
    for name, key in wanted:
        collection, document = tables.collections.get(name), _newest(tables, name, key)
        answer.append(
            Row(
                collection=name,
                key=key,
                operation=None,
                definition=collection and collection.version,
                version=document and document.version,
                body=document and document.body,
                digest=document and document.digest,
                at=document and moment(document.at),
            )
        )
    for name, key, operation in repeated:
        for version in tables.documents.get((name, key), ()):
            if version.operation == operation:
                answer.append(
                    Row(
                        collection=name,
                        key=key,
                        operation=operation,
                        definition=version.definition,
                        version=version.version,
                        body=None,
                        digest=version.digest,
                        at=moment(version.at),
                    )
                )
    return answer


@writes
def write_documents(tables: Tables, *columns: Any) -> list[Row]:
    checked, documents, at = rows_of(*columns[:2]), rows_of(*columns[2:12]), columns[12]
    v.bigint(at)
    for row in documents:
        _check(row)
    locked = {
        name: tables.collections[name]
        for name, version in checked
        if name in tables.collections and tables.collections[name].version == version
    }
    standing = [row for row in documents if row[0] in locked]
    written = [row for row in standing if _stands(tables, row)]
    _check_constraints(tables, written)
    revisions = {name: collection.revision for name, collection in locked.items()}
    for name, *_ in standing:
        locked[name].revision += 1
    for row in standing:
        revisions[row[0]] += 1
        if row in written:
            name, key, _, version, body, digest, operation, by, task, step = row
            kept = tables.documents.setdefault((name, key), [])
            change = (version, revisions[name], locked[name].version, body, digest, at)
            kept.append(DocumentRow(*change, operation, by, task, step))
    return [Row(collection=row[0], key=row[1]) for row in written]


@reads
def document(tables: Tables, collection: str, key: str) -> list[Row]:
    v.text(collection, key)
    newest = _newest(tables, collection, key)
    return [] if newest is None else [_content(newest)]


@reads
def document_version(tables: Tables, collection: str, key: str, version: int) -> list[Row]:
    v.text(collection, key)
    v.integer(version)
    versions = tables.documents.get((collection, key), ())
    return [_content(each) for each in versions if each.version == version]


@reads
def list_documents(
    tables: Tables, collection: str, prefix: str, after: str, limit: int
) -> list[Row]:
    v.text(collection, prefix, after)
    v.bigint(limit)
    keys = [key for name, key in tables.documents if name == collection]
    newest = [
        (key, tables.documents[collection, key][-1])
        for key in sorted(keys, key=str.encode)
        if key.startswith(prefix) and key.encode() > after.encode()
    ]
    there = [(key, each) for key, each in newest if each.body is not None]
    return [
        Row(key=key, version=each.version, digest=each.digest, at=moment(each.at))
        for key, each in there[:limit]
    ]


@reads
def document_history(
    tables: Tables, collection: str, key: str, after: int, limit: int
) -> list[Row]:
    v.text(collection, key)
    v.integer(after)
    v.bigint(limit)
    found = [each for each in tables.documents.get((collection, key), ()) if each.version > after]
    return [
        Row(
            **_content(each),
            operation=each.operation,
            by=each.by,
            task=each.task,
            step=each.step,
        )
        for each in found[:limit]
    ]


@reads
def changes_of_collection(tables: Tables, name: str, after: int, limit: int) -> list[Row]:
    v.text(name)
    v.bigint(after, limit)
    found = [
        (versions[-1].revision, key)
        for (collection, key), versions in tables.documents.items()
        if collection == name and versions[-1].revision > after
    ]
    return _changes(tables, name, [key for _, key in sorted(found)[:limit]])


@reads
def changes_of_document(tables: Tables, name: str, after: int, key: str) -> list[Row]:
    v.text(name, key)
    v.bigint(after)
    newest = _newest(tables, name, key)
    changed = newest is not None and newest.revision > after
    return _changes(tables, name, [key] if changed else [])


def _changes(tables: Tables, name: str, keys: Sequence[str]) -> list[Row]:
    if name not in tables.collections:
        return []
    newest = tables.collections[name].revision
    if not keys:
        nothing = dict.fromkeys(("key", "version", "revision", "body", "digest", "at"))
        return [Row(newest=newest, **nothing)]
    found = [(key, tables.documents[name, key][-1]) for key in keys]
    return [
        Row(
            newest=newest,
            key=key,
            version=each.version,
            revision=each.revision,
            body=each.body,
            digest=each.digest,
            at=moment(each.at),
        )
        for key, each in found
    ]


def _check(row: tuple[Any, ...]) -> None:
    collection, key, expected, version, body, digest, operation, by, task, step = row
    v.text(collection, key, digest, by, step)
    v.integer(expected, version)
    v.stored_json(body)
    v.uuid(operation, task)


def _stands(tables: Tables, row: tuple[Any, ...]) -> bool:
    newest = _newest(tables, row[0], row[1])
    return row[2] == (0 if newest is None else newest.version)


def _check_constraints(tables: Tables, written: Sequence[tuple[Any, ...]]) -> None:
    for name, key, _, version, _, _, operation, *_ in written:
        kept = tables.documents.get((name, key), ())
        if version <= 0:
            raise StoreRefused("CheckViolationError: documents_version_check")
        for each in kept:
            if each.version == version or operation not in (None, _not(each.operation, operation)):
                raise StoreRefused("UniqueViolationError: this version was written before")


def _not(kept: UUID | None, operation: UUID | None) -> UUID | None:
    return None if kept == operation else operation


def _newest(tables: Tables, collection: str, key: str) -> DocumentRow | None:
    versions = tables.documents.get((collection, key))
    return versions[-1] if versions else None


def _content(row: DocumentRow) -> Row:
    return Row(version=row.version, body=row.body, digest=row.digest, at=moment(row.at))
