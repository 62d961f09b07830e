"""Journals as they are kept: where each stands, and its entries; from and to their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import orjson
from headway.agents import plainjson
from headway.agents.entries import Entry, JournalSettle, NewEntry, Usage
from headway.agents.manifest import COST_MAX_USD, TOKENS_MAX, Manifest
from headway.agents.messages import INLINE_MAX_BYTES
from headway.coordinator.errors import Refusal
from headway.coordinator.literals import columns

WORDS_MAX_CHARS = 1_000  # of a digest, a reference, a worker's name

CALLS_END = frozenset({"result", "failure", "void"})
"""Kinds of entries that say how a call ended."""

_OF_CALLS = CALLS_END | {"intent"}
_IN_COLUMNS = {"kind", "key", "tool", "data"}
_SAID_AS = {"happened": "result", "did_not_happen": "void"}


class Row(NamedTuple):
    """An entry's own columns. `data` is its value as JSON; `meta` JSON of what has no column."""

    kind: str
    key: str
    tool: str
    meta: bytes = b"{}"
    data: bytes | None = None
    by: str = ""
    reason: str = ""


class Kept(NamedTuple):
    """An entry in its place."""

    seq: int
    epoch: int
    at: datetime
    row: Row


class Place(NamedTuple):
    """Which journal."""

    task: UUID
    step: str
    phase: str

    def __str__(self) -> str:
        return f"the {self.phase} of step {self.step!r}"


class Call(NamedTuple):
    """A call whose end is not known. `signature` is its part of the trail."""

    seq: int
    tool: str
    signature: str


class Spent(NamedTuple):
    """What model calls have cost."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def and_also(self, other: Spent | Usage | None) -> Spent:
        if other is None:
            return self
        return Spent(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


class Head(NamedTuple):
    """Where a journal stands.

    Attributes:
        epoch: of whoever may append; 0 while nobody has opened it.
        seq: of the last entry.
        attempt, command_epoch, agent, worker: who opened it last; no worker: nobody holds it.
        undoing: the step's compensation was begun; what is under way is still taken down, but
            nothing new may be begun.
        resumed: version of the task's history at its last resumption, as its opener knew.
        failures: of tools, in a row.
        trail: signatures of the last calls, oldest first.
        unsettled: the calls whose end is not known, by key.
    """

    epoch: int = 0
    seq: int = 0
    attempt: int = 0
    command_epoch: int = 0
    agent: str = ""
    worker: str = ""
    undoing: bool = False
    resumed: int = 0
    failures: int = 0
    trail: tuple[str, ...] = ()
    unsettled: Mapping[str, Call] = {}


UNOPENED = Head()


class Bounds(NamedTuple):
    """What a task may do, and what it has used."""

    manifest: Manifest | None = None
    spent: Spent = Spent()


class Change(NamedTuple):
    """A journal's next standing and the entries that lead to it, which cost `spent`."""

    place: Place
    before: Head
    after: Head
    rows: Sequence[Row] = ()
    spent: Spent = Spent()


def row_of(entry: NewEntry, number: int) -> Row:
    """How an entry, the `number`th of its request, is kept; Refusal names what does not fit."""
    where = f"entries.{number}"
    for field in ("key", "tool", "arguments_digest", "dataref", "datadigest"):
        check_words(f"{where}.{field}", getattr(entry, field))
    if entry.kind in _OF_CALLS and not entry.key:
        raise Refusal(f"{where}.key: a {entry.kind} needs the key of its call", 422)
    if entry.kind == "intent" and not (entry.tool and entry.arguments_digest):
        raise Refusal(f"{where}: an intent needs its tool and its arguments_digest", 422)
    if entry.dataref and not entry.datadigest:
        raise Refusal(f"{where}.dataref: it needs the datadigest of what it refers to", 422)
    _check_usage(f"{where}.usage", entry.usage)
    meta = entry.model_dump(exclude=_IN_COLUMNS, exclude_defaults=True)
    try:
        encoded = orjson.dumps(meta)
    except TypeError as error:
        raise Refusal(f"{where}: {error}", 422) from error
    return Row(entry.kind, entry.key, entry.tool, encoded, _value(f"{where}.data", entry.data))


def row_of_settlement(request: JournalSettle) -> Row:
    """How a person's word is kept; the tool is still to be told."""
    for field in ("by", "reason", "key"):
        check_words(field, getattr(request, field))
    kind, data, meta = _SAID_AS[request.outcome], None, {}
    if kind == "result":
        data = _value("result", request.result)
        body = orjson.dumps(request.result, option=orjson.OPT_SORT_KEYS)
        meta = {"datadigest": sha256(body).hexdigest(), "size": len(body)}
    return Row(kind, request.key, "", orjson.dumps(meta), data, request.by, request.reason)


def kept(record: asyncpg.Record) -> Kept:
    """An entry as it was read."""
    row = Row(*(record[column] for column in Row._fields))
    return Kept(record["seq"], record["epoch"], record["at"], row)


def entry_of(kept: Kept) -> Entry:
    """An entry for the wire."""
    row = kept.row
    return Entry(
        kind=row.kind,
        key=row.key,
        tool=row.tool,
        data=None if row.data is None else orjson.loads(row.data),
        by=row.by,
        reason=row.reason,
        seq=kept.seq,
        epoch=kept.epoch,
        at=kept.at,
        **orjson.loads(row.meta),
    )


def for_agents(entry: Entry) -> Entry:
    """An entry as its agent is told of it. Whose model was asked is for people: no agent needs it,
    and those of version 0.2 refuse a journal in which it stands."""
    if entry.usage is None or not (entry.usage.provider or entry.usage.model):
        return entry
    usage = entry.usage.model_copy(update={"provider": "", "model": ""})
    return entry.model_copy(update={"usage": usage})


def bounds_of(row: asyncpg.Record) -> Bounds:
    """What a task may do and has used, as it was read."""
    stored = row["manifest"]
    manifest = None if stored is None else Manifest.model_validate_json(stored)
    return Bounds(manifest, spent_of(row))


def spent_of(row: asyncpg.Record) -> Spent:
    """What a task has used in all, as it was read."""
    return Spent(row["input_tokens"], row["output_tokens"], row["cost_usd"])


def head_of(row: asyncpg.Record) -> Head:
    """Where a journal stands, as it was read."""
    unsettled = orjson.loads(row["unsettled"])
    return Head(
        row["epoch"],
        row["seq"],
        row["attempt"],
        row["command_epoch"],
        row["agent"],
        row["worker"],
        row["undoing"],
        row["resumed"],
        row["failures"],
        tuple(orjson.loads(row["trail"])),
        {key: Call(**call) for key, call in unsettled.items()},
    )


def commit_arrays(changes: Sequence[Change], at: int) -> list[Any]:
    """The arguments of `commit_journals`; `at` is ms since 1970."""
    heads = [(*change.place, *_standing(change), *change.spent) for change in changes]
    entries = [
        (
            *(place, *change.place, change.after.epoch, change.after.agent, seq),
            *(*row, len(row.data or b"")),
        )
        for place, change in enumerate(changes, 1)
        for seq, row in enumerate(change.rows, change.before.seq + 1)
    ]
    return [*columns(heads, 20), at, *columns(entries, 15)]


def _standing(change: Change) -> tuple[Any, ...]:
    before, after = change.before, change.after
    calls = {key: call._asdict() for key, call in after.unsettled.items()}
    return (
        *(before.epoch, before.seq, before.undoing),
        *after[:-2],
        orjson.dumps(after.trail),
        orjson.dumps(calls),
    )


def check_words(where: str, words: str) -> None:
    """Refusal if these cannot be a text in PostgreSQL, or are longer than words need be."""
    if "\0" in words:
        raise Refusal(f"{where}: a NUL character cannot be stored", 422)
    if len(words) > WORDS_MAX_CHARS:
        raise Refusal(f"{where}: at most {WORDS_MAX_CHARS} characters are taken", 422)


def _value(where: str, value: Any) -> bytes | None:
    """A value as JSON; Refusal if it cannot be kept as it is, or is to travel by reference."""
    if value is None:
        return None
    try:
        body = plainjson.encode(value)
    except plainjson.NotPlain as error:
        raise Refusal(f"{where}: {error}", 422) from error
    if len(body) > INLINE_MAX_BYTES:
        raise Refusal(
            f"{where}: {len(body)} bytes of JSON; over {INLINE_MAX_BYTES} (256 KiB) a value goes "
            "to the object store and travels as dataref and datadigest",
            413,
        )
    return body


def _check_usage(where: str, usage: Usage | None) -> None:
    if usage is None:
        return
    check_words(f"{where}.provider", usage.provider)
    check_words(f"{where}.model", usage.model)
    if usage.tokens > TOKENS_MAX or usage.cost_usd > COST_MAX_USD:
        raise Refusal(
            f"{where}: one call uses at most {TOKENS_MAX} tokens and {COST_MAX_USD:.0f} US dollars",
            422,
        )
