"""The systems that agents change, as an onlooker outside would find them.

Each call reaches it after a while and is applied at that moment, whoever may be dead by then; its
answer takes a while too. Rows are by operation: an action after its undoing is refused (fenced).
Effects of tools are counted by invocation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headway.agents import Call, Context
from simulation.process import Process
from simulation.world import World

STEPS_AROUND_EFFECT_MAX = 20
REPLACED_AFTER_S = 1.0  # of being frozen on the way to an effect


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
        self.on_run: Callable[[Context, Call], None] = lambda _context, _call: None
        self.tools: dict[UUID, int] = {}  # how often an invocation took effect
        self.results: dict[UUID, Any] = {}  # of those that took effect
        self.late: dict[UUID, None] = {}  # those that did so when its caller may have been replaced
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

    def run(self, process: Process, context: Context, call: Call) -> None:
        """A tool begins to run; before its effect its process does not freeze by design."""
        process.loop.freezes_after = None
        self._world.told("run", call.tool, call.id)
        self.on_run(context, call)

    async def use(self, process: Process, call: Call, result: Any, *, once: bool = False) -> None:
        """A tool's effect; with `once`, of an invocation that is deduped downstream."""
        began_at = self._world.timeline.now
        await self._way(process)
        if self._world.timeline.now - began_at > REPLACED_AFTER_S:
            self.late[call.id] = None
        if not once or call.id not in self.tools:
            self.tools[call.id] = self.tools.get(call.id, 0) + 1
            self.results[call.id] = result
            self._world.told("tool", call.tool, call.id, self.tools[call.id])
        process.freeze_soon("freeze_at_effect", STEPS_AROUND_EFFECT_MAX)
        await self._way(process)

    async def used(self, process: Process, call: Call) -> bool:
        """Whether it took effect."""
        await self._way(process)
        found = call.id in self.tools
        await self._way(process)
        return found

    async def _way(self, process: Process) -> None:
        process.die_soon("crash_at_effect", STEPS_AROUND_EFFECT_MAX)
        await asyncio.sleep(0.0005 + 0.003 * self._rng.random())
