"""Child tasks: begun, undone and reported to the task whose step they are.

A child's id follows from its parent's, the step and the attempt, so that beginning it again is
harmless. Nothing of this is remembered: what is lost in a crash, the sweep finds missing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal
from uuid import UUID

import orjson
from headway.agents.tracing import attempt_span, traceparent
from headway.coordinator import submissions
from headway.coordinator.errors import StoreUnavailable
from headway.coordinator.intake import Answer
from headway.coordinator.records import Loaded, NewTask, Parent, Trace
from headway.sagas import inputs as i
from headway.sagas.actions import Dispatch, StartChild, UndoChild
from headway.sagas.checks import output_of
from headway.sagas.definition import Definition
from headway.sagas.task import Phase, Task, TaskStatus

DEPTH_MAX = 16  # of children within children
TOO_DEEP = f"children are nested at most {DEPTH_MAX} deep; is a saga its own child?"

Outcome = Literal["compensated", "refused"]
Tell = Callable[[UUID, i.Input, NewTask | None], Awaitable[Answer]]
"""Puts something before the engine and tells what came of it, once that is committed."""


class Family:
    def __init__(self, tell: Tell, clock: Callable[[], int]) -> None:
        self._tell = tell
        self._clock = clock

    async def raise_all(self, wanted: Sequence[tuple[Loaded, StartChild | UndoChild]]) -> set[UUID]:
        """Begin and undo children, all at once; the parents for which it may not have come
        through, because PostgreSQL was away."""
        done = await asyncio.gather(*(self._raise(*each) for each in wanted))
        return {parent.id for (parent, _), came in zip(wanted, done, strict=True) if not came}

    async def _raise(self, parent: Loaded, action: StartChild | UndoChild) -> bool:
        try:
            if isinstance(action, StartChild):
                await self.begin(parent, action)
            else:
                await self.undo(parent, action)
        except StoreUnavailable:
            return False
        return True

    async def begin(self, parent: Loaded, action: StartChild) -> None:
        """Submit a child; one that is refused has failed without effect."""
        child = child_of(parent, action)
        if _is_too_deep(child):
            await self._report(parent.id, action, "refused", TOO_DEEP)
            return
        answer = await self._tell(child.id, i.Submit(self._clock()), child)
        if answer.refusal is not None:
            await self._report(parent.id, action, "refused", answer.refusal.reason)

    async def undo(self, parent: Loaded, action: UndoChild) -> None:
        """Have a child undone. It is begun first, if it was not: so it cannot begin later."""
        child = child_of(parent, action)
        if _is_too_deep(child):
            await self._report(parent.id, action, "compensated", TOO_DEEP)
            return
        begun = await self._tell(child.id, i.Submit(self._clock()), child)
        if begun.refusal is not None:
            await self._report(parent.id, action, "compensated", "it never began")
            return
        answer = await self._tell(child.id, i.Revoke(self._clock(), "its parent is undone"), None)
        if answer.refusal is not None:
            await self._report(parent.id, action, "refused", answer.refusal.reason)
        elif answer.task is not None and answer.task.task.status is TaskStatus.COMPENSATED:
            await self._report(parent.id, action, "compensated", answer.task.task.reason)

    async def _report(
        self, parent: UUID, action: StartChild | UndoChild, outcome: Outcome, reason: str
    ) -> None:
        ended = i.ChildEnded(self._clock(), action.step, action.attempt, outcome, reason)
        await self._tell(parent, ended, None)


def child_id(parent: UUID, step: str, attempt: int) -> UUID:
    """A UUIDv7 of the parent's time; the same each time."""
    digest = hashlib.sha256(parent.bytes + f"/{step}/{attempt}".encode()).digest()
    value = bytearray(parent.bytes[:6] + digest[:10])
    value[6] = (value[6] & 0x0F) | 0x70  # version 7
    value[8] = (value[8] & 0x3F) | 0x80  # RFC 9562 variant
    return UUID(bytes=bytes(value))


def child_of(parent: Loaded, action: StartChild | UndoChild) -> NewTask:
    """The child task of a step's attempt. It is held to its parent's manifest, but for what that
    says of the output; it has its owner, its priority, and its attributes: it is work for the same
    customer."""
    step = parent.definition.steps[action.step]
    body = parent.input if step.input is None else orjson.dumps(step.input)
    manifest, depth = parent.manifest, parent.parent.depth + 1 if parent.parent else 1
    if manifest is not None:
        manifest = manifest.model_copy(update={"acceptance": None})
    return NewTask(
        child_id(parent.id, action.step, action.attempt),
        step.saga,
        body,
        submissions.digest(step.saga, orjson.loads(body)),
        step.saga_version,
        manifest=manifest,
        parent=Parent(parent.id, action.step, action.attempt, depth),
        attributes=dict(parent.attributes),
        owner=parent.owner,
        priority=parent.priority,
        trace=Trace(parent.trace.sampled, _within(parent.id, action)),
    )


def _within(parent: UUID, action: StartChild | UndoChild) -> str:
    """The traceparent of the attempt that a child is."""
    span = attempt_span(parent, action.step, Phase.ACTION, action.attempt)
    return traceparent(parent, span)


def _is_too_deep(child: NewTask) -> bool:
    return child.parent is not None and child.parent.depth > DEPTH_MAX


def ending(definition: Definition, task: Task, parent: Parent, at: int) -> i.ChildEnded | None:
    """What a child's end is to its parent; None while it goes on or waits for a person."""
    if task.status is TaskStatus.SUCCEEDED:
        output = output_of(definition, task)
        return i.ChildEnded(at, parent.step, parent.attempt, "succeeded", result=output)
    if task.status is TaskStatus.COMPENSATED:
        return i.ChildEnded(at, parent.step, parent.attempt, "compensated", task.cause)
    return None


def overlooked(child: Loaded | None, sent: Dispatch, parent: UUID, at: int) -> i.Input | None:
    """What a task that waits for a child has missed: its end, or that it was never asked."""
    lost = i.DispatchLost(at, sent.step, sent.phase, sent.attempt, sent.epoch)
    if child is None:
        return lost
    task, to_undo = child.task, sent.phase is Phase.COMPENSATION
    if to_undo and task.status in (TaskStatus.RUNNING, TaskStatus.PARKED, TaskStatus.SUCCEEDED):
        return lost
    return ending(child.definition, task, Parent(parent, sent.step, sent.attempt), at)
