"""An agent whose tools leave traces, and orders to die or freeze around one request or effect.

An errand is `{"at": "before 3", "what": "die"}`: before its journal's third request. Each order is
carried out once, by whoever comes by first.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

from headway.agents import (
    DID_NOT_HAPPEN,
    Agent,
    Attempts,
    Call,
    Connection,
    Context,
    Happened,
    tool,
)
from headway.agents.entries import JournalAppended, JournalOpen, JournalOpened, NewEntry
from headway.agents.journal import Coordinated
from headway.sagas import Saga

T = TypeVar("T")

_SCHEMA = """
create table if not exists effects (
    seq integer primary key, tool text not null, task text not null, id text not null
);
create unique index if not exists stamps on effects (id) where tool = 'stamp';
create table if not exists marks (
    seq integer primary key, task text not null, what text not null, pid integer not null,
    unique (task, what)
);
"""


class Traces:
    """What was done, in an SQLite file that many processes share: every effect, none deduped but
    those of `stamp`; and marks of what processes came by."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.executescript("pragma journal_mode = wal; pragma synchronous = off;")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def leave(self, name: str, call: Call) -> None:
        self._db.execute(
            "insert or ignore into effects (tool, task, id) values (?, ?, ?)",
            (name, str(call.task), str(call.id)),
        )

    def left(self, call: Call) -> bool:
        found = self._db.execute("select 1 from effects where id = ?", (str(call.id),))
        return found.fetchone() is not None

    def effects(self, task: object) -> list[str]:
        rows = self._db.execute("select tool from effects where task = ?", (str(task),))
        return sorted(name for [name] in rows.fetchall())

    def mark(self, task: object, what: str) -> bool:
        """Whether nobody had left this mark before."""
        added = self._db.execute(
            "insert or ignore into marks (task, what, pid) values (?, ?, ?)",
            (str(task), what, os.getpid()),
        )
        return added.rowcount == 1

    def marks(self, task: object) -> dict[str, int]:
        """Every mark of a task, in order, and who left it."""
        rows = self._db.execute(
            "select what, pid from marks where task = ? order by seq", (str(task),)
        )
        return dict(rows.fetchall())


class Ordered:
    """Orders, by task; and where the current process carries them out."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._orders: dict[str, dict[str, str]] = {}

    def give(self, task: object, order: dict[str, str]) -> None:
        self._orders[str(task)] = order

    def come_by(self, task: object, place: str) -> None:
        """Leave a mark, and do as ordered for this place, unless that was done before."""
        self._traces.mark(task, place)
        order = self._orders.get(str(task), {})
        if order.get("at") == place and self._traces.mark(task, order["what"]):
            os.kill(os.getpid(), signal.SIGSTOP if order["what"] == "freeze" else signal.SIGKILL)


class Watched(Coordinated):
    """A journal whose requests are places; `opening` is number 0."""

    def __init__(
        self, ordered: Ordered, connection: Connection, agent: str, opening: JournalOpen
    ) -> None:
        super().__init__(connection, agent, opening)
        self._ordered = ordered
        self._of = opening.task
        self._requests = 0

    async def open(self) -> JournalOpened:
        return await self._around("open", super().open())

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        self._requests += 1
        return await self._around(str(self._requests), super().append(epoch, seq, entries))

    async def _around(self, name: str, request: Awaitable[T]) -> T:
        self._ordered.come_by(self._of, f"before {name}")
        answer = await request
        self._ordered.come_by(self._of, f"after {name}")
        return answer


def errands(name: str, traces: Traces, ordered: Ordered) -> Agent:
    """The agent `name`, with one action `run` of four calls, two of them beside each other."""
    agent = Agent(name)

    @tool(recovery="natural")
    async def look(number: int) -> int:
        return number + 1

    @tool(recovery="dedupe_key")
    async def stamp(call: Call, number: int) -> str:
        ordered.come_by(call.task, f"before stamp {number}")
        traces.leave("stamp", call)
        ordered.come_by(call.task, f"after stamp {number}")
        return f"stamp {number}"

    async def was_sent(call: Call, text: str) -> Any:
        return Happened(f"sent {text}") if traces.left(call) else DID_NOT_HAPPEN

    @tool(recovery="check", check=was_sent, retry=Attempts(maximum_attempts=3))
    async def send(call: Call, text: str) -> str:
        ordered.come_by(call.task, "before send")
        traces.leave("send", call)
        ordered.come_by(call.task, "after send")
        return f"sent {text}"

    @agent.action("run", tools=[look, stamp, send])
    async def run(ctx: Context, errand: dict[str, str]) -> list[str]:
        ordered.give(ctx.task, errand)
        number = await ctx.call(look, 1)
        stamps = await asyncio.gather(ctx.call(stamp, number), ctx.call(stamp, number + 1))
        await ctx.checkpoint({"stamps": stamps})
        return [*stamps, await ctx.call(send, stamps[-1], key="the mail")]

    return agent


DONE = ["stamp 2", "stamp 3", "sent stamp 3"]
EFFECTS = ["send", "stamp", "stamp"]


def errand_saga(name: str) -> Saga:
    return Saga(name).step("run", f"{name}.run", pivot=True)


def outlive(parent: int) -> None:
    """End this process when its parent has ended; looks now and then, in a thread."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
