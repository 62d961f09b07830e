"""What is declared, as one coordinator knows it; and the API by which people declare it.

Always holds: a coordinator knows what is declared REFRESH_S after it was, at the latest, or cannot
reach PostgreSQL and then admits nothing either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import asyncpg
from headway.agents import limit_views as views
from headway.agents.limit_views import rate_text
from headway.agents.subjects import TOKEN
from headway.agents.views import Nothing
from headway.coordinator.caller import Caller
from headway.coordinator.clock import monotonic
from headway.coordinator.errors import Refusal
from headway.coordinator.limits import Limit, Limits, is_attribute, least_burst
from headway.coordinator.serving import Serve, typed, typed_by
from headway.coordinator.store import Store
from headway.sagas.definition import Definition

REFRESH_S = 1.0


class Declared:
    """`limits` is what holds now, and as long as somebody has `steady`. `active`: something is
    limited, or waits that once was."""

    def __init__(self, store: Store, monotonic: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._monotonic = monotonic
        self._read_at = -REFRESH_S
        self.limits = Limits()
        self.steady = asyncio.Lock()  # or turns were given at a rate after their bucket was eased
        self.active = False
        self.paced: tuple[str, ...] = ()  # agents that something limits
        self._sagas: frozenset[str] = frozenset()  # that are limited

    def operations(self) -> dict[str, Serve]:
        return {
            "limits.list": typed(Nothing, views.LimitList, self.list),
            "limits.set": typed_by(views.LimitRequest, views.LimitView, self.set),
            "limits.remove": typed(views.LimitRemoval, views.LimitRef, self.remove),
        }

    async def refresh(self) -> None:
        """Read what is declared, if that was not done within REFRESH_S."""
        if self._monotonic() - self._read_at < REFRESH_S:
            return
        began = self._monotonic()
        rows = await self._store.fetch("limits")
        limits = Limits(_limit(row) for row in rows)
        if not limits and self.active:
            [left] = await self._store.fetch("admissions_exist")
            self.active = left["exist"]
        self.active = self.active or bool(limits)
        self.paced = await self._agents_of(limits)
        async with self.steady:
            known = self.limits.declared
            await self._ease(
                each
                for each in limits.declared.values()
                if each.place in known and not each.is_as_fast_as(known[each.place])
            )  # we may have given turns at the old rate until now
            self.limits, self._read_at = limits, began

    def concerns(self, agent: str, saga: str) -> bool:
        """Whether something may limit what an agent does for a saga. One that was registered since
        the last look may have agents that nothing limited until then."""
        if agent in self.paced:
            return True
        if saga in self._sagas:
            self.paced = tuple(sorted((*self.paced, agent)))
            return True
        return False

    def is_paced(self, agent: str) -> bool:
        """Whether something limits an agent."""
        return agent in self.paced

    async def _agents_of(self, limits: Limits) -> tuple[str, ...]:
        """The agents that are limited themselves, or work for a saga that is."""
        found = {limit.name.partition(":")[0] for limit in limits.of_scope("agent", "key")}
        self._sagas = sagas = frozenset(limit.name for limit in limits.of_scope("saga"))
        for row in await self._store.fetch("list_sagas") if sagas else ():
            if row["name"] in sagas:
                found |= Definition.from_json(row["body"]).agents()
        return tuple(sorted(found))

    async def begin(self) -> None:
        """The first look: what an earlier life left waiting counts, too."""
        [left] = await self._store.fetch("admissions_exist")
        self.active = left["exist"]
        await self.refresh()

    async def list(self, _request: Nothing) -> views.LimitList:
        """What is declared, and how it is used; of keys all values together."""
        rows = await self._store.fetch("limits")
        limits = Limits(_limit(row) for row in rows)
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for row in await self._store.fetch("use_by_place") if limits else ():
            limit = limits.of(row["place"])
            if limit is not None:
                waiting[limit.place] = waiting.get(limit.place, 0) + row["waiting"]
                running[limit.place] = running.get(limit.place, 0) + row["open"]
        return views.LimitList(
            limits=[
                _view(limit, waiting.get(limit.place, 0), running.get(limit.place, 0))
                for limit in limits.declared.values()
            ]
        )

    async def set(self, request: views.LimitRequest, caller: Caller) -> views.LimitView:
        _check(request)
        burst = request.burst or least_burst(request.rate)
        arguments = (request.scope, request.name, request.rate, burst, request.concurrency)
        before = Limits(_limit(row) for row in await self._store.fetch("limits"))
        [row] = await self._store.fetch("set_limit", *arguments, caller.name or request.by)
        limit = _limit(row)
        if not limit.is_as_fast_as(before.declared.get(limit.place)):
            await self._ease([limit])
        self._read_at = -REFRESH_S
        return _view(limit)

    async def _ease(self, changed: Iterable[Limit]) -> None:
        for limit in changed:
            await self._store.fetch("ease_bucket", limit.place, limit.empty_us)

    async def remove(self, request: views.LimitRemoval) -> views.LimitRef:
        rows = await self._store.fetch("remove_limit", request.scope, request.name, request.by)
        if not rows:
            raise Refusal(f"there is no limit on {request.scope} {request.name!r}", 404)
        self._read_at = -REFRESH_S
        return views.LimitRef(scope=request.scope, name=request.name)


def _limit(row: asyncpg.Record) -> Limit:
    names = ("scope", "name", "rate", "burst", "concurrency", "set_by", "set_at")
    return Limit(*(row[name] for name in names))


def _view(limit: Limit, waiting: int = 0, running: int = 0) -> views.LimitView:
    return views.LimitView(**limit._asdict(), waiting=waiting, running=running)


def _check(request: views.LimitRequest) -> None:
    agent, colon, attribute = request.name.partition(":")
    if request.scope == "key" and not (colon and is_attribute(attribute)):
        raise Refusal(
            f"a key is written AGENT:ATTRIBUTE, such as payments:customer, not {request.name!r}; "
            "the attribute's name has 1 to 64 of A-Z a-z 0-9 _ . and -",
            422,
        )
    if (request.scope != "key" and colon) or TOKEN.fullmatch(agent) is None:
        raise Refusal(f"{request.name!r} cannot be the name of an agent or a saga", 422)
    if request.rate is None and request.concurrency is None:
        raise Refusal("a limit needs a rate, a concurrency, or both", 422)
    if request.rate is None and request.burst is not None:
        raise Refusal("a burst belongs to a rate", 422)
    least = least_burst(request.rate)
    if request.burst is not None and request.burst < least:
        raise Refusal(
            f"a burst of {request.burst} cannot be kept to: attempts may begin 0.2 s after their "
            f"turn, so at {rate_text(request.rate or 0)} it is at least {least}",
            422,
        )
