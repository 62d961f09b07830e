"""An operation's journal, as one attempt holds it: opened once, then only appended to.

Always holds: entries are appended in the order in which they were given, with one request on its
way at a time; what has gathered meanwhile goes with the next. A request whose answer was lost is
asked again as it was. Nothing more is appended once another worker has the journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from headway.agents import api, payloads
from headway.agents.checkpoints import (
    Cause,
    Position,
    after_all,
    checkpoint,
    inconsistency,
    with_state,
)
from headway.agents.connection import Connection
from headway.agents.entries import (
    APPEND_MAX,
    BUDGET_SPENT,
    LOOP_DETECTED,
    OUT_OF_ORDER,
    SUPERSEDED,
    TOOL_NOT_ALLOWED,
    TRIPPED,
    Entry,
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    JournalPage,
    JournalRead,
    NewEntry,
    Usage,
)
from headway.agents.errors import (
    Halted,
    HeadwayError,
    InvalidInput,
    JournalMismatch,
    NotFound,
    Refused,
    Superseded,
    Unavailable,
)
from headway.agents.messages import describe
from headway.agents.patience import patiently
from headway.agents.subjects import agent_subject, payloads_by
from pydantic import BaseModel, ValidationError

TRY_TIMEOUT_S = 5.0
REQUEST_MAX_BYTES = 600_000  # of values in one request, unless a single group has more

GUARDS = {
    TOOL_NOT_ALLOWED: "ToolNotAllowed",
    BUDGET_SPENT: "BudgetSpent",
    LOOP_DETECTED: "LoopDetected",
    TRIPPED: "Tripped",
}
"""Refusals of intents, by problem type; the task is parked then."""

M = TypeVar("M", bound=BaseModel)


class Keeping(Protocol):
    """Where a journal is kept, and its large values."""

    async def open(self) -> JournalOpened: ...

    async def read(self, after: int) -> JournalPage: ...

    async def append(self, epoch: int, seq: int, entries: list[NewEntry], /) -> JournalAppended: ...

    async def put(self, body: bytes, /) -> tuple[str, str]:
        """Store a large value; its reference and its digest."""
        ...

    async def get(self, reference: str, digest: str, /) -> bytes:
        """A large value, checked against its digest; PayloadLost if it is not there."""
        ...


class Coordinated:
    """A journal kept by coordinators. Asks until one answers, however long that takes."""

    def __init__(self, connection: Connection, agent: str, opening: JournalOpen) -> None:
        """`agent` is the one whose attempt opens its journal with `opening`."""
        self._connection = connection
        self._agent = agent
        self._opening = opening
        self._task, self._step, self._phase = opening.task, opening.step, opening.phase
        self._what = f"{opening.task}/{opening.step}"

    async def open(self) -> JournalOpened:
        return await self._ask("journal.open", self._opening, JournalOpened)

    async def read(self, after: int) -> JournalPage:
        request = JournalRead(task=self._task, step=self._step, phase=self._phase, after=after)
        return await self._ask("journal.read", request, JournalPage)

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        request = JournalAppend(
            task=self._task,
            step=self._step,
            phase=self._phase,
            epoch=epoch,
            seq=seq,
            entries=entries,
        )
        return await self._ask("journal.append", request, JournalAppended)

    async def put(self, body: bytes) -> tuple[str, str]:
        space, task = payloads_by(self._agent), str(self._task)
        put = partial(payloads.put, self._connection.wire, space, task, body)
        return await patiently(put, f"payload of {self._what}")

    async def get(self, reference: str, digest: str) -> bytes:
        get = partial(payloads.get, self._connection.wire, reference, digest)
        return await patiently(get, f"payload of {self._what}")

    async def _ask(self, operation: str, request: BaseModel, reply: type[M]) -> M:
        subject = agent_subject(self._agent, operation)
        body = request.model_dump_json(exclude_defaults=True).encode()

        async def once() -> M:
            answer = await api.call(self._connection, subject, body, TRY_TIMEOUT_S)
            try:
                return reply.model_validate_json(answer, extra="ignore")
            except ValidationError as error:
                raise Unavailable(f"not an answer to {operation}: {describe(error)}") from error

        pause = self._connection.wire.again.pause
        return await patiently(once, f"{operation} of {self._what}", pause=pause)


@dataclass(slots=True)
class _Group:
    """Entries that are appended together. With `cause`, a checkpoint goes with them; a state of the
    agent's own is made a checkpoint."""

    entries: Sequence[NewEntry]
    cause: Cause | None
    done: asyncio.Future[None]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries if not entry.dataref)


class Journal:
    """`usage` is of the whole task, `position` where the journal ends, `marked` whether it ends
    in a checkpoint."""

    def __init__(self, keeping: Keeping) -> None:
        self.keeping = keeping
        self.opened = False
        self.usage = Usage()
        self.position = Position()
        self.marked = True
        self.epoch = 0
        self._waiting: list[_Group] = []
        self._sender: asyncio.Task[None] | None = None
        self._lost: Superseded | None = None

    async def open(self) -> list[Entry]:
        """Take the journal; what is in it. Raises Superseded, or JournalMismatch for one that
        contradicts itself: then that is noted in it."""
        try:
            opened = await self.keeping.open()
            entries = list(opened.entries)
            more = opened.more
            while more:
                page = await self.keeping.read(entries[-1].seq)
                entries += page.entries
                more = page.more
        except Refused as refused:
            raise told_apart(refused) from refused
        self.epoch, self.usage, self.opened = opened.epoch, opened.usage, True
        if words := inconsistency(entries):
            self.position = Position(seq=entries[-1].seq)
            await self.append(NewEntry(kind="note", data=words))
            raise JournalMismatch(words)
        self.position = after_all(Position(), entries)
        self.marked = not entries or entries[-1].kind == "checkpoint"
        return entries

    async def append(self, *entries: NewEntry, cause: Cause | None = None) -> None:
        """Append `entries` and wait for the commit; with `cause`, a checkpoint behind them."""
        await self.put(*entries, cause=cause)

    def put(self, *entries: NewEntry, cause: Cause | None = None) -> asyncio.Future[None]:
        """As `append`, in its place from now on, whether or not somebody waits for it."""
        loop = asyncio.get_running_loop()
        group = _Group(entries, cause, loop.create_future())
        group.done.add_done_callback(_heard)
        if self._lost is not None:
            group.done.set_exception(self._lost)
            return group.done
        self._waiting.append(group)
        if self._sender is None:
            self._sender = loop.create_task(self._send_all())
        return group.done

    async def make_sure(self) -> None:
        """Raise Superseded if another worker has the journal by now."""
        await self.append(cause="sure")

    async def flush(self) -> None:
        """Wait until all that was put is appended, or was refused."""
        if self._sender is not None:
            await asyncio.wait({self._sender})

    def close(self) -> None:
        """Send no more; what was not answered yet may or may not have been appended."""
        if self._sender is not None:
            self._sender.cancel()

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send(self._take())
        finally:
            self._sender = None
            for group in self._waiting:
                group.done.cancel()
            self._waiting.clear()

    def _take(self) -> list[_Group]:
        """The groups that go with the next request: at least one."""
        taken: list[_Group] = []
        entries = size = 0
        for group in self._waiting:
            entries += len(group.entries) + 1  # a checkpoint may follow
            size += group.size
            if taken and (entries > APPEND_MAX or size > REQUEST_MAX_BYTES):
                break
            taken.append(group)
        del self._waiting[: len(taken)]
        return taken

    async def _send(self, groups: list[_Group]) -> None:
        try:
            entries, position = _composed(groups, self.position)
            reply = await self.keeping.append(self.epoch, self.position.seq + 1, entries)
        except (Refused, InvalidInput) as refused:
            meant = told_apart(refused)
            if len(groups) > 1 and not isinstance(meant, Superseded):
                for group in groups:  # it is for one of them; the others must not suffer
                    await self._send([group])
                return
            self._fail(groups, meant)
        except asyncio.CancelledError:
            for group in groups:
                group.done.cancel()
            raise
        except Exception as error:  # whatever it is, nobody must wait in vain
            self._fail(groups, error)
        else:
            self.position, self.usage = position, reply.usage
            self.marked = entries[-1].kind == "checkpoint"
            for group in groups:
                if not group.done.done():
                    group.done.set_result(None)

    def _fail(self, groups: list[_Group], error: Exception) -> None:
        if isinstance(error, Superseded):
            self._lost = error
            groups = groups + self._waiting
            self._waiting = []
        for group in groups:
            if not group.done.done():
                group.done.set_exception(error)


def told_apart(refused: Refused | InvalidInput) -> HeadwayError:
    """A coordinator's refusal as the error that says what to do about it."""
    if isinstance(refused, InvalidInput):
        return refused
    if refused.kind == SUPERSEDED or isinstance(refused, NotFound):
        return Superseded(refused.reason)
    if refused.kind == OUT_OF_ORDER:
        return JournalMismatch(refused.reason)
    if refused.kind in GUARDS:
        return Halted(refused.reason, kind=GUARDS[refused.kind])
    return refused


def _composed(groups: Sequence[_Group], position: Position) -> tuple[list[NewEntry], Position]:
    """One request's entries, and the position behind them. One checkpoint at the end does for all
    groups that want one."""
    entries: list[NewEntry] = []
    cause: Cause | None = None
    for group in groups:
        cause = group.cause or cause
        for given in group.entries:
            entry = with_state(position, given) if given.kind == "checkpoint" else given
            entries.append(entry)
            position = position.after(entry)
    if cause is not None and not (entries and entries[-1].kind == "checkpoint"):
        entry = checkpoint(position, cause)
        entries.append(entry)
        position = position.after(entry)
    return entries, position


def _heard(done: asyncio.Future[None]) -> None:
    """Whoever put the entries may have gone; an error is no news then."""
    if not done.cancelled():
        done.exception()
