"""Breakers at work: outcomes are counted, consumers are paused, probed and let go, people step in.

A breaker's state is a row in PostgreSQL, changed by whichever coordinator sees reason to; each
judges by the outcomes that it decided itself. What JetStream does is made to follow the row, again
and again, so that neither a lost request nor a stream that was made anew leaves it otherwise.

Always holds: a change is made on the version that was read.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

import asyncpg
from headway.agents import subjects
from headway.agents.limit_views import BreakerRequest, BreakerView
from headway.agents.wire import Wire
from headway.coordinator.breaker import (
    Breaker,
    Outcomes,
    State,
    Turned,
    outcome_of,
    overdue,
    turn,
)
from headway.coordinator.breaker_valves import Valves
from headway.coordinator.caller import Caller
from headway.coordinator.decisions import Decision
from headway.coordinator.errors import Refusal, StoreUnavailable
from headway.coordinator.serving import Serve, typed_by
from headway.coordinator.store import Store
from headway.sagas.inputs import Tick

_LOG = logging.getLogger(__name__)

READ_EVERY_S = 1.0
INTERVAL_S = 0.2
ROUNDS_MAX = 8


class Breakers:
    def __init__(
        self,
        store: Store,
        wire: Wire,
        clock: Callable[[], int],
        rng: random.Random,
        on_change: Callable[[], None],
    ) -> None:
        """`clock` is in ms; `on_change` is called when an agent may get more."""
        self._store = store
        self._valves = Valves(wire)
        self._clock = clock
        self._rng = rng
        self._on_change = on_change
        self._outcomes: dict[str, Outcomes] = {}
        self._suspects: dict[str, None] = {}
        self._probed = asyncio.Event()
        self._known: dict[str, Breaker] = {}
        self._read_at = -READ_EVERY_S
        self._behind_ms = 0  # our clock, behind PostgreSQL's

    def operations(self) -> dict[str, Serve]:
        return {
            "agents.pause": typed_by(BreakerRequest, BreakerView, partial(self._by_hand, "paused")),
            "agents.resume": typed_by(
                BreakerRequest, BreakerView, partial(self._by_hand, "closed")
            ),
        }

    def of(self, agent: str) -> Breaker:
        """How an agent's breaker stands, as far as is known here."""
        return self._known.get(agent) or Breaker(agent)

    def observe(self, decision: Decision) -> None:
        """Count what a decision tells of agents."""
        for item, _, changed in decision.answers:
            if not changed:
                continue
            if item.agent:
                failed = outcome_of(item, probed=self._is_probed(item.agent))
                if failed is not None:
                    self._count(item.agent, failed=failed)
            elif type(item.happened) is Tick:
                for agent in overdue(decision):
                    self._count(agent, failed=True)

    def _count(self, agent: str, *, failed: bool) -> None:
        outcomes = self._outcomes.get(agent)
        if outcomes is None:
            outcomes = self._outcomes[agent] = Outcomes()
        outcomes.add(_monotonic_ms(), failed=failed)
        if failed or agent in self._known:
            self._suspects[agent] = None
        if self._is_probed(agent):
            self._probed.set()

    def _is_probed(self, agent: str) -> bool:
        known = self._known.get(agent)
        return known is not None and known.state == "probing"

    def delivering(self, agent: str) -> dict[str, Any]:
        """What is unusual about an agent's consumer: one made anew begins as the old one was."""
        return self._valves.config(self.of(agent), self._now_ms())

    async def step(self) -> None:
        """One look: what is known, what turns, and what JetStream is to do about it; and a pause,
        until a probe tells something or a moment has passed."""
        await self._look()
        with suppress(TimeoutError):
            async with asyncio.timeout(INTERVAL_S):
                await self._probed.wait()

    async def _look(self) -> None:
        self._probed.clear()
        if time.monotonic() - self._read_at >= READ_EVERY_S:
            await self._read()
        now = _monotonic_ms()
        due = [
            each.agent for each in self._known.values() if each.state in ("open", "probing")
        ]  # a probe may have told before we knew that it was one
        suspects, self._suspects = self._suspects, {}
        for agent in dict.fromkeys([*suspects, *due]):
            outcomes = self._outcomes.setdefault(agent, Outcomes())
            turned = turn(self.of(agent), outcomes, now, self._rng.uniform(-1, 1))
            if turned is not None:
                await self._turn(self.of(agent), turned)

    async def _by_hand(self, state: State, request: BreakerRequest, caller: Caller) -> BreakerView:
        """Deliver nothing to an agent until a person says so, or deliver to it again."""
        turned = Turned(state, reason=request.reason)
        if subjects.TOKEN.fullmatch(request.agent) is None:
            raise Refusal(f"{request.agent!r} cannot be the name of an agent", 422)
        for _ in range(ROUNDS_MAX):
            await self._read()
            before = self.of(request.agent)
            if before.state == turned.state:
                return view_of(before)
            act = "agent-paused" if state == "paused" else "agent-resumed"
            made = await self._turn(before, turned, caller.name or request.by, act)
            if made is not None:
                return view_of(made)
        raise StoreUnavailable("its breaker keeps changing; ask again")

    async def _turn(
        self, before: Breaker, turned: Turned, by: str = "", act: str = ""
    ) -> Breaker | None:
        """Change a breaker, unless it is not as it was read, and have JetStream follow. `act` is
        what the audit log calls it, if a person did it."""
        rows = await self._store.fetch(
            "turn_breaker",
            before.agent,
            before.version,
            turned.state,
            turned.open_ms,
            turned.trips,
            turned.reason,
            by,
            act,
        )
        if not rows:
            self._read_at = -READ_EVERY_S
            return None
        breaker = _breaker(rows[0], None)
        self._known[breaker.agent] = breaker
        _LOG.warning("agent %s: breaker %s; %s", breaker.agent, breaker.state, breaker.reason)
        await self._follow(breaker)
        return breaker

    async def _read(self) -> None:
        """What PostgreSQL has; and what is not as usual is said to JetStream again."""
        before = self._known
        await self.learn()
        for agent, breaker in self._known.items():
            if breaker.state != "closed" or before.get(agent, breaker).version != breaker.version:
                await self._follow(breaker)

    async def learn(self) -> None:
        """Read how all stand; once before any consumer is made."""
        began = time.monotonic()
        rows = await self._store.fetch("breakers")
        if rows:
            self._behind_ms = rows[0]["now"] - self._clock()
        self._known = {row["agent"]: _breaker(row, self._known.get(row["agent"])) for row in rows}
        self._read_at = began

    async def _follow(self, breaker: Breaker) -> None:
        await self._valves.set(breaker, self._now_ms())
        self._on_change()

    def _now_ms(self) -> int:
        return self._clock() + self._behind_ms


def view_of(breaker: Breaker) -> BreakerView:
    until = None if breaker.until_ms is None else _moment(breaker.until_ms)
    return BreakerView(
        agent=breaker.agent,
        state=breaker.state,
        since=_moment(breaker.since_ms),
        until=until,
        reason=breaker.reason,
        by=breaker.by,
    )


def _breaker(row: asyncpg.Record, known: Breaker | None) -> Breaker:
    """A row; when it began by our own clock is kept as long as it is the same."""
    now, until = _monotonic_ms(), row["until"] or 0
    begun_at, probe_at = now - (row["now"] - row["since"]), now + until - row["now"]
    if known is not None and known.version == row["version"]:
        begun_at, probe_at = known.begun_at, known.probe_at
    return Breaker(
        row["agent"],
        cast(State, row["state"]),
        row["version"],
        row["since"],
        row["until"],
        row["trips"],
        row["reason"],
        row["by"],
        begun_at,
        probe_at,
    )


def _monotonic_ms() -> int:
    return round(time.monotonic() * 1_000)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
