"""Statements of journals, as `journal.sql` has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_tables import EntryRow, JournalRow, Place, Tables, reads, rows_of, writes
from simulation.store_values import Row, moment

KINDS = frozenset({"intent", "result", "failure", "checkpoint", "note", "void"})
PHASES = frozenset({"action", "compensation"})
_OF_HEADS = 20
_UNOPENED = dict.fromkeys(
    [
        *("epoch", "seq", "attempt", "command_epoch", "agent", "worker", "undoing"),
        *("resumed", "failures", "trail", "unsettled"),
    ]
)


@reads
def load_journals(
    tables: Tables, tasks: Sequence[UUID], steps: Sequence[str], phases: Sequence[str]
) -> list[Row]:
    v.uuid(*tasks)
    v.text(*steps, *phases)
    answer = []
    for number, place in enumerate(rows_of(tasks, steps, phases), 1):
        task = tables.tasks.get(place[0])
        if task is None:
            continue
        head = tables.journals.get(place)
        standing = _UNOPENED if head is None else {name: getattr(head, name) for name in _UNOPENED}
        used = _used(tables, task.id)
        answer.append(Row(place=number, **standing, manifest=task.manifest, **used))
    return answer


@writes
def commit_journals(tables: Tables, *columns: Any) -> list[Row]:
    at = columns[_OF_HEADS]
    wanted = rows_of(*columns[:_OF_HEADS])
    entries = rows_of(*columns[_OF_HEADS + 1 :])
    v.bigint(at)
    for row in wanted:
        _check_head(row)
    for row in entries:
        _check_entry(row)
    updated = [row for row in enumerate(wanted, 1) if _stands(tables, row[1])]
    inserted = list(_insertable(tables, wanted))
    through = dict.fromkeys(number for number, _ in (*updated, *inserted))
    appended = [row for row in entries if row[0] in through]
    _check_constraints(tables, [row for _, row in (*updated, *inserted)], appended)
    for _, row in updated:
        _move(tables, row)
    for _, row in inserted:
        tables.journals[row[:3]] = JournalRow(*row[6:17])
    for _, task, step, phase, *entry in appended:
        tables.entries.setdefault((task, step, phase), []).append(EntryRow(*entry, at))
    used = {number: _used(tables, wanted[number - 1][0]) for number in through}
    return [Row(place=number, **spent) for number, spent in used.items()]


@reads
def journal_page(
    tables: Tables, task: UUID, step: str, phase: str, after: int, limit: int, max_bytes: int
) -> list[Row]:
    _check_place((task, step, phase))
    v.integer(after)
    v.bigint(limit, max_bytes)
    found = [each for each in _entries(tables, (task, step, phase)) if each.seq > after][:limit]
    page, so_far = [], 0
    for entry in found:
        so_far += entry.bytes
        if so_far <= max_bytes or not page:
            page.append(_entry(entry, found=len(found)))
    return page


@reads
def journal_key(tables: Tables, task: UUID, step: str, phase: str, key: str) -> list[Row]:
    _check_place((task, step, phase))
    v.text(key)
    found = [each for each in _entries(tables, (task, step, phase)) if each.key == key]
    return [_entry(found[-1])] if found else []


@reads
def unsettled_intents(tables: Tables, tasks: Sequence[UUID]) -> list[Row]:
    v.uuid(*tasks)
    found = [
        (place, entry)
        for place, head in tables.journals.items()
        if place[0] in tasks
        for call in orjson.loads(head.unsettled).values()
        for entry in _entries(tables, place)
        if entry.seq == call["seq"]
    ]
    found.sort(key=lambda each: (each[0][0], each[1].at, each[0][1], each[1].seq))
    return [
        Row(
            task_id=place[0],
            step=place[1],
            phase=place[2],
            key=entry.key,
            tool=entry.tool,
            arguments_digest=orjson.loads(entry.meta).get("arguments_digest"),
            agent=entry.agent,
            at=moment(entry.at),
            data=entry.data,
        )
        for place, entry in found
    ]


@reads
def usage_of_task(tables: Tables, task: UUID) -> list[Row]:
    v.uuid(task)
    used = _used(tables, task)
    tokens = used["input_tokens"] + used["output_tokens"]
    return [Row(tokens=tokens, cost_usd=used["cost_usd"])]


def _check_place(place: Place) -> None:
    v.uuid(place[0])
    v.text(*place[1:])


def _check_head(row: tuple[Any, ...]) -> None:
    _check_place(row[:3])
    v.integer(row[3], row[4], *row[6:10], *row[13:15])
    v.text(*row[10:12])
    v.stored_json(*row[15:17])
    v.bigint(*row[17:19])


def _check_entry(row: tuple[Any, ...]) -> None:
    number, *place, epoch, agent, seq, kind, key, tool, meta, data, by, reason, size = row
    _check_place((place[0], place[1], place[2]))
    v.integer(number, epoch, seq, size)
    v.text(agent, kind, key, tool, by, reason)
    v.stored_json(meta, data)


def _stands(tables: Tables, row: tuple[Any, ...]) -> bool:
    """Whether a journal is where it was read: same epoch, same last entry, undone or not."""
    head = tables.journals.get(row[:3])
    return head is not None and (head.epoch, head.seq, head.undoing) == row[3:6]


def _insertable(
    tables: Tables, wanted: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Those that nobody had opened when they were read, and nobody has since."""
    seen: dict[Place, None] = {}
    for number, row in enumerate(wanted, 1):
        place = row[:3]
        if row[3] == 0 and place not in tables.journals and place not in seen:
            seen[place] = None
            yield number, row


def _check_constraints(
    tables: Tables, heads: Sequence[tuple[Any, ...]], entries: Sequence[tuple[Any, ...]]
) -> None:
    for row in heads:
        if row[2] not in PHASES or row[6] <= 0 or row[7] < 0:
            raise StoreRefused("CheckViolationError: a journal violates a check constraint")
        if row[0] not in tables.tasks:
            raise StoreRefused("ForeignKeyViolationError: there is no such task")
    for _, task, step, phase, _, _, seq, kind, *_ in entries:
        if kind not in KINDS:
            raise StoreRefused("CheckViolationError: journal_entries_kind_check")
        if any(each.seq == seq for each in tables.entries.get((task, step, phase), ())):
            raise StoreRefused("UniqueViolationError: the journal has this entry")


def _move(tables: Tables, row: tuple[Any, ...]) -> None:
    head = tables.journals[row[:3]]
    spent = head.input_tokens, head.output_tokens, head.cost_usd
    added = [before + more for before, more in zip(spent, row[17:20], strict=True)]
    tables.journals[row[:3]] = JournalRow(*row[6:17], *added)


def _used(tables: Tables, task: UUID) -> dict[str, Any]:
    """What the journals of a task have used in all."""
    heads = [head for place, head in tables.journals.items() if place[0] == task]
    return {
        "input_tokens": sum(head.input_tokens for head in heads),
        "output_tokens": sum(head.output_tokens for head in heads),
        "cost_usd": sum((head.cost_usd for head in heads), 0.0),
    }


def _entries(tables: Tables, place: Place) -> list[EntryRow]:
    return sorted(tables.entries.get(place, ()), key=lambda entry: entry.seq)


def _entry(entry: EntryRow, **more: Any) -> Row:
    return Row(
        seq=entry.seq,
        epoch=entry.epoch,
        kind=entry.kind,
        key=entry.key,
        tool=entry.tool,
        by=entry.by,
        reason=entry.reason,
        at=moment(entry.at),
        meta=entry.meta,
        data=entry.data,
        **more,
    )
