"""What people can do with dead letters: look, replay the message, or drop it.

No letter is ever taken out of its stream: what was done with one is kept in PostgreSQL, together
with the entry of the audit log, and the list leaves it out. Always holds: a message is published
again only once it is noted who wants that; where nobody knows whether it was, since its coordinator
died, doing it again is harmless: a submission has the id of its task and an event that of its
attempt. After REPLAY_WITHIN_S that is an act of its own, and the letter may be dropped instead.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import asyncpg
import orjson
from headway.agents.deadletter_views import (
    LetterAct,
    LetterFate,
    LetterPage,
    LetterReceipt,
    LetterRef,
    LetterRow,
    LettersRequest,
    LetterView,
)
from headway.agents.headers import header_block
from headway.agents.wire import NO_STREAM, UNCONFIRMED, Wire
from headway.coordinator import letters
from headway.coordinator.caller import Caller
from headway.coordinator.errors import BusUnavailable, Refusal
from headway.coordinator.interventions import check_words
from headway.coordinator.letterbox import Extent, Letterbox
from headway.coordinator.letters import Letter, Publication
from headway.coordinator.serving import Serve, typed, typed_by
from headway.coordinator.store import Store
from headway.coordinator.vouching import VOUCHED_HEADER, Vouching

LOOKED_AT_MAX = 1_000  # letters for one page, with those that were dealt with
REPLAY_WITHIN_S = 60.0  # far longer than a coordinator tries; then it is given up
NO_TASK = UUID(int=0)


class DeadLetters:
    def __init__(self, store: Store, wire: Wire, vouching: Vouching) -> None:
        self._store = store
        self._wire = wire
        self._box = Letterbox(wire)
        self._vouching = vouching

    def operations(self) -> dict[str, Serve]:
        return {
            "dead.list": typed(LettersRequest, LetterPage, self.page),
            "dead.get": typed(LetterRef, LetterView, self.get),
            "dead.replay": typed_by(LetterAct, LetterReceipt, self.replay),
            "dead.drop": typed(LetterAct, LetterReceipt, self.drop),
        }

    async def page(self, request: LettersRequest) -> LetterPage:
        """Newest first: what comes meanwhile, or is dealt with, moves nothing else."""
        extent = await self._box.extent()
        end = min(_place(request.cursor) or extent.last + 1, extent.last + 1)
        wanted, found, looked_at = letters.WANTED[request.kind], list[LetterRow](), 0
        while len(found) <= request.limit and looked_at < LOOKED_AT_MAX:
            count = request.limit + 1 - len(found)
            messages = await self._box.before(end, extent.first, wanted, count)
            fates = await self._fates(extent, (each.sequence for each in messages))
            for letter in map(letters.read, messages):
                fate = fates.get(letter.sequence)
                open_ = fate is None or fate.fate == "replaying"
                if request.kind in (None, letter.kind) and (open_ or request.dealt_with):
                    found.append(_row(letter, fate))
            if len(messages) < count:
                end = 0
                break
            end, looked_at = messages[-1].sequence, looked_at + count
        if len(found) > request.limit:
            end = found[request.limit - 1].sequence
        cursor = str(end) if end > extent.first else None
        return LetterPage(letters=found[: request.limit], cursor=cursor)

    async def get(self, request: LetterRef) -> LetterView:
        extent, letter = await self._letter(request.sequence)
        fate = (await self._fates(extent, [letter.sequence])).get(letter.sequence)
        try:
            body, encoded = letter.body.decode(), None
        except UnicodeDecodeError:
            body, encoded = None, base64.b64encode(letter.body).decode()
        return LetterView(
            **_row(letter, fate).model_dump(),
            headers=dict(letter.headers or {}),
            body=body,
            body_base64=encoded,
            whole=letter.whole,
        )

    async def replay(self, request: LetterAct, caller: Caller) -> LetterReceipt:
        """Publish its message again, as its coordinator got it; once more if nobody knows whether
        that was done."""
        extent, letter = await self._letter(request.sequence)
        again = letters.republication(letter)
        fate = await self._deal_with(extent, letter, request, "replaying", again.task)
        if fate.fate == "dropped":
            raise Refusal(f"{_dealt(letter, fate)}; it is not replayed any more", 409)
        if fate.fate == "replaying":
            await self._publish(again, letter, caller)
            await self._store.fetch("letter_is_replayed", extent.created, letter.sequence)
            fate = fate.model_copy(update={"fate": "replayed"})
        return LetterReceipt(sequence=letter.sequence, fate=fate, task=again.task)

    async def drop(self, request: LetterAct) -> LetterReceipt:
        """Say that a letter is of no interest any more."""
        extent, letter = await self._letter(request.sequence)
        fate = await self._deal_with(extent, letter, request, "dropped", letter.task)
        if fate.fate == "replaying":
            raise Refusal(
                f"letter {letter.sequence} is being replayed, and nobody knows whether it was; "
                f"replay it again, or drop it {REPLAY_WITHIN_S:.0f} s after {fate.at:%H:%M:%SZ}",
                409,
            )
        if fate.fate == "replayed":
            raise Refusal(f"{_dealt(letter, fate)}; there is nothing to drop", 409)
        return LetterReceipt(sequence=letter.sequence, fate=fate, task=letter.task)

    async def _letter(self, sequence: int) -> tuple[Extent, Letter]:
        extent = await self._box.extent()
        message = await self._box.letter(sequence)
        if message is None:
            raise Refusal(f"there is no dead letter {sequence}; they are kept for 30 days", 404)
        return extent, letters.read(message)

    async def _fates(self, extent: Extent, sequences: Iterable[int]) -> dict[int, LetterFate]:
        wanted = list(sequences)
        if not wanted:
            return {}
        rows = await self._store.fetch("fates_of_letters", extent.created, wanted)
        return {row["sequence"]: _fate(row) for row in rows}

    async def _deal_with(
        self, extent: Extent, letter: Letter, request: LetterAct, fate: str, task: UUID | None
    ) -> LetterFate:
        """Note what is done with a letter, unless something was before, other than a replay that
        was given up; answers what is done or was."""
        check_words(request.by, request.reason)
        word = "replayed" if fate == "replaying" else fate
        await self._store.fetch(
            "deal_with_letter",
            extent.created,
            letter.sequence,
            fate,
            request.by,
            request.reason,
            task or NO_TASK,
            f"dead-letter-{word}",
            f"letter {letter.sequence}",
            _about(letter),
            REPLAY_WITHIN_S,
        )
        return (await self._fates(extent, [letter.sequence]))[letter.sequence]

    async def _publish(self, again: Publication, letter: Letter, caller: Caller) -> None:
        headers = dict(again.headers)
        if letter.kind == "submission":
            owner = letter.owner or caller.name
            vouched = self._vouching.header(owner, again.subject, again.name, again.body)
            headers[VOUCHED_HEADER] = vouched
        message = [(again.subject, again.body)]
        try:
            [error] = await self._wire.store_all(message, headers=header_block(headers))
        except ConnectionError as lost:
            raise BusUnavailable(str(lost)) from lost
        if error is not None and error.code in (UNCONFIRMED, NO_STREAM):
            raise BusUnavailable(f"it may not be published; ask again: {error.text}")
        if error is not None:
            raise Refusal(f"the stream refuses it: {error.text}", 409)


def _row(letter: Letter, fate: LetterFate | None) -> LetterRow:
    try:
        letters.republication(letter)
        kept = ""
    except Refusal as refusal:
        kept = refusal.reason
    return LetterRow(
        sequence=letter.sequence,
        at=letter.at,
        kind=letter.kind,
        subject=letter.subject,
        reason=letter.reason,
        size=letter.size,
        agent=letter.agent,
        task=letter.task,
        kept=kept,
        fate=fate,
    )


def _fate(row: asyncpg.Record) -> LetterFate:
    return LetterFate(fate=row["fate"], at=row["at"], by=row["by"], reason=row["reason"])


def _about(letter: Letter) -> bytes:
    """What the audit log keeps of a letter: no text of its message."""
    about: dict[str, Any] = {
        "sequence": letter.sequence,
        "kind": letter.kind,
        "subject": letter.subject.replace("\0", "\ufffd"),
        "size": letter.size,
        "digest": hashlib.sha256(letter.body).hexdigest(),
    }
    return orjson.dumps(about)


def _dealt(letter: Letter, fate: LetterFate) -> str:
    who = f"by {fate.by} " if fate.by else ""
    return f"letter {letter.sequence} was {fate.fate} {who}at {fate.at:%Y-%m-%d %H:%M:%SZ}"


def _place(cursor: str | None) -> int | None:
    """The sequence that a page's cursor stands for; Refusal (422) if it is none."""
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 19 and int(cursor)):
        raise Refusal("cursor: not one that this API gave", 422)
    return int(cursor)
