"""Whether an agent may write in the name of a task's step: only one that the step is for.

Always holds: what is kept was read from the task itself; whoever does not fit it is looked up anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from headway.coordinator.caller import Caller
from headway.coordinator.commands import agents_of, not_for
from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded

KEPT_MAX = 16_384  # steps


class Read(Protocol):
    """Tasks as they are now; those that do not exist are left out."""

    async def __call__(self, ids: Sequence[UUID], /) -> dict[UUID, Loaded]: ...


class Authors:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._kept: dict[tuple[UUID, str], tuple[str, ...]] = {}

    async def check(self, caller: Caller, task: UUID | None, step: str) -> None:
        """Refuse (403) an agent that writes in the name of a step that is not its own, or of
        none."""
        if not caller.agent:
            return
        if task is None or not step:
            raise Refusal("task and step: an agent writes in the name of its step", 403)
        if caller.agent in self._kept.get((task, step), ()):
            return
        agents = await self._look(task, step)
        if caller.agent not in agents:
            raise not_for(caller.agent, step, "work", agents[0])
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        self._kept[task, step] = agents

    async def _look(self, task: UUID, step: str) -> tuple[str, ...]:
        loaded = (await self._read([task])).get(task)
        if loaded is None:
            raise Refusal(f"there is no task {task}", 404)
        found = loaded.definition.steps.get(step)
        if found is None:
            raise Refusal(f"there is no step {step!r} in saga {loaded.definition.name!r}", 404)
        return agents_of(found)
