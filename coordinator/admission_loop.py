"""Who admits, and when: one coordinator at a time, as fast as the limits permit.

Each look: free what ended; be, or become, the one who admits; take the first of the line that have
room; check against the stored state that each is still wanted; mark them admitted; publish them.

Always holds: only who holds the turn admits, and the statement that admits checks that, so that
two never count against each other; what is published was marked before, so that a crash between can
only leave a command that the sweep finds lost; nothing is admitted for an agent that has no
instance, so that it holds no room from those that have.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

import asyncpg
from headway.agents.pace import SAID_EVERY_S
from headway.agents.subjects import paced_subject
from headway.coordinator.admission_limits import REFRESH_S, Declared
from headway.coordinator.admission_turns import use_of
from headway.coordinator.admissions import Admissions, Transport, columns
from headway.coordinator.commands import Outgoing, command
from headway.coordinator.limits import agent_place
from headway.coordinator.pacing import Candidate, Room, admitted, agents_with_room, in_line
from headway.coordinator.records import Loaded
from headway.coordinator.store import Store
from headway.sagas.actions import Dispatch
from headway.sagas.task import Phase
from headway.sagas.transition import outstanding

_LOG = logging.getLogger(__name__)

INTERVAL_S = 0.05
INTERVAL_MAX_S = 0.25  # where a look takes long; well within what is admitted ahead
TURN_MS = 1_000  # a coordinator that admits and dies is followed by another after so long
CANDIDATES_MAX = 64  # of each agent and lane, in one round
ADMITTED_MAX = 256  # at once
ROUNDS_MAX = 4  # in which more is looked for beside places that are full
NEW_MS = 60_000  # a command that waits no longer is new, and has a lane beside the backlog
COMPARE_EVERY_S = 5.0
COMPARED_MAX = 500
COMPARED_AGE_MS = 5_000
BUCKET_KEPT_MS = 3_600_000
_FIRST_ID = UUID(int=0)

Key = tuple[UUID, str]


class AdmissionLoop:
    def __init__(
        self,
        coordinator: UUID,
        store: Store,
        declared: Declared,
        admissions: Admissions,
        transport: Transport,
        delivering: Callable[[], tuple[list[str], frozenset[str]]],
        say: Callable[[str, bytes], None],
    ) -> None:
        """`delivering` tells the agents that have an instance and get commands, and which of them
        get one at a time. `say` publishes on core NATS."""
        self._coordinator = coordinator
        self._store = store
        self._declared = declared
        self._admissions = admissions
        self._transport = transport
        self._delivering = delivering
        self._say = say
        self._said_at = -SAID_EVERY_S
        self._work = asyncio.Event()
        self._fresh_first = False
        self._compared_at = 0.0
        self._compared = _FIRST_ID
        self._full: tuple[str, ...] = ()  # at the last look: it is gone on beside these

    def wake(self) -> None:
        """Something waits, or has ended: look at once."""
        self._work.set()

    async def step(self) -> None:
        """One look, and the pause after it."""
        self._work.clear()
        began = time.monotonic()
        await self._declared.refresh()
        if self._declared.active:
            await self._admissions.release()
            turn = await self._store.fetch("take_admission_turn", self._coordinator, TURN_MS)
            if turn:
                self._say_paced()
                await self._admit(turn[0]["now_us"])
                await self._compare_now_and_then()
        took_s = time.monotonic() - began
        busy = min(max(INTERVAL_S, took_s), INTERVAL_MAX_S)
        await self._pause(busy if self._declared.active else REFRESH_S)

    def _say_paced(self) -> None:
        """Tell the workers of agents that something limits to ask for their turns."""
        if time.monotonic() - self._said_at >= SAID_EVERY_S:
            self._said_at = time.monotonic()
            for agent in self._declared.paced:
                self._say(paced_subject(agent), b"")

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            return

    async def _admit(self, now_us: int) -> None:
        agents, singly = self._delivering()
        limits = self._declared.limits
        use = use_of(await self._store.fetch("admission_usage"))
        of_agents = [agent_place(agent) for agent in agents]
        room = Room(limits, use, {}, now_us, singly)
        room.levels = await self._levels(list(limits.limiting([*of_agents, *self._full])))
        for place in self._full:
            room.has((place,))
        try:
            await self._admit_in_rounds(agents, room)
        finally:
            self._full = tuple(room.full)

    async def _admit_in_rounds(self, agents: Sequence[str], room: Room) -> None:
        """Admit from the line, again and again beside the places that are found full."""
        limits = room.limits
        for _ in range(ROUNDS_MAX):
            found = await self._candidates(agents_with_room(agents, room), room)
            if not found:
                return
            line = in_line(found, fresh_first=self._fresh_first)
            places = limits.limiting(place for each in line for place in each.places)
            missing = [place for place in places if place not in room.levels]
            room.levels = {**room.levels, **await self._levels(missing)}
            full = len(room.full)
            taken = admitted(line, room, ADMITTED_MAX)
            if taken:
                self._fresh_first = not taken[-1].fresh
                await self._let_in(taken)
            if len(room.full) == full:
                return

    async def _levels(self, places: Sequence[str]) -> dict[str, int]:
        rows = await self._store.fetch("bucket_levels", list(places)) if places else []
        return {row["place"]: row["level_us"] for row in rows}

    async def _candidates(self, agents: Sequence[str], room: Room) -> list[Candidate]:
        if not agents:
            return []
        arguments = (list(agents), list(room.full), CANDIDATES_MAX, NEW_MS)
        return [
            _candidate(row) for row in await self._store.fetch("admission_candidates", *arguments)
        ]

    async def _let_in(self, taken: Sequence[Candidate]) -> None:
        """Mark as admitted what is still wanted, and publish it; forget the rest."""
        loaded = await self._store.read(list({each.task: None for each in taken}))
        wanted = {
            (each.task, each.step): command
            for each in taken
            if (command := _command(loaded.get(each.task), each)) is not None
        }
        stale = [_named(each) for each in taken if (each.task, each.step) not in wanted]
        if stale:
            await self._store.fetch("drop_admissions", *columns(stale, 5))
        rows = [_named(each) for each in taken if (each.task, each.step) in wanted]
        if not rows:
            return
        marked = await self._store.fetch("admit", self._coordinator, *columns(rows, 5))
        commands = [wanted[row["task_id"], row["step"]] for row in marked]
        stored = await self._transport.dispatch(commands)
        lost = [
            (each.task, *(each.attributes[word] for word in ("step", "attempt", "epoch")))
            for each, ok in zip(commands, stored, strict=True)
            if not ok
        ]
        if lost:
            await self._store.fetch("requeue_admissions", *columns(lost, 4))

    async def _compare_now_and_then(self) -> None:
        """Drop the rows of attempts that ended unseen; a page of all rows at a time."""
        if time.monotonic() - self._compared_at < COMPARE_EVERY_S:
            return
        page = (self._compared, COMPARED_MAX, COMPARED_AGE_MS)
        rows = await self._store.fetch("admissions_after", *page)
        loaded = await self._store.read(list({row["task_id"]: None for row in rows}))
        stale = [
            (row["task_id"], *(row[word] for word in ("step", "phase", "attempt", "epoch")))
            for row in rows
            if not _goes_on(loaded.get(row["task_id"]), row)
        ]
        if stale:
            _LOG.info("%d admissions were left behind by attempts that ended", len(stale))
            await self._store.fetch("drop_admissions", *columns(stale, 5))
        await self._store.fetch("prune_buckets", BUCKET_KEPT_MS)
        whole = len(rows) < COMPARED_MAX
        self._compared = _FIRST_ID if whole else rows[-1]["task_id"]
        self._compared_at = time.monotonic() if whole else self._compared_at


def _candidate(row: asyncpg.Record) -> Candidate:
    names = ("task_id", "step", "phase", "attempt", "epoch", "agent")
    named = {"task" if name == "task_id" else name: row[name] for name in names}
    return Candidate(
        **named,
        places=tuple(row["places"]),
        priority=row["priority"],
        since_us=row["since_us"],
        fresh=row["fresh"],
    )


def _named(each: Candidate) -> tuple[UUID, str, str, int, int]:
    return each.task, each.step, each.phase, each.attempt, each.epoch


def _command(loaded: Loaded | None, each: Candidate) -> Outgoing | None:
    """The command to publish; None if the state does not ask for this one."""
    wanted = Dispatch(each.step, Phase(each.phase), each.attempt, each.epoch)
    if loaded is None or wanted not in outstanding(loaded.definition, loaded.task):
        return None
    found = command(loaded, wanted)
    found.attributes["paced"] = True
    return found


def _goes_on(loaded: Loaded | None, row: asyncpg.Record) -> bool:
    """Whether the attempt of a row is still outstanding."""
    if loaded is None:
        return False
    return any(
        (sent.step, str(sent.phase), sent.attempt) == (row["step"], row["phase"], row["attempt"])
        for sent in _unanswered(loaded)
    )


def _unanswered(loaded: Loaded) -> Iterable[Dispatch]:
    """Attempts that may be going on: those that were asked to stop, too."""
    for name, state in loaded.task.steps.items():
        if state.outstanding and loaded.definition.steps[name].kind == "action":
            yield Dispatch(name, state.phase, state.attempt, state.epoch)
