"""The calls of tools that one attempt makes: each is in the journal before it is run, and its
result is there before the caller has it.

What always holds: a call whose end the journal knows is not run again; intents are appended in the
order of the calls; once the attempt was superseded or halted it begins nothing any more, whatever
its handler makes of the exception.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from headway.agents import carrying, checkpoints, exchange, reconciliation
from headway.agents.about import About
from headway.agents.checkpoints import Cause
from headway.agents.entries import UNDER_WAY_MAX, NewEntry, Usage
from headway.agents.errors import Halted, HeadwayError, InvalidInput, Superseded
from headway.agents.exchange import Arguments, InvalidValue
from headway.agents.journal import Journal
from headway.agents.plainjson import is_text
from headway.agents.replay import Place, Replay
from headway.agents.signatures import Function
from headway.agents.tools import Tool
from headway.agents.trial import Result, Trial, still_ours

NOTE_MAX_CHARS = 10_000
MARK_S = 1.0  # for the last checkpoint of an attempt that is given up

_log = logging.getLogger("headway.agents.invocations")


class Calls:
    """`stopped` is what ended all calling, if something did: the attempt's last word."""

    def __init__(self, about: About, journal: Journal, trial: Trial) -> None:
        self.stopped: Superseded | Halted | None = None
        self._about = about
        self._journal = journal
        self._trial = trial
        self._in_order = asyncio.Lock()  # wakes whoever waits in the order of their calls
        self._room = asyncio.Semaphore(UNDER_WAY_MAX)  # likewise
        self._replay: Replay | None = None
        self._state: bytes | None = None
        self._taken_up_at = 0  # number of the checkpoint in which an earlier worker left its state
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._over = False

    @property
    def usage(self) -> Usage:
        return self._journal.usage

    async def open(self) -> None:
        """Open the journal and settle what an earlier worker left open in it."""
        async with self._doing(), self._in_order:
            await self._open()

    async def call(
        self, function: Function, args: Sequence[Any], kwargs: Mapping[str, Any], key: str
    ) -> Any:
        """Run a tool, unless the journal has its end; see `Context.call`."""
        tool = self._about.tool(function)
        arguments = exchange.arguments_of(tool, args, kwargs)
        async with self._doing(), self._room:
            async with self._in_order:
                replay = await self._open()
                place = replay.next(tool.name, arguments.digest, key)
                if place.ending is None:
                    intent = await self._intent(tool, arguments, place.key)
                    asked_at = time.monotonic()
                    appended = self._journal.put(intent, cause="long" if tool.long else None)
            if place.ending is None:
                await self._certain(intent, appended, asked_at)
                ending = await self._run(tool, arguments, place, intent)
            else:
                ending = place.ending
            return await carrying.outcome_of(self._journal.keeping, tool, ending)

    async def checkpoint(self, state: Any) -> None:
        """Keep the agent's state; see `Context.checkpoint`."""
        body = exchange.encode_state(state)
        async with self._doing():
            async with self._in_order:
                await self._open()
                entry = NewEntry(kind="checkpoint")
                entry = await carrying.carrying(self._journal.keeping, entry, body)
                appended = self._journal.put(entry)
            await appended
            self._state = body

    def restore(self) -> Any:
        """The state that was kept last; see `Context.restore`."""
        if self._state is None:
            return None
        if self._replay is not None:
            self._replay.go_on_after(self._taken_up_at)
        return orjson.loads(self._state)

    async def note(self, text: str) -> None:
        """Put words for people into the journal."""
        if len(text) > NOTE_MAX_CHARS:
            raise InvalidInput(f"a note has at most {NOTE_MAX_CHARS} characters, not {len(text)}")
        if not is_text(text):
            raise InvalidInput("a note must be Unicode, without half a surrogate pair")
        async with self._doing():
            async with self._in_order:
                replay = await self._open()
                if replay.noted(text):
                    return
                appended = self._journal.put(NewEntry(kind="note", data=text))
            await appended

    async def mark(self, cause: Cause) -> None:
        """Keep how far the attempt came, if it takes no longer than MARK_S; never fails."""
        if not self._journal.opened or isinstance(self.stopped, Superseded):
            return
        try:
            async with asyncio.timeout(MARK_S):
                await self._journal.flush()
                if not self._journal.marked:
                    await self._journal.append(cause=cause)
        except (HeadwayError, TimeoutError) as error:
            _log.info("%s: no last checkpoint: %s", self._about.operation.task, error)

    async def finished(self) -> None:
        """Wait for calls that the handler began and did not wait for; then none is taken."""
        await self._idle.wait()
        self._over = True

    def close(self) -> None:
        """Take no calls and send nothing any more."""
        self._over = True
        self._journal.close()

    @asynccontextmanager
    async def _doing(self) -> AsyncIterator[None]:
        """Around whatever needs the journal: refused once all is over; remembered if it ends all
        calling."""
        if self._over:
            raise HeadwayError("the attempt is over: nothing is called for it any more")
        self._under_way += 1
        self._idle.clear()
        try:
            yield
        except (Superseded, Halted) as stop:
            if self.stopped is None or isinstance(stop, Superseded):
                self.stopped = stop
            raise
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _open(self) -> Replay:
        """Once; an opening that failed is tried again by the next who needs the journal."""
        if self.stopped is not None:
            raise self.stopped
        if self._replay is not None:
            return self._replay
        entries = await self._journal.open()
        replay = Replay(self._about.attempt, self._about.anew)
        replay.read(entries)
        if state_at := self._journal.position.state_at:
            self._taken_up_at, kept = state_at, entries[state_at - 1]
            inline = None if kept.dataref else checkpoints.inline_state(kept)
            self._state = await carrying.body_of(self._journal.keeping, kept, inline)
        await reconciliation.settle(replay.unsettled(), self._about, self._journal, self._trial)
        self._replay = replay
        return replay

    async def _intent(self, tool: Tool, arguments: Arguments, key: str) -> NewEntry:
        entry = NewEntry(
            kind="intent",
            key=key,
            tool=tool.name,
            arguments_digest=arguments.digest,
            sensitive=tool.sensitive,
            model=tool.model,
        )
        body = exchange.canonical(arguments.named)
        return await carrying.carrying(self._journal.keeping, entry, body)

    async def _certain(
        self, intent: NewEntry, appended: asyncio.Future[None], asked_at: float
    ) -> None:
        """Wait for the intent's commit. A process that was frozen meanwhile may have lost its
        attempt without a word, so it asks once more."""
        try:
            await appended
            await still_ours(self._journal.make_sure, asked_at)
        except asyncio.CancelledError:
            never = NewEntry(kind="void", key=intent.key, data="it was cancelled before it began")
            self._journal.put(never)
            raise

    async def _run(
        self, tool: Tool, arguments: Arguments, place: Place, intent: NewEntry
    ) -> NewEntry:
        """Run a tool whose intent is committed; how it ended, committed too."""
        began_at = time.monotonic()
        call = self._about.call(intent, place.runs + 1)
        outcome = await self._trial.run(tool, call, arguments)
        took_ms = round((time.monotonic() - began_at) * 1000)
        entry = NewEntry(
            kind="failure", key=place.key, tool=tool.name, model=tool.model, took_ms=took_ms
        )
        keeping = self._journal.keeping
        if isinstance(outcome, Result):
            try:
                entry = await carrying.ending(keeping, tool, entry, outcome)
            except InvalidValue as error:
                outcome = carrying.unkeepable(error)
        if not isinstance(outcome, Result):
            entry = carrying.failed(entry, outcome, self._about.attempt)
        await self._journal.append(entry, cause="result")
        return entry
