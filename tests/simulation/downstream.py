"""The systems that agents change, as an onlooker outside would find them.

Each call reaches it after a while and is applied at that moment, whoever may be dead by then; its
answer takes a while too. Rows are by operation: an action after its undoing is refused (fenced).
Tools without protection of their own are counted: one that took effect twice is a violation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from simulation.process import Process
from simulation.world import World

STEPS_AROUND_EFFECT_MAX = 20


class Fenced(Exception):
    """An action that came after its own undoing."""


@dataclass(slots=True)
class Row:
    """What is there of one operation: its action's task and step, how often it was applied."""

    task: UUID
    step: str
    state: str = "none"  # none, done, undone, barred
    applied: int = 0
    calls: list[str] = field(default_factory=list)


class Downstream:
    def __init__(self, world: World) -> None:
        self.rows: dict[UUID, Row] = {}
        self.on_begin: Callable[[UUID, str, str, int, int], None] = lambda *_begun: None
        self.on_effect: Callable[[Row, str], None] = lambda _row, _what: None
        self.tools: dict[str, int] = {}  # invocations of unprotected tools that took effect
        self._world = world
        self._rng = world.chance.rng("downstream")

    async def do(self, process: Process, operation: UUID, task: UUID, step: str) -> None:
        """Apply an action, once; Fenced if it was undone before."""
        await self._way(process)
        row = self.rows.setdefault(operation, Row(task, step))
        row.calls.append(f"do by {process.name}.{process.lives}")
        if row.state == "none":
            row.state, row.applied = "done", row.applied + 1
            self._world.told("effect", step, task, "done")
            self.on_effect(row, "done")
        await self._way(process)
        if row.state != "done":
            raise Fenced(step)

    async def undo(self, process: Process, operation: UUID, task: UUID, step: str) -> bool:
        """Undo an action; false if there is nothing to undo: then it is barred for good."""
        await self._way(process)
        row = self.rows.setdefault(operation, Row(task, step))
        row.calls.append(f"undo by {process.name}.{process.lives}")
        if row.state == "done":
            row.state = "undone"
            self._world.told("effect", step, task, "undone")
            self.on_effect(row, "undone")
        elif row.state == "none":
            row.state = "barred"
        found = row.state == "undone"
        await self._way(process)
        return found

    async def use(self, process: Process, name: str) -> int:
        """An unprotected tool's effect; returns how often it took effect by now."""
        await self._way(process)
        self.tools[name] = self.tools.get(name, 0) + 1
        self._world.told("tool", name, self.tools[name])
        await self._way(process)
        return self.tools[name]

    async def used(self, process: Process, name: str) -> bool:
        """Whether it took effect."""
        await self._way(process)
        found = name in self.tools
        await self._way(process)
        return found

    async def once(self, process: Process, name: str) -> int:
        """A tool's effect that the downstream dedupes by its name."""
        await self._way(process)
        if name not in self.tools:
            self.tools[name] = 1
            self._world.told("tool", name, 1)
        await self._way(process)
        return self.tools[name]

    async def _way(self, process: Process) -> None:
        process.die_soon("crash_at_effect", STEPS_AROUND_EFFECT_MAX)
        await asyncio.sleep(0.0005 + 0.003 * self._rng.random())
