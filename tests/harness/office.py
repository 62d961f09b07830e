"""An office: an agent that does what a task's input says, and sagas with steps of every kind.

An input is `{"a": "reject"}`: what step `a` does. "reject" fails it, "hold" keeps it until it is
released or not wanted any more, `{"says": 3}` too, with its progress; `{"gives": 7}` is its result,
`{"hands": [...]}` its hand-off.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any
from uuid import UUID

from headway.agents import Agent, Context, Halted, HandOff, Next, Reject
from headway.agents.api import Api
from headway.agents.connection import Connection
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    NewEntry,
)
from headway.sagas import Retry, Saga

QUICK = Retry(initial_interval=0.05, maximum_interval=0.1, maximum_attempts=2)
TIMEOUT_S = 0.3


class Office:
    """`log` has what was done for a task, in order: the step, or "undo" and the step."""

    def __init__(self, connection: Connection) -> None:
        self.log: dict[UUID, list[str]] = defaultdict(list)
        self.told: dict[UUID, list[str]] = defaultdict(list)  # why an output was rejected
        self.held: dict[UUID, asyncio.Event] = defaultdict(asyncio.Event)
        self._connection = connection
        self.agents = [self._clerk(name) for name in ("desk", "ann", "bob")]

    def _clerk(self, name: str) -> Agent:
        agent = Agent(name)
        agent.action("do")(self._do)
        agent.compensation("undo")(self._undo)
        return agent

    async def _do(self, ctx: Context, order: Any) -> Any:
        self.log[ctx.task].append(ctx.step)
        self.told[ctx.task].append(ctx.rejection)
        match order.get(ctx.step, order.get("each")) if isinstance(order, dict) else None:
            case "reject":
                raise Reject("as ordered")
            case "hold":
                await self._hold(ctx)
            case {"says": progress}:
                await ctx.heartbeat(progress)
                await self._hold(ctx)
            case "unsettled" if len(self.log[ctx.task]) == 1:
                await self._leave_a_call_open(ctx)
            case {"gives": value}:
                return value
            case {"better": value}:
                return value if ctx.rejection else None
            case {"hands": steps}:
                return HandOff(None, *(Next(**step) for step in steps))
            case {"passes": [first, second]}:
                to = second if ctx.agent == first else first
                return HandOff(None, Next(f"{to}.do", read_only=True, input=order))
        return None

    async def _hold(self, ctx: Context) -> None:
        held = asyncio.create_task(self.held[ctx.task].wait())
        stopped = asyncio.create_task(ctx.wait_cancelled())
        await asyncio.wait({held, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not held.done():
            raise Reject("stopped")

    async def _undo(self, ctx: Context, order: Any, result: Any) -> None:
        self.log[ctx.task].append(f"undo {ctx.step}")
        if isinstance(order, dict) and order.get(f"undo {ctx.step}") == "reject":
            raise Reject("cannot")

    async def _leave_a_call_open(self, ctx: Context) -> None:
        """As one does that died in a call of which nobody can tell whether it happened."""
        place = {"task": ctx.task, "step": ctx.step, "phase": ctx.phase}
        api = Api(self._connection, agent=ctx.agent)
        opening = JournalOpen(**place, attempt=ctx.attempt, epoch=ctx.epoch, worker="w")
        opened = await api.ask("journal.open", opening, JournalOpened)
        intent = NewEntry(kind="intent", key="pay#1", tool="pay", arguments_digest="f" * 64)
        intent.data = {"amount": 5}
        append = JournalAppend(**place, epoch=opened.epoch, seq=1, entries=[intent])
        await api.ask("journal.append", append, JournalAppended)
        raise Halted("nobody can tell whether 'pay#1' happened", kind="Unsettled")


def desk(saga: Saga, name: str, after: str = "", **fields: Any) -> Saga:
    """A step of the desk, which can be undone."""
    fields = {"compensate": "desk.undo", "retry": QUICK, "compensation_retry": QUICK, **fields}
    return saga.step(name, "desk.do", after=after or (), **fields)


def sagas() -> list[Saga]:
    """Small ones, each for one thing."""
    return [*_waiting(), *_conditional(), *_families(), *_plain()]


def _waiting() -> list[Saga]:
    agreed = desk(desk(Saga("agreed"), "a").approval("agree", after="a"), "b", "agree")
    paid = desk(desk(Saga("paid"), "a").wait("paid", after="a"), "b", "paid")
    twice = Saga("twice").wait("first", signal="tick").wait("second", signal="tick", after="first")
    late = desk(Saga("late"), "a").wait("paid", after="a", timeout=TIMEOUT_S)
    asleep = desk(desk(Saga("asleep"), "a").sleep("nap", 1.5, after="a"), "b", "nap")
    timed = [
        desk(Saga(f"timed-{default or 'none'}"), "a").approval(
            "agree", after="a", timeout=TIMEOUT_S, default=default
        )
        for default in ("", "approve", "reject")
    ]
    return [agreed, paid, twice, late, asleep, *timed]


def _conditional() -> list[Saga]:
    large = desk(desk(desk(Saga("large"), "a"), "b", "a", when="input.total > 500"), "c", "b")
    missing = desk(desk(Saga("missing"), "a"), "b", "a", when="results.a.total > 500")
    odd = desk(desk(Saga("odd"), "a"), "b", "a", when="input.total")
    return [large, missing, odd]


def _families() -> list[Saga]:
    small = desk(desk(Saga("small"), "x"), "y", "x")
    firm = Saga("firm").step("x", "desk.do", pivot=True, retry=QUICK)
    return [
        small,
        firm,
        *(
            desk(desk(Saga(name), "a").child("c", saga, after="a"), "z", "c")
            for name, saga in (("family", "small"), ("firm-family", "firm"), ("lost", "nowhere"))
        ),
    ]


def _plain() -> list[Saga]:
    plain = desk(desk(Saga("plain"), "a"), "b", "a")
    past = Saga("past").step("a", "desk.do", pivot=True, retry=QUICK)
    past.step("b", "desk.do", after="a", retry=QUICK)
    talk = Saga("talk").step("ask", "ann.do", read_only=True)
    return [plain, past, talk]
