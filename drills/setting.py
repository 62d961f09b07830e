"""Where a drill takes place: its client, its crew and its downstream, and waiting with a limit.

Always holds: every task that a drill submitted is among `tasks`, so that it can be ended and
audited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import HeadwayError
from headway.agents.identity import new_task_id
from headway.agents.views import TaskView
from headway.drills.crew import Crew
from headway.drills.downstream import Called, Downstream
from headway.drills.handlers import AGENT, SAGA

CREW = 2
POLL_S = 0.02
PATIENCE_S = 60.0  # for one thing to happen, until it counts as not recovered
PRESENT_S = 30.0

T = TypeVar("T")


class NotRecovered(HeadwayError):
    """What should have happened did not; the text says what."""


@dataclass
class Setting:
    client: Client
    crew: Crew
    downstream: Downstream
    tasks: list[UUID] = field(default_factory=list)

    async def submit(self, **order: str) -> UUID:
        """A task of the drill, whose steps do as `order` says."""
        task = self.new_task()
        await self.client.submit(SAGA, self.order(**order), task=task)
        return task

    def new_task(self) -> UUID:
        task = new_task_id()
        self.tasks.append(task)
        return task

    def order(self, **order: str) -> dict[str, str]:
        named = {name.replace("_", "-"): words for name, words in order.items()}
        return {"log": str(self.downstream.path), **named}

    async def at_strength(self) -> None:
        """Have the whole crew there, as coordinators see it."""
        self.crew.fill_up(CREW)

        async def present() -> bool:
            agents = (await self.client.agents()).agents
            there = {one.pid for each in agents if each.agent == AGENT for one in each.instances}
            return there >= set(self.crew.running)

        await self.until(present, f"agents {AGENT!r} are there; {self.crew.tail()}", PRESENT_S)

    async def called(self, task: UUID, step: str, times: int = 1, phase: str = "action") -> Called:
        """Wait for the call of a step's handler."""

        async def seen() -> list[Called]:
            calls = self.downstream.calls(task)
            mine = [one for one in calls if (one.step, one.phase) == (step, phase)]
            return mine if len(mine) >= times else []

        return (await self.until(seen, f"call {times} of {step}"))[times - 1]

    async def settled(self, task: UUID, *statuses: str) -> TaskView:
        """The task once it is settled, as one of `statuses`."""
        view = await self.client.result(task, timeout=PATIENCE_S)
        if view.status not in statuses:
            wanted = " or ".join(statuses)
            raise NotRecovered(f"task {task} is {view.status}, not {wanted}: {view.reason}")
        return view

    async def until(
        self, condition: Callable[[], Awaitable[T]], what: str, within_s: float = PATIENCE_S
    ) -> T:
        """What `condition` returns once that is true; NotRecovered after `within_s` seconds."""
        deadline = time.monotonic() + within_s
        while True:
            found = await condition()
            if found:
                return found
            if time.monotonic() > deadline:
                raise NotRecovered(f"this did not happen within {within_s:g} s: {what}")
            await asyncio.sleep(POLL_S)
