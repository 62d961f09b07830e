"""Journals: opened, appended to, read, and settled by people, for whoever asks on the API.

Always holds: whoever is answered has its entries in PostgreSQL; a journal's entries have no gap and
each was written under the epoch of that moment; what was asked again is answered as the first time.
What waits is committed together, in one statement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

import asyncpg
from headway.agents.entries import (
    ENTRIES_PAGE_MAX,
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    JournalPage,
    JournalRead,
    JournalSettle,
    Operation,
    Usage,
)
from headway.coordinator import journaling
from headway.coordinator.caller import Caller
from headway.coordinator.commands import check_agent
from headway.coordinator.errors import CoordinatorError, Refusal, StoreUnavailable
from headway.coordinator.groupcommit import GroupCommit
from headway.coordinator.journal_rows import (
    UNOPENED,
    Bounds,
    Change,
    Head,
    Place,
    Row,
    Spent,
    bounds_of,
    check_words,
    commit_arrays,
    entry_of,
    for_agents,
    head_of,
    kept,
    row_of,
    row_of_settlement,
    spent_of,
)
from headway.coordinator.literals import columns
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed, typed_by
from headway.coordinator.store import Store

ROUNDS_MAX = 8  # after so many lost races a request is to be asked again
PAGE_MAX_BYTES = 4 * 1_048_576


Noted = Callable[[Sequence[Change]], None]


class Hold(Protocol):
    """Holds a task whose step was stopped by a guard, and returns when that is committed: whatever
    its agent says once it knows of the refusal comes too late. `kind` is the refusal's."""

    async def __call__(self, task: UUID, step: str, kind: str, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Opening:
    request: JournalOpen
    agent: str


@dataclass(frozen=True, slots=True)
class Appending:
    request: JournalAppend
    agent: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Settling:
    request: JournalSettle
    row: Row


Work = Opening | Appending | Settling


class Outcome(NamedTuple):
    """Where a journal stands after a request. `changed` is false where nothing was to be written:
    what was asked is perhaps done already."""

    head: Head
    bounds: Bounds
    changed: bool = True


class Read(NamedTuple):
    """Journals and tasks as they were read for one round."""

    heads: Mapping[Place, Head]
    bounds: Mapping[UUID, Bounds]
    tasks: Mapping[UUID, Loaded]
    resumed: Mapping[UUID, int]


class Journal:
    def __init__(self, store: Store, hold: Hold, clock: Callable[[], int], noted: Noted) -> None:
        """`noted` is told what was committed."""
        self._noted = noted
        self._store = store
        self._hold = hold
        self._clock = clock
        self._commits: GroupCommit[Work, Outcome] = GroupCommit(self._commit, _touched)

    def operations(self) -> dict[str, Serve]:
        return {
            "journal.read": typed(JournalRead, JournalPage, self.read),
            "journal.settle": typed(JournalSettle, JournalAppended, self.settle),
        }

    def agent_operations(self) -> dict[str, Serve]:
        return {
            "journal.open": typed_by(JournalOpen, JournalOpened, self.open),
            "journal.append": typed_by(JournalAppend, JournalAppended, self.append),
            "journal.read": typed_by(JournalRead, JournalPage, self.read_own),
        }

    async def open(self, request: JournalOpen, caller: Caller) -> JournalOpened:
        for field in ("step", "worker"):
            check_words(field, getattr(request, field))
        if not request.worker:
            raise Refusal("worker: who opens a journal must say so", 422)
        outcome = await self._commits.ask(Opening(request, caller.agent), 0)
        page = await self._page(request, 0, ENTRIES_PAGE_MAX)
        return JournalOpened(
            epoch=outcome.head.epoch,
            entries=[for_agents(entry) for entry in page.entries],
            more=page.more,
            manifest=outcome.bounds.manifest,
            usage=_usage(outcome.bounds.spent),
        )

    async def append(self, request: JournalAppend, caller: Caller) -> JournalAppended:
        check_words("step", request.step)
        rows = tuple(row_of(entry, number) for number, entry in enumerate(request.entries))
        size = sum(len(row.data or b"") for row in rows)
        try:
            outcome = await self._commits.ask(Appending(request, caller.agent, rows), size)
        except Refusal as refusal:
            if refusal.kind in journaling.GUARDS:
                await self._hold(request.task, request.step, refusal.kind, refusal.reason)
            raise
        if not outcome.changed:
            stored = await self._rows(request, request.seq - 1, len(rows), sys.maxsize)
            journaling.check_appended_before(request, rows, [kept(each) for each in stored])
        last = request.seq + len(rows) - 1
        return JournalAppended(seq=last, usage=_usage(outcome.bounds.spent))

    async def read_own(self, request: JournalRead, caller: Caller) -> JournalPage:
        """As `read`, for the agent that the step's commands are for."""
        loaded = (await self._store.read([request.task])).get(request.task)
        if loaded is None:
            raise Refusal(f"there is no task {request.task}", 404)
        check_agent(caller.agent, loaded, request.step, request.phase)
        page = await self.read(request)
        return JournalPage(entries=[for_agents(entry) for entry in page.entries], more=page.more)

    async def read(self, request: JournalRead) -> JournalPage:
        check_words("step", request.step)
        page = await self._page(request, request.after, request.limit)
        if not page.entries and not await self._store.read([request.task]):
            raise Refusal(f"there is no task {request.task}", 404)
        return page

    async def settle(self, request: JournalSettle) -> JournalAppended:
        check_words("step", request.step)
        row = row_of_settlement(request)
        outcome = await self._commits.ask(Settling(request, row), len(row.data or b""))
        seq = outcome.head.seq
        if not outcome.changed:
            found = await self._store.fetch("journal_key", *_place(request), request.key)
            said = [kept(each) for each in found]
            seq = journaling.said_before(request, row, said[0] if said else None)
        return JournalAppended(seq=seq, usage=_usage(outcome.bounds.spent))

    async def _page(self, of: Operation, after: int, limit: int) -> JournalPage:
        rows = await self._rows(of, after, limit + 1, PAGE_MAX_BYTES)
        entries = [entry_of(kept(row)) for row in rows[:limit]]
        return JournalPage(entries=entries, more=bool(rows) and rows[0]["found"] > len(entries))

    async def _rows(
        self, of: Operation, after: int, limit: int, max_bytes: int
    ) -> list[asyncpg.Record]:
        return await self._store.fetch("journal_page", *_place(of), after, limit, max_bytes)

    async def _commit(self, works: Sequence[Work]) -> list[Outcome | CoordinatorError]:
        """Decide on each and commit what they change; those that lost a race are decided again."""
        answers: dict[int, Outcome | CoordinatorError] = {}
        left = dict(enumerate(works))
        for _ in range(ROUNDS_MAX):
            read = await self._read(list(left.values()))
            decided: dict[int, tuple[list[Change], Outcome]] = {}
            for number, work in left.items():
                try:
                    decided[number] = _decide(work, read)
                except Refusal as refusal:
                    answers[number] = refusal
            spent = await self._write([each for mine, _ in decided.values() for each in mine])
            lost = set()
            for number, (mine, outcome) in decided.items():
                if all(change.place in spent for change in mine):
                    answers[number] = _told(outcome, spent[mine[-1].place]) if mine else outcome
                else:
                    lost.add(number)
            left = {number: left[number] for number in lost}
            if not left:
                break
        for number in left:
            answers[number] = StoreUnavailable("others were faster each time; ask again")
        return [answers[number] for number in range(len(works))]

    async def _read(self, works: Sequence[Work]) -> Read:
        """The journals, and after them the tasks of those that depend on their task's state."""
        places = sorted({place for work in works for place in _touched(work)})
        rows = await self._store.fetch("load_journals", *columns(places, len(Place._fields)))
        tasks = list({work.request.task for work in works if not isinstance(work, Appending)})
        resumed = await self._store.fetch("last_resumptions", tasks) if tasks else []
        read = [(places[row["place"] - 1], row) for row in rows]
        return Read(
            {place: head_of(row) for place, row in read if row["epoch"] is not None},
            {place.task: bounds_of(row) for place, row in read},
            await self._store.read(tasks),
            {row["task_id"]: row["version"] for row in resumed},
        )

    async def _write(self, changes: Sequence[Change]) -> dict[Place, Spent]:
        """Commit the changes whose journals still stand where they were read; tells those, with
        what their tasks have used in all."""
        if not changes:
            return {}
        rows = await self._store.fetch("commit_journals", *commit_arrays(changes, self._clock()))
        self._noted([changes[row["place"] - 1] for row in rows])
        return {changes[row["place"] - 1].place: spent_of(row) for row in rows}


def _touched(work: Work) -> tuple[Place, ...]:
    if isinstance(work, Opening):
        return journaling.touched(work.request)
    return (_place(work.request),)


def _place(of: Operation) -> Place:
    return Place(of.task, of.step, of.phase)


def _decide(work: Work, read: Read) -> tuple[list[Change], Outcome]:
    """What is to be written, the work's own journal last, and the answer once it is."""
    task, place = work.request.task, _place(work.request)
    bounds = read.bounds.get(task, Bounds())
    head = read.heads.get(place, UNOPENED)
    match work:
        case Opening(request, agent):
            changes = journaling.opened(
                request, agent, read.heads, read.tasks.get(task), read.resumed.get(task, 0)
            )
            own = changes[-1:] if changes and changes[-1].place == place else []
            return changes, Outcome(own[0].after if own else head, bounds)
        case Appending(request, agent, rows):
            change = journaling.appended(request, agent, rows, head, bounds)
        case Settling(request, row):
            change = journaling.settled(request, row, head, read.tasks.get(task))
    if change is None:
        return [], Outcome(head, bounds, changed=False)
    return [change], Outcome(change.after, bounds)


def _told(outcome: Outcome, spent: Spent) -> Outcome:
    return outcome._replace(bounds=outcome.bounds._replace(spent=spent))


def _usage(spent: Spent) -> Usage:
    return Usage(**spent._asdict())
