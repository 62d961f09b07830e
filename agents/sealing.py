"""Encryption around one attempt: its command decrypted, its events and its journal encrypted.

Always holds: of a task whose input is encrypted nothing of a payload leaves the process in clear:
neither results, inputs that are handed off, progress, the text of failures, nor what is journaled.
The names of things are no payload: types of failures, tools, keys of calls, digests of arguments.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import orjson
from headway.agents.codec import Keyring, Sealing, Undecryptable, is_sealed
from headway.agents.connection import Connection
from headway.agents.entries import (
    Entry,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    JournalPage,
    NewEntry,
)
from headway.agents.exchange import canonical, digest_of
from headway.agents.handling import Keep
from headway.agents.heartbeats import PROGRESS_MAX_BYTES
from headway.agents.journal import Keeping
from headway.agents.messages import INPUT_MAX_BYTES, CommandData, EventData
from headway.agents.reports import RESULT_TOO_LARGE, failure


def sealing_of(keyring: Keyring | None, task: str, data: CommandData) -> Sealing | None:
    """What encrypts for this task; None if its input is in clear. Raises Undecryptable."""
    if not data.sealed and not is_sealed(data.input):
        return None
    if keyring is None:
        raise Undecryptable("the task is encrypted, and this agent has no HEADWAY_PAYLOAD_KEYS")
    return Sealing(keyring, task)


def opened(sealing: Sealing, data: CommandData) -> CommandData:
    """What the handler is given; raises Undecryptable."""
    return replace(
        data,
        input=sealing.opened(data.input),
        results=sealing.opened(data.results),
        result=sealing.opened(data.result),
    )


def sealed(sealing: Sealing, data: EventData) -> EventData:
    """What is reported."""
    error = data.error
    if error is not None and error.type == Undecryptable.__name__:
        return data  # for whoever sees to the keys, and perhaps has none
    result = None if data.result is None else sealing.value(data.result)
    if result is not None and (size := len(orjson.dumps(result))) > INPUT_MAX_BYTES:
        text = f"the result has {size} bytes when encrypted, more than {INPUT_MAX_BYTES}"
        return sealed(sealing, failure(RESULT_TOO_LARGE, text, retryable=False))
    return replace(
        data,
        result=result,
        error=None if error is None else replace(error, message=sealing.text(error.message)),
        handoff=[
            each if each.input is None else replace(each, input=sealing.value(each.input))
            for each in data.handoff
        ],
        progress=None if data.progress is None else _progress(sealing, data.progress),
    )


def keeping_sealed(sealing: Sealing, keep: Keep) -> Keep:
    """As `keep`, but what it keeps is encrypted."""
    return partial(_kept_sealed, sealing, keep)


class SealedJournal:
    """A journal whose values are encrypted where `kept` keeps them."""

    def __init__(self, sealing: Sealing, kept: Keeping) -> None:
        self._sealing = sealing
        self._kept = kept

    async def open(self) -> JournalOpened:
        journal = await self._kept.open()
        return journal.model_copy(update={"entries": self._opened(journal.entries)})

    async def read(self, after: int) -> JournalPage:
        page = await self._kept.read(after)
        return page.model_copy(update={"entries": self._opened(page.entries)})

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        return await self._kept.append(epoch, seq, [self._sealed(entry) for entry in entries])

    async def put(self, body: bytes) -> tuple[str, str]:
        return await self._kept.put(self._sealing.body(body))

    async def get(self, reference: str, digest: str) -> bytes:
        value = orjson.loads(await self._kept.get(reference, digest))
        return orjson.dumps(self._sealing.opened(value), option=orjson.OPT_SORT_KEYS)

    def _sealed(self, entry: NewEntry) -> NewEntry:
        value: dict[str, Any] = {}
        if entry.data is not None:
            value["data"] = self._sealing.value(entry.data)
        if not entry.dataref:  # the digest of a small value would give it away
            value["datadigest"] = self._sealing.text(entry.datadigest)
        return entry.model_copy(update=value)

    def _opened(self, entries: list[Entry]) -> list[Entry]:
        return [self._opened_one(entry) for entry in entries]

    def _opened_one(self, entry: Entry) -> Entry:
        data, digest = self._sealing.opened(entry.data), self._sealing.opened(entry.datadigest)
        if entry.by and not entry.dataref and is_sealed(entry.data):
            digest = digest_of(canonical(data))  # a person's: what was kept is of the encrypted one
        return entry.model_copy(update={"data": data, "datadigest": digest})


def _kept_sealed(
    sealing: Sealing, keep: Keep, connection: Connection, agent: str, opening: JournalOpen
) -> Keeping:
    return SealedJournal(sealing, keep(connection, agent, opening))


def _progress(sealing: Sealing, progress: Any) -> dict[str, str] | None:
    """None for what grows too large: progress is only for people, and comes again."""
    value = sealing.value(progress)
    return value if len(orjson.dumps(value)) <= PROGRESS_MAX_BYTES else None
