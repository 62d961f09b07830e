"""The net under everything: timers that went off, and dispatches that nobody answered.

A dispatch is in order while its command is in the stream (queued or worked on) or an event of
its task waits to be handled. Otherwise it was lost, and is published again under a new epoch.
Commands are looked for before events: an agent's event is stored before its command goes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Protocol
from uuid import UUID

from headway.coordinator.commands import Sought, sought_of
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.family import child_id, overlooked
from headway.coordinator.intake import Item, nobody_waits
from headway.coordinator.records import Loaded
from headway.sagas import inputs as i
from headway.sagas.actions import Dispatch
from headway.sagas.deadlines import check_due, clock_due, due
from headway.sagas.transition import children, outstanding

BATCH_MAX = 500  # tasks in one look
LEASE_MS = 5_000  # for which a due task is ours; a peer takes it after that
SUSPECT_AGE_MS = 800  # a younger dispatch may still be on its way into the stream
OTHERS_AGE_MS = (
    2_000  # the same for a peer's, which may be busy: what it publishes later is claimed
)
LOOK_AHEAD_MS = 60_000  # covers each dispatch that a crash may have swallowed
_FIRST_ID = UUID(int=0)


class Timers(Protocol):
    """The store, as far as the sweep needs it."""

    async def claim_due(self, now: int, lease_ms: int, limit: int) -> list[UUID]: ...
    async def read(self, ids: Sequence[UUID]) -> dict[UUID, Loaded]: ...
    async def postpone(self, timers: Sequence[tuple[UUID, int, int]]) -> None: ...
    async def open_tasks(self, after: UUID, limit: int, due_before: int | None) -> list[UUID]: ...


class Contents(Protocol):
    """The bus, as far as the sweep needs it."""

    async def outstanding(self, commands: Sequence[Sought]) -> set[Sought]: ...
    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]: ...


class _Suspicion(NamedTuple):
    """How old a task's dispatches must be to be looked after, and from when on to look (both ms);
    the more urgent of two is the smaller."""

    age: int
    since: int


class Sweep:
    def __init__(
        self,
        timers: Timers,
        contents: Contents,
        put: Callable[[Item], None],
        clock: Callable[[], int],
        rng: random.Random,
    ) -> None:
        self._timers = timers
        self._contents = contents
        self._put = put
        self._clock = clock
        self._rng = rng
        self._suspects: dict[UUID, _Suspicion] = {}
        self.republished = 0

    def suspect(self, task: UUID) -> None:
        """Look after this task's dispatches soon: one of them may have been cut short."""
        self._suspect(task, _Suspicion(SUSPECT_AGE_MS, 0))

    async def step(self) -> bool:
        """One look at what is due or suspect; true if there may be more at once."""
        now = self._clock()
        due_now = await self._timers.claim_due(now, LEASE_MS, BATCH_MAX)
        ripe = (task for task, suspicion in self._suspects.items() if suspicion.since <= now)
        suspects = {task: self._suspects.pop(task) for task in list(islice(ripe, BATCH_MAX))}
        try:
            await self._look(due_now, suspects, now)
        except CoordinatorError:
            for task, suspicion in suspects.items():
                self._suspect(task, suspicion)
            raise
        return len(due_now) == BATCH_MAX or len(suspects) == BATCH_MAX

    async def look_over(self, due_before_ms: int | None, age_ms: int = SUSPECT_AGE_MS) -> int:
        """Suspect every task that waits for something, or those due within so many ms; but no
        dispatch that is younger than `age_ms`."""
        before = None if due_before_ms is None else self._clock() + due_before_ms
        after, count = _FIRST_ID, 0
        while True:
            page = await self._timers.open_tasks(after, BATCH_MAX, before)
            for task in page:
                self._suspect(task, _Suspicion(age_ms, 0))
            count += len(page)
            if len(page) < BATCH_MAX:
                return count
            after = page[-1]

    def _suspect(self, task: UUID, suspicion: _Suspicion) -> None:
        self._suspects[task] = min(suspicion, self._suspects.get(task, suspicion))

    async def _look(
        self, due_now: Iterable[UUID], suspects: Mapping[UUID, _Suspicion], now: int
    ) -> None:
        ids = list(dict.fromkeys([*due_now, *suspects]))
        loaded = await self._timers.read(ids)
        checks: list[tuple[Loaded, Dispatch]] = []
        timers: list[tuple[UUID, int, int]] = []
        for task in loaded.values():
            suspicion = suspects.get(task.id)
            checks += [(task, sent) for sent in self._to_check(task, suspicion, now)]
            if clock_due(task.definition, task.task, now):
                self._put(Item(task.id, i.Tick(now, self._jitter()), nobody_waits))
                continue
            later = due(task.definition, task.task, checked_at=now)
            if later is not None:
                timers.append((task.id, task.task.version, later))
        for parent, missed in await self._of_children(loaded.values(), suspects, now):
            self._put(Item(parent, missed, nobody_waits))
        for task, sent in await self._lost(checks, now):
            self.republished += 1
            lost = i.DispatchLost(now, sent.step, sent.phase, sent.attempt, sent.epoch, fenced=True)
            self._put(Item(task.id, lost, nobody_waits))
        await self._timers.postpone(timers)

    def _to_check(self, task: Loaded, suspicion: _Suspicion | None, now: int) -> Iterable[Dispatch]:
        for sent in outstanding(task.definition, task.task):
            state = task.task.steps[sent.step]
            ripe_at = state.dispatched_at + (suspicion.age if suspicion else 0)
            if check_due(state, now) or (suspicion and now >= ripe_at):
                yield sent
            elif suspicion:
                self._suspect(task.id, _Suspicion(suspicion.age, ripe_at))

    async def _of_children(
        self, tasks: Iterable[Loaded], suspects: Mapping[UUID, _Suspicion], now: int
    ) -> list[tuple[UUID, i.Input]]:
        """What tasks that wait for a child have missed of it."""
        waiting = [
            (task.id, sent, child_id(task.id, sent.step, sent.attempt))
            for task in tasks
            for sent in children(task.definition, task.task)
            if task.id in suspects or check_due(task.task.steps[sent.step], now)
        ]
        found = await self._timers.read([child for _, _, child in waiting]) if waiting else {}
        missed = [
            (parent, overlooked(found.get(child), sent, parent, now))
            for parent, sent, child in waiting
        ]
        return [(parent, news) for parent, news in missed if news is not None]

    async def _lost(
        self, checks: Sequence[tuple[Loaded, Dispatch]], now: int
    ) -> list[tuple[Loaded, Dispatch]]:
        """Those whose command is nowhere. While an event of their task waits it may be of another
        step, so that they stay suspect until it is handled."""
        if not checks:
            return []
        sought = [sought_of(*check) for check in checks]
        present = await self._contents.outstanding(sought)
        absent = [
            check for check, command in zip(checks, sought, strict=True) if command not in present
        ]
        if not absent:
            return []
        unread = await self._contents.unread([task.id for task, _ in absent])
        for task, _ in absent:
            if task.id in unread:
                self._suspect(task.id, _Suspicion(SUSPECT_AGE_MS, now + SUSPECT_AGE_MS))
        return [(task, sent) for task, sent in absent if task.id not in unread]

    def _jitter(self) -> float:
        return self._rng.uniform(-1.0, 1.0)
