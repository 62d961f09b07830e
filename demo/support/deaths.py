"""Who dies at which entry of which journal: orders, and the hand that carries them out.

An order is a file that is named after its task. The agent's process that writes that task's journal
looks for it around each request. At the place that the order names it marks the order as carried
out, and then kills whom the order names, itself included. So each is carried out once, however
often the process comes back.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeVar
from uuid import UUID

import orjson
from headway.agents.connection import Connection
from headway.agents.entries import JournalAppended, JournalOpen, JournalOpened, NewEntry
from headway.agents.journal import Coordinated

OPEN = "open"  # the request that opens the journal
UNDER_WAY_S = 0.001  # after so long a request is on its way, and perhaps not answered yet

When = Literal["before", "during", "after"]
WHENS: tuple[When, ...] = ("before", "during", "after")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A request to the journal, named by an entry in it, and when: around it, or amid it."""

    entry: str
    when: When


@dataclass(frozen=True, slots=True)
class Order:
    """At `place` the processes whose numbers are in the files `victims` are killed, and then the
    agent's own is killed, or frozen, or spared."""

    entry: str
    when: When
    victims: tuple[str, ...] = ()
    itself: Literal["killed", "frozen", "spared"] = "killed"


SPARE = Order("nothing at all", "before")  # an order that only has the places written down


class Orders:
    """The orders in a folder, and what became of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def give(self, task: UUID, order: Order) -> None:
        """Have it carried out. Before the task is submitted, or it may be too late."""
        self._file(task, "order").write_bytes(orjson.dumps(asdict(order)))

    def of(self, task: UUID) -> Order | None:
        """What is still to be done to a task."""
        try:
            found = orjson.loads(self._file(task, "order").read_bytes())
        except FileNotFoundError:
            return None
        return Order(**found)

    def mark_carried_out(self, task: UUID) -> None:
        self._file(task, "order").rename(self._file(task, "done"))

    def carried_out(self, task: UUID) -> bool:
        return self._file(task, "done").exists()

    def note(self, task: UUID, line: str) -> None:
        """Write a line about a task's journal."""
        with self._file(task, "notes").open("a") as notes:
            notes.write(f"{line}\n")

    def notes(self, task: UUID) -> list[str]:
        """All lines about a task's journal."""
        file = self._file(task, "notes")
        return file.read_text().splitlines() if file.exists() else []

    def _file(self, task: UUID, kind: str) -> Path:
        return self._folder / f"{task}.{kind}"


class Watched(Coordinated):
    """A journal around each of whose requests an order may be carried out, by `execute`."""

    def __init__(
        self,
        orders: Orders,
        execute: Callable[[Order], None],
        connection: Connection,
        agent: str,
        opening: JournalOpen,
    ) -> None:
        super().__init__(connection, agent, opening)
        self._orders = orders
        self._execute = execute
        self._of = opening.task
        self._checkpoints = 0

    async def open(self) -> JournalOpened:
        return await self._around([OPEN], super().open())

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        return await self._around(self._names(entries), super().append(epoch, seq, entries))

    def _names(self, entries: Sequence[NewEntry]) -> list[str]:
        """Entries of calls by their keys; a checkpoint by its number, if it comes alone."""
        names = [f"{entry.kind} {entry.key}" for entry in entries if entry.key]
        if not names:
            self._checkpoints += 1
            names = [f"checkpoint {self._checkpoints}"]
        return names

    async def _around(self, names: list[str], request: Awaitable[T]) -> T:
        asking = asyncio.ensure_future(request)  # does not begin before something is awaited
        self._look(names, "before")
        await asyncio.wait({asking}, timeout=UNDER_WAY_S)
        self._look(names, "during")
        try:
            answer = await asking
        except Exception as error:
            self._orders.note(self._of, f"refused: {type(error).__name__}")
            raise
        self._look(names, "after")
        return answer

    def _look(self, names: list[str], when: When) -> None:
        order = self._orders.of(self._of)
        if order is None:
            return
        for name in names:
            self._orders.note(self._of, f"{when} {name}")
            if (order.entry, order.when) == (name, when):
                self._orders.mark_carried_out(self._of)
                self._execute(order)


def execute(order: Order) -> None:
    """Kill as ordered. Who is frozen goes on from here when it is thawed."""
    for file in order.victims:
        with suppress(ProcessLookupError, FileNotFoundError):  # it is dead just now
            os.kill(int(Path(file).read_text()), signal.SIGKILL)
    if order.itself != "spared":
        os.kill(os.getpid(), signal.SIGKILL if order.itself == "killed" else signal.SIGSTOP)


def places(notes: Sequence[str]) -> list[Place]:
    """Every place that an unharmed task came by, in order."""
    entries = dict.fromkeys(line.partition(" ")[2] for line in notes if line.startswith("before "))
    return [Place(entry, when) for entry in entries for when in WHENS]
