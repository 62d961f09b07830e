"""Tasks whose steps are under way, and journals of them: what the tests of journals stand on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from harness.services import RunningPostgres
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    JournalPage,
    JournalRead,
    JournalSettle,
    NewEntry,
    Usage,
)
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.coordinator.caller import Caller
from headway.coordinator.journal import Journal
from headway.coordinator.records import Change, Loaded, NewTask
from headway.coordinator.store import Store
from headway.sagas import Phase, Saga, transition
from headway.sagas import inputs as i
from headway.sagas.codec import encode_task
from headway.sagas.deadlines import due
from headway.sagas.task import Claim, Failure

NOW = 1_800_000_000_000

ERRAND = Saga("errand").step("do", "clerk.do", compensate="clerk.undo").define()
PAIR = (
    Saga("pair")
    .step("left", "clerk.left", compensate="clerk.undo")
    .step("right", "clerk.right", compensate="clerk.undo")
    .define()
)


@contextmanager
def one_database(postgres: RunningPostgres) -> Iterator[str]:
    """A database for a whole module, with this version's schema and the sagas above."""
    name = asyncio.run(postgres.create_database())
    url = postgres.server.url_of(name)

    async def prepare() -> None:
        store = Store(url)
        await store.open()
        for saga in (ERRAND, PAIR):
            await store.sagas.register(saga, NOW)
        await store.close()

    asyncio.run(prepare())
    yield url
    asyncio.run(postgres.drop_database(name))


def intent(tool: str = "pay", key: str = "", digest: str = "d", **fields: Any) -> NewEntry:
    return NewEntry(
        kind="intent", key=key or f"{tool}#1", tool=tool, arguments_digest=digest, **fields
    )


def result(tool: str = "pay", key: str = "", data: Any = "done", **fields: Any) -> NewEntry:
    return NewEntry(kind="result", key=key or f"{tool}#1", data=data, **fields)


def failure(tool: str = "pay", key: str = "") -> NewEntry:
    return NewEntry(kind="failure", key=key or f"{tool}#1", data={"type": "Down"})


def void(tool: str = "pay", key: str = "") -> NewEntry:
    return NewEntry(kind="void", key=key or f"{tool}#1", data="it did not happen")


def usage(tokens: int, cost_usd: float = 0.0) -> Usage:
    return Usage(input_tokens=tokens, cost_usd=cost_usd)


@dataclass
class Office:
    """A coordinator's journals on a real store. `held` is what the guards stopped."""

    store: Store
    held: list[tuple[UUID, str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.journal = self.another_journal()

    def another_journal(self) -> Journal:
        """What another coordinator has on the same store."""
        return Journal(self.store, self._hold, lambda: NOW, lambda _: None)

    async def _hold(self, *stopped: Any) -> None:
        self.held.append(stopped)

    async def submit(self, saga: str = "errand", manifest: Manifest | None = None) -> UUID:
        """A task whose first steps are dispatched."""
        definition = {"errand": ERRAND, "pair": PAIR}[saga]
        new = NewTask(new_task_id(), saga, b"{}", b"digest", manifest=manifest)
        await self._commit(0, definition, transition(definition, None, i.Submit(NOW)), new)
        return new.id

    async def happen(self, task: UUID, *inputs: i.Input) -> Loaded:
        """What these inputs make of a task."""
        for each in inputs:
            loaded = await self.task(task)
            outcome = transition(loaded.definition, loaded.task, each)
            assert not outcome.refusal, outcome.refusal
            await self._commit(loaded.task.version, loaded.definition, outcome, None, task)
        return await self.task(task)

    async def task(self, task: UUID) -> Loaded:
        return (await self.store.read([task]))[task]

    async def taken_over(self, task: UUID, worker: str = "second", step: str = "do") -> int:
        """Another worker claims the step's command; the epoch that it is granted."""
        state = (await self.task(task)).task.steps[step]
        claim = Claim(state.epoch, state.claims + 2, worker)
        asked = i.ClaimAsked(NOW, step, state.phase, state.attempt, claim)
        return (await self.happen(task, asked)).task.steps[step].epoch

    async def failed(self, task: UUID, *, hold: bool = False) -> Loaded:
        """The outstanding attempt of step `do` fails for good; on hold, its task is parked."""
        state = (await self.task(task)).task.steps["do"]
        why = Failure("Unsettled", "nobody knows")
        failed = i.Failed(
            *(NOW, "do", state.phase, state.attempt, state.epoch, why),
            retryable=False,
            no_effect=False,
            hold=hold,
        )
        return await self.happen(task, failed)

    async def resumed(self, task: UUID) -> Loaded:
        """A person resumes it, and the next attempt is dispatched."""
        return await self.happen(task, i.RetryStuck(NOW, "ann", "looked"), i.Tick(NOW))

    async def _commit(
        self, expected: int, definition: Any, outcome: Any, new: NewTask | None, task: Any = None
    ) -> None:
        change = Change(
            new.id if new else task,
            expected,
            outcome.task,
            encode_task(outcome.task),
            due(definition, outcome.task),
            outcome.task.parked,
            NOW,
            outcome.events,
            definition.version,
            new,
        )
        assert await self.store.commit([change]) == set()


@dataclass
class Holder:
    """An attempt that has a step's journal, as its worker sees it."""

    office: Office
    task: UUID
    step: str = "do"
    phase: Any = "action"
    attempt: int = 1
    command_epoch: int = 0
    worker: str = "first"
    agent: str = "clerk"
    journal: Journal | None = None
    epoch: int = 0
    seq: int = 0

    @property
    def _journal(self) -> Journal:
        return self.journal or self.office.journal

    @property
    def _caller(self) -> Caller:
        return Caller(self.agent)

    @property
    def _operation(self) -> dict[str, Any]:
        return {"task": self.task, "step": self.step, "phase": self.phase}

    def opening(self) -> JournalOpen:
        return JournalOpen(
            **self._operation,
            attempt=self.attempt,
            epoch=self.command_epoch,
            worker=self.worker,
        )

    async def open(self) -> JournalOpened:
        opened = await self._journal.open(self.opening(), self._caller)
        self.epoch = opened.epoch
        self.seq = opened.entries[-1].seq if opened.entries else 0
        return opened

    def appending(self, *entries: NewEntry, seq: int = 0) -> JournalAppend:
        return JournalAppend(
            **self._operation, epoch=self.epoch, seq=seq or self.seq + 1, entries=list(entries)
        )

    async def append(self, *entries: NewEntry, seq: int = 0) -> JournalAppended:
        appended = await self._journal.append(self.appending(*entries, seq=seq), self._caller)
        self.seq = max(self.seq, appended.seq)
        return appended

    async def call(self, tool: str, number: int, **fields: Any) -> None:
        """A whole call: intent and result."""
        key = f"{tool}#{number}"
        await self.append(intent(tool, key, digest=f"d{number}"))
        await self.append(result(tool, key, **fields))

    async def read(self, after: int = 0, limit: int = 500) -> Any:
        return await self._journal.read(JournalRead(**self._operation, after=after, limit=limit))

    async def read_own(self) -> JournalPage:
        return await self._journal.read_own(JournalRead(**self._operation), self._caller)

    async def settle(self, key: str, outcome: Any, **fields: Any) -> JournalAppended:
        request = JournalSettle(**self._operation, key=key, outcome=outcome, **fields)
        return await self._journal.settle(request)


async def holding(office: Office, manifest: Manifest | None = None, **who: Any) -> Holder:
    """A new task, and its first attempt with the journal open."""
    holder = Holder(office, await office.submit(manifest=manifest), **who)
    await holder.open()
    return holder


async def undone(office: Office, task: UUID) -> Holder:
    """The step's compensation, with its journal open; its action had failed."""
    await office.failed(task)
    holder = Holder(office, task, phase=str(Phase.COMPENSATION), worker="undoer")
    await holder.open()
    return holder
