"""Noticing at once that a worker or a coordinator is gone, and having its work given to others.

Two looks, which `app` repeats every WATCH_INTERVAL_S. An idle look costs one message to nats-server
and one from it, a roll; the members get nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from headway.agents import subjects
from headway.coordinator.attendance import Attendance, Look
from headway.coordinator.clock import monotonic
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.rescue import ON_THE_WAY_S

_LOG = logging.getLogger(__name__)

WATCH_INTERVAL_S = 0.1
LOOKS_PER_S_MAX = 500  # of one coordinator, however many agents there are
WORKER_LOST_AFTER_S = 0.5  # one whose connection was cut for 0.3 s is back by then
PEER_LOST_AFTER_S = 0.2  # less: what two coordinators do twice changes nothing
RESCUE_WITHIN_S = 3.0  # of a loss; what cannot be told by then is left to `ack_wait`

LookAt = Callable[[str], Awaitable[Look | None]]


@dataclass
class _Team:
    """The workers of one agent, and what is still to be given to others."""

    attendance: Attendance
    reach: int | None = None  # the last sequence delivered when somebody was first missed
    reached_at: float = 0.0
    rescue_until: float = 0.0


class Watch:
    """`heard` tells, by agent, who says that he is there; `rescue` gives to others what nobody has
    of an agent's commands up to a sequence, its reach."""

    def __init__(
        self,
        look: LookAt,
        heard: Callable[[], Mapping[str, Mapping[str, str]]],
        reach: Callable[[str], Awaitable[int]],
        rescue: Callable[[str, int], Awaitable[bool]],
        succeed: Callable[[list[str]], Awaitable[None]],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        self._look = look
        self._heard = heard
        self._reach = reach
        self._rescue = rescue
        self._succeed = succeed
        self._monotonic = monotonic
        self._teams: dict[str, _Team] = {}
        self._peers = Attendance(PEER_LOST_AFTER_S)

    async def agents(self) -> None:
        """One look at the workers of all agents."""
        heard = self._heard()
        for agent, said in heard.items():
            if agent not in self._teams:
                self._teams[agent] = _Team(Attendance(WORKER_LOST_AFTER_S))
            self._teams[agent].attendance.hear(said)
        if self._teams:
            await asyncio.gather(*(self._tend(*each) for each in self._teams.items()))
            await asyncio.sleep(len(self._teams) / LOOKS_PER_S_MAX)
        for agent in [agent for agent, team in self._teams.items() if not team.attendance]:
            if agent not in heard:
                del self._teams[agent]

    async def peers(self) -> None:
        """One look at the coordinators."""
        look = await self._look(subjects.PEERS)
        if look is not None and (lost := self._peers.take(look)):
            await self._succeed(lost)

    async def _tend(self, agent: str, team: _Team) -> None:
        look = await self._look(subjects.roll_subject(agent))
        if look is None:
            return
        now = self._monotonic()
        if team.attendance.take(look):
            team.rescue_until = now + RESCUE_WITHIN_S
        missed, wanted = team.attendance.missed, now < team.rescue_until
        if not missed and not wanted:
            team.reach = None
            return
        try:
            if team.reach is None:
                team.reach, team.reached_at = await self._reach(agent), self._monotonic()
            elif (
                wanted
                and not missed
                and now - team.reached_at >= ON_THE_WAY_S
                and await self._rescue(agent, team.reach)
            ):
                team.rescue_until = 0.0
        except CoordinatorError as error:
            _LOG.info("agent %s: a lost worker's commands are to be had later: %s", agent, error)
