"""Statements of tasks, their history and their sagas, as `queries.sql` has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_tables import (
    ENDED,
    TIMELESS,
    EventRow,
    SagaRow,
    Tables,
    TaskRow,
    reads,
    rows_of,
    writes,
)
from simulation.store_values import Row, moment

COMMITS = ("commit_batch", "commit_change", "commit_new")
STATUSES = TIMELESS | {"running", "compensating"}
_LAST_ID = UUID(int=2**128 - 1)


@reads
def load_tasks(tables: Tables, ids: Sequence[UUID]) -> list[Row]:
    v.uuid(*ids)
    found = (tables.tasks[each] for each in dict.fromkeys(ids) if each in tables.tasks)
    return [
        Row(
            id=task.id,
            saga=task.saga,
            saga_version=task.saga_version,
            status=task.status,
            version=task.version,
            state=task.state,
            input=task.input,
            input_digest=task.input_digest,
            created_at=moment(task.created_at),
            updated_at=moment(task.updated_at),
            due_at=moment(task.due),
            attributes=orjson.dumps(task.attributes).decode(),
            manifest=task.manifest,
            parent=task.parent,
            owner=task.owner,
            priority=task.priority,
            trace=task.trace,
        )
        for task in found
    ]


@reads
def owner_of_task(tables: Tables, task: UUID) -> list[Row]:
    v.uuid(task)
    return [Row(owner=tables.tasks[task].owner)] if task in tables.tasks else []


@writes
def commit_batch(tables: Tables, *columns: Any) -> list[Row]:
    columns = tuple(v.array(column) if isinstance(column, str) else column for column in columns)
    changed, new = rows_of(*columns[:9]), rows_of(*columns[9:27])
    history, owed = rows_of(*columns[27:32]), rows_of(*columns[32:35])
    committed = _commit(tables, changed, new, history)
    tables.span_debts += [debt for debt in owed if debt[0] in committed]
    some_lost = len(committed) < len(changed) + len(new)
    return [Row(went_through=len(committed), ids=(committed or None) if some_lost else None)]


@writes
def commit_change(tables: Tables, *values: Any) -> list[Row]:
    row = tuple(values[:9])
    history = [(row[0], *event) for event in rows_of(*values[9:])]
    return [Row(went_through=len(_commit(tables, [row], [], history)))]


@writes
def commit_new(tables: Tables, *values: Any) -> list[Row]:
    row = tuple(values[:18])
    history = [(row[0], *event) for event in rows_of(*values[18:])]
    return [Row(went_through=len(_commit(tables, [], [row], history)))]


def _commit(
    tables: Tables,
    changed: Sequence[tuple[Any, ...]],
    new: Sequence[tuple[Any, ...]],
    history: Sequence[tuple[Any, ...]],
) -> list[UUID]:
    """Which tasks went through."""
    for row in changed:
        _check_changed(row)
    for row in new:
        _check_new(row)
    for task, version, kind, at, data in history:
        _check_event(task, version, kind, at, data)
    updated = [row for row in changed if _stands(tables, row[0], row[1])]
    inserted = list(_insertable(tables, new))
    committed = [row[0] for row in (*updated, *inserted)]
    appended = [row for row in history if row[0] in committed]
    _check_constraints(tables, updated, inserted, appended)
    for task, _, version, status, state, due, at, waits, saga_version in updated:
        row = tables.tasks[task]
        row.version, row.status, row.state, row.due = version, str(status), state, due
        row.updated_at, row.waits, row.saga_version = at, waits, saga_version
    for each in inserted:
        tables.tasks[each[0]] = _task_row(each)
    for task, *event in appended:
        tables.history.setdefault(task, []).append(EventRow(*event))
    return committed


@writes
def claim_due(tables: Tables, now: int, lease_ms: int, limit: int) -> list[Row]:
    v.bigint(now, lease_ms, limit)
    ripe = [task for task in tables.tasks.values() if task.due is not None and task.due <= now]
    ripe.sort(key=lambda task: (task.due, task.id))
    for task in ripe[:limit]:
        task.due = now + lease_ms
    return [Row(id=task.id) for task in ripe[:limit]]


@writes
def postpone(
    tables: Tables, ids: Sequence[UUID], versions: Sequence[int], dues: Sequence[int]
) -> list[Row]:
    v.uuid(*ids)
    v.integer(*versions)
    v.bigint(*dues)
    for each, version, due in rows_of(ids, versions, dues):
        task = tables.tasks.get(each)
        if task is not None and task.version == version and task.due is not None:
            task.due = due
    return []


@reads
def open_tasks(tables: Tables, after: UUID, limit: int, due_before: int | None) -> list[Row]:
    v.uuid(after)
    v.bigint(limit, due_before)
    found = sorted(
        task.id
        for task in tables.tasks.values()
        if task.id > after
        and task.status not in ENDED
        and task.due is not None
        and (due_before is None or task.due <= due_before)
    )
    return [Row(id=each) for each in found[:limit]]


@reads
def history(tables: Tables, task: UUID, after: int, limit: int) -> list[Row]:
    v.uuid(task)
    v.integer(after)
    v.bigint(limit)
    found = [event for event in _history(tables, task) if event.version > after]
    return [
        Row(version=event.version, type=event.type, at=moment(event.at), data=event.data)
        for event in found[:limit]
    ]


@reads
def list_tasks(
    tables: Tables,
    before: UUID | None,
    statuses: Sequence[str],
    saga: str | None,
    attributes: str,
    created_after: datetime | None,
    created_before: datetime | None,
    limit: int,
    owner: str | None,
    sagas: Sequence[str] | None,
    versions: Sequence[int] | None,
) -> list[Row]:
    v.uuid(before)
    v.text(*statuses, saga, owner, *(sagas or ()))
    v.bigint(limit)
    v.integer(*(versions or ()))
    named = set(zip(sagas or (), versions or (), strict=True))
    wanted, since, until = v.binary_json(attributes), v.ms(created_after), v.ms(created_before)
    found = [
        task
        for task in _newest_first(tables, before)
        if (not statuses or task.status in statuses)
        and saga in (None, task.saga)
        and v.contains(task.attributes, wanted)
        and (since is None or task.created_at >= since)
        and (until is None or task.created_at < until)
        and owner in (None, task.owner)
        and (sagas is None or (task.saga, task.saga_version) in named)
    ]
    return [_listed(task) for task in found[:limit]]


@reads
def count_by_saga(tables: Tables) -> list[Row]:
    counts = Counter((task.saga, task.saga_version, task.status) for task in tables.tasks.values())
    return [
        Row(saga=saga, saga_version=version, status=status, tasks=tasks)
        for (saga, version, status), tasks in counts.items()
    ]


@reads
def list_open_tasks(
    tables: Tables, before: UUID | None, statuses: Sequence[str], *others: Any
) -> list[Row]:
    still_open = [status for status in statuses if status not in ENDED]
    return list_tasks(tables, before, still_open, *others) if still_open else []


@reads
def list_waiting_tasks(
    tables: Tables,
    before: UUID | None,
    saga: str | None,
    limit: int,
    owner: str | None,
    task: UUID | None,
) -> list[Row]:
    v.uuid(before, task)
    v.text(saga, owner)
    v.bigint(limit)
    found = [
        Row(id=each.id)
        for each in _newest_first(tables, before)
        if each.waits
        and saga in (None, each.saga)
        and owner in (None, each.owner)
        and task in (None, each.id)
    ]
    return found[:limit]


@reads
def last_resumptions(tables: Tables, tasks: Sequence[UUID]) -> list[Row]:
    v.uuid(*tasks)
    found = (
        (task, [each.version for each in _history(tables, task) if each.type == "TaskResumed"])
        for task in dict.fromkeys(tasks)
    )
    return [Row(task_id=task, version=max(versions)) for task, versions in found if versions]


@reads
def latest_sagas(tables: Tables, names: Sequence[str]) -> list[Row]:
    v.text(*names)
    newest: dict[str, int] = {}
    for name, version in tables.sagas:
        if name in names:
            newest[name] = max(version, newest.get(name, 0))
    return [Row(name=name, version=version) for name, version in newest.items()]


@reads
def load_sagas(tables: Tables, names: Sequence[str], versions: Sequence[int]) -> list[Row]:
    v.text(*names)
    v.integer(*versions)
    return [
        _saga(*key, tables.sagas[key]) for key in rows_of(names, versions) if key in tables.sagas
    ]


@writes
def register_saga(
    tables: Tables, name: str, version: int, digest: str, body: bytes, at: int
) -> list[Row]:
    v.text(name, digest)
    v.integer(version)
    v.stored_json(body)
    v.bigint(at)
    if version <= 0:
        raise StoreRefused("CheckViolationError: sagas_version_check")
    if body is None:
        raise StoreRefused("NotNullViolationError: sagas.body")
    kept = tables.sagas.setdefault((name, version), SagaRow(digest, body, at))
    return [Row(digest=kept.digest, registered_at=moment(kept.registered_at))]


@reads
def list_sagas(tables: Tables) -> list[Row]:
    return [_saga(*key, tables.sagas[key]) for key in sorted(tables.sagas)]


def _check_changed(row: tuple[Any, ...]) -> None:
    task, expected, version, status, state, due, at, _, saga_version = row
    v.uuid(task)
    v.integer(expected, version, saga_version)
    v.text(status)
    v.stored_json(state)
    v.bigint(due, at)


def _check_new(row: tuple[Any, ...]) -> None:
    task, saga, saga_version, version, status, state, due, at, body, _, attributes, *rest = row
    v.uuid(task)
    v.text(saga, status, rest[4], rest[6])
    v.integer(saga_version, version)
    v.bigint(due, at)
    v.stored_json(state, body, rest[1], rest[2])
    v.binary_json(attributes)


def _check_event(task: UUID, version: int, kind: str, at: int, data: bytes) -> None:
    v.uuid(task)
    v.integer(version)
    v.text(kind)
    v.bigint(at)
    v.stored_json(data)


def _stands(tables: Tables, task: UUID, expected: int) -> bool:
    return task in tables.tasks and tables.tasks[task].version == expected


def _insertable(tables: Tables, new: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """The new tasks that are not there yet; of a saga that must be the newest, if it is."""
    seen: dict[UUID, None] = {}
    for row in sorted(new, key=lambda each: each[0]):
        task, saga, saga_version, *_ = row
        must_be_newest = row[11]
        newer = any(name == saga and other > saga_version for name, other in tables.sagas)
        if task in tables.tasks or task in seen or (must_be_newest and newer):
            continue
        seen[task] = None
        yield row


def _check_constraints(
    tables: Tables,
    updated: Iterable[tuple[Any, ...]],
    inserted: Iterable[tuple[Any, ...]],
    appended: Iterable[tuple[Any, ...]],
) -> None:
    standing = [(row[2], row[3], row[5]) for row in updated]
    standing += [(row[3], row[4], row[6]) for row in inserted]
    for version, status, due in standing:
        if version <= 0 or status not in STATUSES or (due is None) != (status in TIMELESS):
            raise StoreRefused("CheckViolationError: a task violates a check constraint")
    wanted = [(tables.tasks[row[0]].saga, row[8]) for row in updated]
    for saga in [*wanted, *((row[1], row[2]) for row in inserted)]:
        if saga not in tables.sagas:
            raise StoreRefused("ForeignKeyViolationError: there is no such saga")
    seen: dict[tuple[UUID, int], None] = {}
    for task, version, *_ in appended:
        kept = tables.history.get(task, ())
        if (task, version) in seen or any(event.version == version for event in kept):
            raise StoreRefused("UniqueViolationError: the history has this version")
        seen[task, version] = None


def _task_row(row: tuple[Any, ...]) -> TaskRow:
    task, saga, saga_version, version, status, state, due, at, body, digest, *rest = row
    attributes, _, manifest, parent, waits, owner, priority, trace = rest
    return TaskRow(
        id=task,
        saga=saga,
        saga_version=saga_version,
        version=version,
        status=str(status),
        state=state,
        due=due,
        created_at=at,
        updated_at=at,
        input=body,
        input_digest=digest,
        attributes=v.binary_json(attributes),
        manifest=manifest,
        parent=parent,
        waits=waits,
        owner=owner,
        priority=priority,
        trace=trace,
    )


def _history(tables: Tables, task: UUID) -> list[EventRow]:
    return sorted(tables.history.get(task, ()), key=lambda event: event.version)


def _newest_first(tables: Tables, before: UUID | None) -> list[TaskRow]:
    last = _LAST_ID if before is None else before
    found = [task for task in tables.tasks.values() if task.id < last]
    return sorted(found, key=lambda task: task.id, reverse=True)


def _listed(task: TaskRow) -> Row:
    return Row(
        id=task.id,
        saga=task.saga,
        saga_version=task.saga_version,
        status=task.status,
        version=task.version,
        reason=v.text_of(orjson.loads(task.state), "reason"),
        created_at=moment(task.created_at),
        updated_at=moment(task.updated_at),
        owner=task.owner,
    )


def _saga(name: str, version: int, row: SagaRow) -> Row:
    at = moment(row.registered_at)
    return Row(name=name, version=version, digest=row.digest, body=row.body, registered_at=at)
