"""Running handlers over the journals of a task's record, without running any tool.

Each call gets the result that its journal has. The first one that differs from the journal, or a
result that differs from the recorded one, is told. Checkpoints are left out: a handler makes all
its calls again, from the first one on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import orjson
from headway.agents.about import About
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Binding
from headway.agents.context import Context
from headway.agents.entries import (
    Entry,
    JournalAppended,
    JournalOpened,
    JournalPage,
    NewEntry,
    Operation,
)
from headway.agents.errors import Halted, JournalMismatch
from headway.agents.exchange import Arguments, canonical
from headway.agents.export_views import TaskRecord
from headway.agents.invocations import Calls
from headway.agents.journal import Journal
from headway.agents.messages import CommandData
from headway.agents.payloads import PayloadLost
from headway.agents.recorded import RecordedRun, runs_of
from headway.agents.replay import Recorded
from headway.agents.replay_views import Rerun
from headway.agents.tools import Call, Tool
from headway.agents.trial import Failure, Result, Trial

BEYOND = "BeyondTheRecord"
SHOWN_MAX_CHARS = 120  # of a value in a difference
RERUN_MAX_S = 60.0  # of one handler, which waits for nothing
_TRACE = "00-00000000000000000000000000000001-0000000000000001-01"


async def rerun(record: TaskRecord, agent: Agent) -> list[Rerun]:
    """What each handler of `agent` does over the journals that the record has of it."""
    return [await _rerun(record, agent, run) for run in runs_of(record) if run.agent == agent.name]


async def _rerun(record: TaskRecord, agent: Agent, run: RecordedRun) -> Rerun:
    report = Rerun(step=run.step, phase=run.phase, handler=f"{run.agent}.{run.handler}")
    binding = agent.handlers.get(run.handler)
    if binding is None:
        return report.model_copy(update={"difference": f"there is no handler {run.handler!r} now"})
    if binding.tools is None:
        skipped = "it declares no tools any more, so it would do its work: it was not run"
        return report.model_copy(update={"skipped": skipped})
    entries = list(_settled(run.entries))
    calls = _calls(record, run, binding, entries)
    ended = await _ended(record, run, binding, calls)
    made = sum(1 for entry in entries if entry.kind == "intent") - len(calls.left())
    return report.model_copy(update={"calls": made, "difference": _difference(run, calls, ended)})


@dataclass(frozen=True, slots=True)
class _Ended:
    """How a handler ended: with JSON, or by raising."""

    result: Any = None
    raised: BaseException | None = None


async def _ended(
    record: TaskRecord, run: RecordedRun, binding: Binding, calls: _RecordedCalls
) -> _Ended:
    ctx = Context(
        task=record.task,
        saga=record.saga,
        step=run.step,
        phase=run.phase,
        attempt=run.attempt,
        epoch=0,
        agent=run.agent,
        traceparent=_TRACE,
        input=run.input,
        results=run.results,
        outcome_unknown=run.outcome_unknown,
        goal=record.manifest.goal if record.manifest else "",
        calls=calls,
    )
    try:
        await calls.open()
        arguments = binding.arguments(CommandData(input=run.input, result=run.result))
        async with asyncio.timeout(RERUN_MAX_S):
            returned = await binding.function(ctx, *arguments)
        await calls.finished()
        if returned is EMPTY:
            return _Ended()
        return _Ended(orjson.loads(binding.encode(returned)))
    except Exception as error:  # whatever it is, it is what the handler did
        return _Ended(raised=error)
    finally:
        calls.close()


def _difference(run: RecordedRun, calls: _RecordedCalls, ended: _Ended) -> str:
    """What the handler did otherwise than its record says, first; "" if nothing."""
    stopped = calls.stopped
    if isinstance(stopped, JournalMismatch):
        return str(stopped)
    if isinstance(stopped, Halted):
        return str(stopped) if run.completed else ""  # the record ends here, too
    if isinstance(ended.raised, PayloadLost):
        return str(ended.raised)
    if not run.completed:
        return ""
    if ended.raised is not None:
        return f"it raised {type(ended.raised).__name__}: {ended.raised}"
    left = calls.left()
    if left:
        return f"it ended without call {left[0].key!r} of tool {left[0].intent.tool!r}"
    if run.phase == "action" and ended.result != run.returned:
        return f"it returned {_short(ended.result)}; recorded is {_short(run.returned)}"
    return ""


class _Recording:
    """A journal that is only read: what a handler adds to it is forgotten."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries

    async def open(self) -> JournalOpened:
        return JournalOpened(epoch=1, entries=self._entries)

    async def read(self, after: int) -> JournalPage:
        return JournalPage(entries=self._entries[after:])

    async def append(self, _epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        return JournalAppended(seq=seq + len(entries) - 1)

    async def put(self, _body: bytes) -> tuple[str, str]:
        return "not kept", ""

    async def get(self, _reference: str, _digest: str) -> bytes:
        raise PayloadLost("a value of the journal is not in the record: it was gone when exported")


class _RecordedCalls(Calls):
    """Calls whose journal is a recorded one."""

    def left(self) -> list[Recorded]:
        """Those that the handler has not made again so far."""
        return [] if self._replay is None else self._replay.left()


class _NoTrial(Trial):
    """Runs nothing: a call that gets here is not in the journal."""

    async def run(self, tool: Tool, call: Call, arguments: Arguments) -> Result | Failure:
        given = _short(arguments.named)
        raise Halted(
            f"it calls tool {tool.name!r} with {given} (key {call.key!r}), which the journal does "
            "not have",
            kind=BEYOND,
        )


def _calls(
    record: TaskRecord, run: RecordedRun, binding: Binding, entries: list[Entry]
) -> _RecordedCalls:
    operation = Operation(task=record.task, step=run.step, phase=run.phase)
    kept = Journal(_Recording(entries))
    about = About(operation, run.attempt, binding.tools)
    return _RecordedCalls(about, kept, _NoTrial(_in_no_thread, _no_leave, kept.make_sure))


def _in_no_thread(_function: Callable[[], Any], _name: str) -> asyncio.Future[Any]:
    raise AssertionError("no tool is run")


async def _no_leave(_tool: Tool, _call: Call) -> str:
    raise AssertionError("no tool is run")


def _settled(entries: Iterable[Entry]) -> Iterable[Entry]:
    """The calls whose end is known, and how they ended; numbered anew, as a journal is."""
    kept = [entry for entry in entries if entry.kind not in ("checkpoint", "note")]
    last = {entry.key: place for place, entry in enumerate(kept) if entry.kind != "intent"}
    sound = [
        entry
        for place, entry in enumerate(kept)
        if entry.kind != "intent" or place < last.get(entry.key, -1)
    ]
    for number, entry in enumerate(sound, 1):
        yield entry.model_copy(update={"seq": number})


def _short(value: Any) -> str:
    shown = canonical(value).decode()
    return shown if len(shown) <= SHOWN_MAX_CHARS else f"{shown[: SHOWN_MAX_CHARS - 1]}…"
