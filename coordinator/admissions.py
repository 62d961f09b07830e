"""Commands that something limits wait in PostgreSQL, not in the stream, until they are admitted.

`Admissions` stands before the bus. What nothing limits goes through at the cost of one look into a
dictionary. For the rest a row is written instead of a message, and the rows are derived: they hold
nothing that the tasks' state does not say, so that whatever happens to them can be set right.

Always holds:

- A command is dispatched (`true`) once its row is committed or its message stored. A crash before
  leaves a dispatch that is in no stream and no row: the sweep finds it, as any that was lost.
- A row that waits counts as present, so the sweep leaves it alone, however long it waits. An
  admitted one does not: if a coordinator dies between admitting and publishing, its command is
  found missing and comes back into the line under a new epoch.
- A step has one row. Only a newer command (phase, attempt, epoch) takes its place: what comes late
  from another coordinator changes nothing.
- A row is released when its attempt is seen to end, whatever ended it. What is overlooked (a crash,
  a race) is found by comparing rows with the state: a slot is held too long, never too short.
- Compensations are admitted as all others, before all others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

import orjson
from headway.agents.subjects import parse_command_subject
from headway.coordinator import literals
from headway.coordinator.admission_limits import Declared
from headway.coordinator.commands import Outgoing, Sought
from headway.coordinator.decisions import Decision
from headway.coordinator.errors import StoreRefused, StoreUnavailable
from headway.coordinator.limits import places_of
from headway.coordinator.store import Store
from headway.sagas.actions import Stop
from headway.sagas.task import StepState

_LOG = logging.getLogger(__name__)


class Transport(Protocol):
    """The bus, as far as it is stood before."""

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]: ...
    async def withdraw(self, commands: Sequence[Sought]) -> set[Sought]: ...
    def stop(self, agent: str, task: UUID, stop: Stop) -> None: ...
    def announce(self, decision: Decision, kind: str) -> None: ...


class Contents(Protocol):
    """The streams, as the sweep looks into them."""

    async def outstanding(self, commands: Sequence[Sought]) -> set[Sought]: ...
    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]: ...


Ended = tuple[UUID, str, str, int]
"""An attempt that ended: task, step, phase, attempt."""


class Admissions:
    """Transport of the engine, and contents for the sweep."""

    def __init__(
        self,
        store: Store,
        declared: Declared,
        transport: Transport,
        contents: Contents,
        observe: Callable[[Decision], None],
        on_work: Callable[[], None],
    ) -> None:
        """`observe` sees every decision; `on_work` is called when something waits or has ended."""
        self._store = store
        self._declared = declared
        self._transport = transport
        self._contents = contents
        self._observe = observe
        self._on_work = on_work
        self._ended: list[Ended] = []

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]:
        """True for each command that is known to be in the stream, or in the line."""
        if not self._declared.active:
            return await self._transport.dispatch(commands)
        limited = [self._is_limited(command) for command in commands]
        open_, waiting = (
            [command for command, held in zip(commands, limited, strict=True) if held is which]
            for which in (False, True)
        )
        stored = iter(await self._transport.dispatch(open_) if open_ else ())
        queued = await self._queue(waiting) if waiting else False
        return [queued if held else next(stored) for held in limited]

    async def withdraw(self, commands: Sequence[Sought]) -> set[Sought]:
        """Remove commands from line and stream; returns those that no agent ever had."""
        if not self._declared.active:
            return await self._transport.withdraw(commands)
        rows = []
        named = [(*_named(command), command.attempt) for command in commands]
        try:
            rows = await self._store.fetch("unqueue_commands", *columns(named, 4))
        except StoreUnavailable as error:
            _LOG.info("commands could not be taken out of the line: %s", error)
        unqueued = {row["subject"] for row in rows if not row["epoch"]}
        unbegun = {command for command in commands if command.subject in unqueued}
        rest = tuple(command for command in commands if command not in unbegun)
        return unbegun | await self._transport.withdraw(rest)

    def stop(self, agent: str, task: UUID, stop: Stop) -> None:
        self._transport.stop(agent, task, stop)

    def announce(self, decision: Decision, kind: str) -> None:
        """Tell where a task stands, having taken note of the attempts that ended."""
        self._observe(decision)
        if self._declared.active:
            before = len(self._ended)
            self._ended.extend(_ended(decision))
            if len(self._ended) > before:
                self._on_work()
        self._transport.announce(decision, kind)

    async def outstanding(self, commands: Sequence[Sought]) -> set[Sought]:
        """Which of these commands are in the stream or in the line."""
        found = await self._contents.outstanding(commands)
        absent = [command for command in commands if command not in found]
        if not absent:
            return found
        named = [_named(command) for command in absent]
        rows = await self._store.fetch("waiting_commands", *columns(named, 3))
        waiting = {row["subject"] for row in rows}
        return found | {command for command in absent if command.subject in waiting}

    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]:
        return await self._contents.unread(tasks)

    async def release(self) -> None:
        """Free the slots of the attempts that were seen to end."""
        ended, self._ended = self._ended, []
        if not ended:
            return
        try:
            await self._store.fetch("release_admissions", *columns(ended, 4))
        except StoreUnavailable:
            self._ended = ended + self._ended
            raise

    def _is_limited(self, command: Outgoing) -> bool:
        if not self._declared.concerns(command.agent, command.attributes["saga"]):
            return False
        return bool(self._declared.limits.limiting(_places(command)))

    async def _queue(self, commands: Sequence[Outgoing]) -> bool:
        rows = [_row(command) for command in commands]
        try:
            await self._store.fetch("queue_commands", *columns(rows, 9))
        except (StoreUnavailable, StoreRefused) as error:
            _LOG.info("commands are not in the line yet: %s", error)
            return False
        self._on_work()
        return True


def _places(command: Outgoing) -> tuple[str, ...]:
    return places_of(command.agent, command.attributes["saga"], command.tags)


def _row(command: Outgoing) -> tuple[object, ...]:
    said = command.attributes
    return (
        command.task,
        said["step"],
        str(said["phase"]),
        said["attempt"],
        said["epoch"],
        command.agent,
        command.subject,
        orjson.dumps(_places(command)),
        command.priority,
    )


def _named(command: Sought) -> tuple[UUID, str, str]:
    """Task, step and subject."""
    parsed = parse_command_subject(command.subject)
    return UUID(parsed.task), parsed.step, command.subject


def columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    """Rows as a statement's arrays, in one order for all, so that two statements do not each wait
    for rows that the other has."""
    return literals.columns(sorted(rows, key=lambda row: row[:2]), width)


def _ended(decision: Decision) -> Iterator[Ended]:
    """The attempts that were outstanding before a decision and are not any more."""
    if decision.change is None or decision.before is None or decision.task is None:
        return
    after = decision.task.steps
    for name, state in decision.before.task.steps.items():
        if state.outstanding and not _goes_on(state, after[name]):
            yield decision.id, name, str(state.phase), state.attempt


def _goes_on(before: StepState, after: StepState) -> bool:
    return after is before or (
        after.outstanding and after.phase is before.phase and after.attempt == before.attempt
    )
