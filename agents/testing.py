"""For tests of handlers: a valid context, and a call as a worker would make it, all offline.

Handlers stay plain functions, so `await charge(context(), order)` is a test already. `run` also
checks and converts the input as a worker does, and gives back the JSON that would be stored.

Tools that a handler calls are run, and a `MemoryJournal` remembers them. Given to another context
of the same task it has the handler go on from there, as after a crash:

    journal = MemoryJournal()
    await run(settle, "o-1", ctx=context(task=TASK, journal=journal, tools=[pay]))
    journal.cut(3)                                           # as if it died after three entries
    await run(settle, "o-1", ctx=context(task=TASK, journal=journal, tools=[pay]))

A task's record, as `headway history TASK --json` writes it, is a regression test: its handlers are
run over the recorded journals, and no tool is.

    await reproduces(Path("refund-17.json"), refunds)
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from headway.agents.about import About
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Binding, bind
from headway.agents.context import Context
from headway.agents.entries import (
    Entry,
    JournalAppended,
    JournalOpened,
    JournalPage,
    NewEntry,
    Operation,
    Usage,
)
from headway.agents.export_views import TaskRecord
from headway.agents.identity import new_task_id
from headway.agents.invocations import Calls
from headway.agents.journal import Journal
from headway.agents.messages import CommandData, Phase
from headway.agents.replay_views import Rerun
from headway.agents.reruns import rerun
from headway.agents.signatures import Function
from headway.agents.threads import in_thread
from headway.agents.tools import Call, Tool, by_name
from headway.agents.trial import Trial

TOKEN = "test-token"  # noqa: S105  # what sensitive tools get here

_DEFAULT = Context(
    task=new_task_id(),
    saga="test",
    step="step",
    phase="action",
    attempt=1,
    epoch=0,
    agent="test",
    traceparent="00-00000000000000000000000000000001-0000000000000001-01",
)


class MemoryJournal:
    """A journal in memory: it refuses nothing, and forgets nothing but what is cut off."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._epoch = 0
        self._values: dict[str, bytes] = {}

    def cut(self, length: int) -> None:
        """Forget all but the first `length` entries, as if nothing had been written after them."""
        del self.entries[length:]

    def of_kind(self, *kinds: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.kind in kinds]

    async def open(self) -> JournalOpened:
        self._epoch += 1
        return JournalOpened(epoch=self._epoch, entries=list(self.entries), usage=self._usage())

    async def read(self, after: int) -> JournalPage:
        return JournalPage(entries=self.entries[after:])

    async def append(self, epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        at = datetime.now(UTC)
        for number, entry in enumerate(entries, seq):
            fields = orjson.loads(entry.model_dump_json())
            self.entries.append(Entry(**fields, seq=number, epoch=epoch, at=at))
        return JournalAppended(seq=len(self.entries), usage=self._usage())

    async def put(self, body: bytes) -> tuple[str, str]:
        digest = hashlib.sha256(body).hexdigest()
        self._values[digest] = body
        return digest, digest

    async def get(self, reference: str, digest: str) -> bytes:
        body = self._values[reference]
        assert hashlib.sha256(body).hexdigest() == digest
        return body

    def _usage(self) -> Usage:
        used = [entry.usage for entry in self.entries if entry.usage is not None]
        return Usage(
            input_tokens=sum(each.input_tokens for each in used),
            output_tokens=sum(each.output_tokens for each in used),
            cost_usd=sum(each.cost_usd for each in used),
        )


def context(
    *,
    journal: MemoryJournal | None = None,
    tools: Sequence[Function] | None = None,
    **changes: Any,
) -> Context:
    """A context of a fresh task's first attempt, with `changes` to any of its fields.

    It may call any tool, or only those of `tools`; these are needed to take up a `journal` in which
    calls are left open.
    """
    fresh: dict[str, Any] = {"task": new_task_id(), "results": {}, "cancellation": asyncio.Event()}
    ctx = replace(_DEFAULT, **(fresh | changes))
    if ctx.calls is None:
        named = None if tools is None else by_name(tools, "the test's context")
        ctx.calls = _calls(ctx, journal or MemoryJournal(), named)
    return ctx


async def reproduces(record: TaskRecord | Path, agent: Agent) -> list[Rerun]:
    """Run `agent`'s handlers over the journals of a task's record, without running any tool.

    Raises AssertionError with the first difference of each handler that does not do what it did,
    and where the record has no journal of this agent.
    """
    if isinstance(record, Path):
        record = _read(record)
    found = await rerun(record, agent)
    assert found, f"the record of task {record.task} has no journal of agent {agent.name!r}"
    different = [
        f"{each.handler} ({each.phase} of step {each.step!r}): {each.difference}"
        for each in found
        if each.difference
    ]
    assert not different, "\n".join(different)
    return found


def _read(file: Path) -> TaskRecord:
    return TaskRecord.model_validate_json(file.read_bytes())


async def opened(ctx: Context) -> Context:
    """`ctx` with its journal opened and open calls settled, as a worker does before it calls the
    handler of an attempt that it takes up; so that `ctx.restore` has something."""
    assert ctx.calls is not None
    await ctx.calls.open()
    return ctx


def call(**changes: Any) -> Call:
    """An invocation, for calling a tool directly that takes one."""
    task = new_task_id()
    return replace(Call(id=task, key="tool#1", tool="tool", task=task), **changes)


async def run(
    handler: Function | Binding,
    input: Any = None,
    *,
    result: Any = None,
    ctx: Context | None = None,
) -> Any:
    """Call `handler` as a worker would with a JSON `input`, and return the JSON it results in.

    `handler` is the function itself or `agent.handlers["name"]`; give a compensation the
    action's `result`. Raises InvalidInput and InvalidResult where a worker would report them,
    and whatever the handler raises. EMPTY comes back as it is.
    """
    binding = handler if isinstance(handler, Binding) else _bound(handler)
    ctx = ctx or _context_of(handler, input, binding.phase)
    arguments = binding.arguments(CommandData(input=input, result=result))
    if ctx.calls is not None:
        await ctx.calls.open()
    if binding.is_async:
        returned = await binding.function(ctx, *arguments)
    else:
        returned = await asyncio.to_thread(binding.function, ctx, *arguments)
    return EMPTY if returned is EMPTY else orjson.loads(binding.encode(returned))


def _context_of(handler: Function | Binding, input: Any, phase: Phase) -> Context:
    """As a worker would make it: with the tools that were declared, if that is known."""
    tools = handler.tools if isinstance(handler, Binding) else None
    functions = None if tools is None else [each.function for each in tools.values()]
    ctx = context(input=input, phase=phase, tools=functions)
    if isinstance(handler, Binding) and tools is None:
        ctx.calls = None
    return ctx


def _bound(function: Function) -> Binding:
    return bind(function, getattr(function, "__name__", "handler"), "compensation")


def _calls(ctx: Context, journal: MemoryJournal, tools: dict[str, Tool] | None) -> Calls:
    operation = Operation(task=ctx.task, step=ctx.step, phase=ctx.phase)
    about = About(operation, ctx.attempt, tools, ctx.deadline_at, bool(ctx.rejection))
    kept = Journal(journal)
    return Calls(about, kept, Trial(_in_thread, _leave, kept.make_sure))


def _in_thread(function: Callable[[], Any], name: str) -> asyncio.Future[Any]:
    return in_thread(function, name, lambda: None)


async def _leave(_tool: Tool, _call: Call) -> str:
    return TOKEN
