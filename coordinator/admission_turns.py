"""Turns: when an attempt that a worker has in hand may begin.

Every attempt at what something limits asks for one, the first as well as one that is taken over.
The token buckets are rows in PostgreSQL, so that all coordinators give from the same ones.
Questions that wait are answered together.

Recoveries of agents without a declared rate pass a bucket in this coordinator's memory, so that
after everything was killed not all of it begins at once; a few never wait.

Always holds: a turn is committed before it is told; the same question gets the same turn, unless
that has gone by unused; a turn is told as a span of time, so that no two clocks are compared.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import asyncpg
import orjson
from headway.coordinator.admission_limits import Declared
from headway.coordinator.admissions import columns
from headway.coordinator.commands import check_agent
from headway.coordinator.errors import CoordinatorError, Refusal, StoreUnavailable
from headway.coordinator.groupcommit import GroupCommit
from headway.coordinator.limits import SECOND_US, Limit, Limits, agent_place, places_of
from headway.coordinator.pacing import TURN_KEPT_US, Ask, Standing, Turn, Use, turn
from headway.coordinator.records import Loaded
from headway.coordinator.store import Store
from headway.sagas.transition import outstanding

_LOG = logging.getLogger(__name__)

ROUNDS_MAX = 8  # after so many lost races a question is to be asked again
AGAIN_MS = 250  # how soon to ask again where there is no room
RECOVERIES_PER_S = 500.0  # of an agent without a declared rate, of each coordinator
RECOVERIES_AT_ONCE = 200
RECOVERY_JITTER = 0.2  # of the wait
PROMISED_MAX = 16_384
ASK_BYTES = 200


class Question(NamedTuple):
    """`recovery`: of a command that may have been begun before."""

    agent: str
    ask: Ask
    recovery: bool


class Wait(NamedTuple):
    """How long until the attempt may begin; or, if `again`, until it is to be asked for again.
    `paced`: that is its turn, and it has no other."""

    ms: int = 0
    again: bool = False
    paced: bool = False


class Turns:
    def __init__(
        self, store: Store, declared: Declared, monotonic: Callable[[], float], rng: random.Random
    ) -> None:
        """`monotonic` is in seconds."""
        self._store = store
        self._declared = declared
        self._monotonic = monotonic
        self._rng = rng
        self._levels: dict[str, int] = {}  # of the buckets for recoveries
        self._promised: dict[tuple[str, Ask], int] = {}  # turns of recoveries that are to come
        self._commits: GroupCommit[Question, Wait] = GroupCommit(self._commit, _touched)

    async def take(self, agent: str, ask: Ask, *, recovery: bool) -> Wait:
        """The turn of an attempt of `agent`. Refusal: it is not the agent's, not outstanding, or a
        newer command of its step waits."""
        if self._declared.is_paced(agent):
            return await self._commits.ask(Question(agent, ask, recovery), ASK_BYTES)
        return self._of_recovery(agent, ask) if recovery else Wait()

    def _of_recovery(self, agent: str, ask: Ask) -> Wait:
        place, now_us = agent_place(agent), round(self._monotonic() * SECOND_US)
        promised_us = self._promised.pop((agent, ask), 0)
        if promised_us + TURN_KEPT_US >= now_us:
            return self._promise(agent, ask, promised_us, now_us)
        limits = Limits([_RECOVERIES._replace(name=agent)])
        standing = Standing((place,), 0, state="admitted")
        if len(self._levels) > 1_000:
            self._levels = {each: us for each, us in self._levels.items() if us > now_us}
        given = turn(_NOBODY, standing, limits, self._levels, {}, now_us)
        wait_us = (given.at_us - now_us) * (1 + self._rng.uniform(0, RECOVERY_JITTER))
        return self._promise(agent, ask, now_us + round(wait_us), now_us)

    def _promise(self, agent: str, ask: Ask, at_us: int, now_us: int) -> Wait:
        """The turn, and the same one if it is asked for again."""
        if at_us > now_us:
            if len(self._promised) >= PROMISED_MAX:
                del self._promised[next(iter(self._promised))]
            self._promised[agent, ask] = at_us
        return Wait(max(0, round((at_us - now_us) / 1_000)))

    async def _commit(self, questions: Sequence[Question]) -> Sequence[Wait | CoordinatorError]:
        for _ in range(ROUNDS_MAX):
            async with self._declared.steady:
                answers = await self._round(questions)
            if answers is not None:
                return answers
        return [StoreUnavailable("too many ask for turns at once; ask again")] * len(questions)

    async def _round(self, questions: Sequence[Question]) -> list[Wait | CoordinatorError] | None:
        """Read, decide, write; None if a bucket changed meanwhile."""
        asks = [(each.ask.task, each.ask.step) for each in questions]
        rows = {
            (row["task_id"], row["step"]): row
            for row in await self._store.fetch("standings", *columns(asks, 2))
        }
        known = [
            (each, _standing(each.agent, rows[each.ask.task, each.ask.step]))
            for each in questions
            if (each.ask.task, each.ask.step) in rows
        ]
        refusals = await self._refusals(known)
        known = [(each, standing) for each, standing in known if each not in refusals]
        limits = self._declared.limits
        read, levels, now_us = await self._read_levels(limits, [s for _, s in known])
        use = await self._use([s for _, s in known])
        turns = {
            each: (standing, turn(each.ask, standing, limits, levels, use, now_us))
            for each, standing in known
        }
        if not await self._write(read, levels, turns):
            return None
        return [refusals.get(each) or _answer(turns.get(each), now_us) for each in questions]

    async def _refusals(
        self, known: Sequence[tuple[Question, Standing]]
    ) -> dict[Question, Refusal]:
        """What was not just admitted is held against the state: it may be over by now; and an agent
        could take turns, and places in the line, that are another's."""
        doubtful = [each for each, standing in known if not _is_admitted(each, standing)]
        if not doubtful:
            return {}
        loaded = await self._store.read(list({each.ask.task: None for each in doubtful}))
        found = {each: _refusal(each, loaded.get(each.ask.task)) for each in doubtful}
        return {each: refusal for each, refusal in found.items() if refusal is not None}

    async def _read_levels(
        self, limits: Limits, standings: Sequence[Standing]
    ) -> tuple[dict[str, int], dict[str, int], int]:
        """The buckets that may change: as read, and to be changed; and the time."""
        places = {place: None for each in standings for place in _counted(limits, each)}
        rows = await self._store.fetch("bucket_levels", list(places))
        if not rows:
            return {}, {}, 0
        read = {row["place"]: row["full_us"] for row in rows}
        levels = {row["place"]: row["level_us"] for row in rows}
        return read, levels, rows[0]["now_us"]

    async def _use(self, standings: Sequence[Standing]) -> dict[str, Use]:
        """How the places are used, if that matters: only for what was never admitted."""
        if not any(each.is_stranger for each in standings):
            return {}
        return use_of(await self._store.fetch("admission_usage"))

    async def _write(
        self,
        read: dict[str, int],
        levels: dict[str, int],
        turns: dict[Question, tuple[Standing, Turn]],
    ) -> bool:
        moved = [
            (place, read[place], level) for place, level in levels.items() if read[place] != level
        ]
        given = [
            _row(each, standing, its)
            for each, (standing, its) in turns.items()
            if its.new and self._declared.limits.limiting(standing.places)
        ]
        if not given:
            return True
        [row] = await self._store.fetch("give_turns", *columns(moved, 3), *columns(given, 10))
        fits: bool = row["fits"]
        return fits


_RECOVERIES = Limit("agent", "", RECOVERIES_PER_S, RECOVERIES_AT_ONCE, None)
_NOBODY = Ask(task=None, step="", phase="", attempt=0, epoch=0, asked="nobody")  # type: ignore[arg-type]


def use_of(rows: Sequence[asyncpg.Record]) -> dict[str, Use]:
    """The rows of `admission_usage` by place."""
    return {row["place"]: Use(row["open"], row["ready"]) for row in rows}


def _touched(question: Question) -> tuple[object, ...]:
    return ((question.ask.task, question.ask.step),)


def _counted(limits: Limits, standing: Standing) -> list[str]:
    """The places whose bucket a turn may change."""
    limiting = limits.limiting(standing.places).items()
    return [place for place, limit in limiting if limit.rate or standing.is_stranger]


def _standing(agent: str, row: asyncpg.Record) -> Standing:
    attributes = orjson.loads(row["attributes"])
    places = places_of(agent, row["saga"], attributes)
    if row["state"] is None:
        return Standing(places, row["priority"])
    place = (row["phase"], row["attempt"], row["epoch"])
    given = (row["state"], row["asked"], row["turn_us"], row["agent"])
    return Standing(places, row["priority"], place, *given)


def _is_admitted(question: Question, standing: Standing) -> bool:
    """Whether this very command was admitted, and nobody asked for its turn before."""
    ask, row = question.ask, standing.row
    own = row == (ask.phase, ask.attempt, ask.epoch) and standing.agent == question.agent
    return own and standing.state == "admitted"


def _refusal(question: Question, loaded: Loaded | None) -> Refusal | None:
    """Why the agent has no business with this attempt, or not any more; None if it has. Of what is
    recovered, its claim tells which of several may go on."""
    ask = question.ask
    if loaded is None:
        return Refusal("there is no such task", 404)
    try:
        check_agent(question.agent, loaded, ask.step, ask.phase)
    except Refusal as refusal:
        return refusal
    for sent in outstanding(loaded.definition, loaded.task):
        same = (sent.step, sent.phase, sent.attempt) == (ask.step, ask.phase, ask.attempt)
        if same and (question.recovery or sent.epoch == ask.epoch):
            return None
    return Refusal("this attempt is not outstanding any more", 409)


def _row(question: Question, standing: Standing, its: Turn) -> tuple[object, ...]:
    ask = question.ask
    return (
        *(ask.task, ask.step, ask.phase, ask.attempt, ask.epoch, question.agent),
        *(orjson.dumps(standing.places), standing.priority, ask.asked, its.at_us),
    )


def _answer(given: tuple[Standing, Turn] | None, now_us: int) -> Wait | CoordinatorError:
    if given is None:
        return Refusal("there is no such task", 404)
    _, its = given
    if its.late:
        return Refusal("a newer command of this step was given out", 409)
    if its.full:
        return Wait(AGAIN_MS, again=True)
    return Wait(max(0, -(-(its.at_us - now_us) // 1_000)), paced=True)
