"""One call of a handler: its context, its journal and its threads, and what came of it.

What always holds: an attempt that was superseded has no outcome; one that was halted has that as
its outcome, whatever its handler did; calls that the handler left behind end before there is one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from headway.agents import reports
from headway.agents.about import About
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Binding, InvalidResult
from headway.agents.calling import calls_of
from headway.agents.checkpoints import Cause
from headway.agents.codec import Keyring
from headway.agents.connection import Connection
from headway.agents.context import Context
from headway.agents.entries import JournalOpen
from headway.agents.errors import Halted, Reject, Retry, Superseded
from headway.agents.heartbeats import Heartbeats, Say
from headway.agents.invocations import MARK_S, Calls
from headway.agents.journal import Keeping
from headway.agents.messages import INPUT_MAX_BYTES, Command, CommandData, EventData
from headway.agents.threads import in_thread
from headway.agents.timelimit import TimeLimit
from headway.agents.tracing import within

Keep = Callable[[Connection, str, JournalOpen], Keeping]

_log = logging.getLogger("headway.agents.attempt")


@dataclass(frozen=True, slots=True)
class Station:
    """What all attempts of one worker share."""

    connection: Connection
    agent: Agent
    worker: str
    source: str
    loop: asyncio.AbstractEventLoop
    keyring: Keyring | None = None


class Handling:
    """`threads` are how many still run; `ended` is called when one does not any more. `stopped`
    by us: what the handler still does is of no interest."""

    __slots__ = (
        *("threads", "stopped", "_station", "_command", "_cancellation", "_say", "_ended"),
        *("_heartbeats", "_calls", "_limit", "_say_waiting", "_paused", "_about", "_ctx"),
    )

    def __init__(
        self,
        station: Station,
        command: Command,
        cancellation: asyncio.Event,
        limit: TimeLimit,
        say: Say,
        say_waiting: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        self.threads = 0
        self.stopped = False
        self._station = station
        self._command = command
        self._cancellation = cancellation
        self._limit = limit
        self._say = say
        self._say_waiting = say_waiting
        self._ended = ended
        self._heartbeats: Heartbeats | None = None  # most handlers say nothing
        self._calls: Calls | None = None
        self._about: About | None = None
        self._ctx: Context | None = None
        self._paused: set[Callable[[], None]] = set()

    def context(
        self, binding: Binding, data: CommandData, task: UUID, epoch: int, keep: Keep
    ) -> Context:
        """What the handler is given; `keep` makes what its journal is kept by, if it has one."""
        command = self._command
        deadline_at = self._limit.start()
        if binding.tools is not None:
            opening = JournalOpen(
                task=task,
                step=command.step,
                phase=command.phase,
                attempt=command.attempt,
                epoch=epoch,
                worker=self._station.worker,
            )
            anew = bool(data.rejection)
            about = About(opening, command.attempt, binding.tools, deadline_at, anew)
            self._about = about
            self._calls = self._journaled(about, opening, keep)
        self._ctx = Context(
            task=task,
            saga=command.saga,
            step=command.step,
            phase=command.phase,
            attempt=command.attempt,
            epoch=epoch,
            agent=self._station.agent.name,
            traceparent=command.traceparent,
            input=data.input,
            results=data.results,
            outcome_unknown=data.outcome_unknown,
            goal=data.goal,
            rejection=data.rejection,
            deadline_at=deadline_at,
            cancellation=self._cancellation,
            beat=self._beat if binding.is_async else self._beat_from_thread,
            calls=self._calls,
            connection=self._station.connection,
        )
        return self._ctx

    def begin(self) -> Callable[[], None]:
        """Of `Waits`: the first call stops the attempt's time, here and at the coordinators."""

        def wait() -> None:
            if wait not in self._paused:
                self._paused.add(wait)
                self._limit.pause()
            self._beat()
            self._say_waiting()

        return wait

    def over(self, wait: Callable[[], None], /) -> None:
        """Of `Waits`: the attempt has its whole time again."""
        if wait not in self._paused:
            return
        self._paused.discard(wait)
        deadline_at = self._limit.go_on()
        if self._ctx is not None and self._about is not None:
            self._ctx.deadline_at = self._about.deadline_at = deadline_at

    async def outcome(
        self, binding: Binding, ctx: Context, arguments: list[Any], *, taken_up: bool
    ) -> EventData:
        """Call the handler. `taken_up`: an earlier worker may have left calls open; they are
        settled first. Raises Superseded, and CancelledError if we cancelled it."""
        calls = self._calls
        try:
            if calls is not None and taken_up:
                await calls.open()
            with within(ctx.traceparent):
                if binding.is_async:
                    returned = await binding.function(ctx, *arguments)
                else:
                    function = partial(binding.function, ctx, *arguments)
                    returned = await self._in_thread(function, binding.name)
            outcome = _result(binding, returned)
        except Superseded:
            raise
        except asyncio.CancelledError as error:
            if self.stopped:
                raise
            outcome = fault(self._command, error)  # the handler's own doing, not ours
        except (KeyboardInterrupt, GeneratorExit):  # the process, or the loop, is ending
            raise
        except BaseException as error:  # whatever it is, the command must not hang
            outcome = fault(self._command, error)
        return outcome if calls is None else await self._last_word(calls, outcome)

    def end(self) -> None:
        """Nothing more is called, written or said."""
        self._limit.end()
        self._ctx = None
        if self._heartbeats is not None:
            self._heartbeats.end()
        if self._calls is not None:
            self._calls.close()

    async def wind_up(self, work: asyncio.Task[None], cause: Cause) -> None:
        """Once `work`, which called the handler, is cancelled: keep how far that came, if it takes
        no longer than MARK_S, and end."""
        if self._calls is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(MARK_S):
                    await asyncio.wait({work})
                    await self._calls.mark(cause)
        self.end()

    def _beats(self) -> Heartbeats:
        if self._heartbeats is None:
            limit_ms = self._command.heartbeatms
            self._heartbeats = Heartbeats(self._station.loop, limit_ms, self._say)
        return self._heartbeats

    def _beat(self, progress: Any = None) -> None:
        self._beats().beat(progress)

    def _beat_from_thread(self, progress: Any = None) -> None:
        self._beats().beat_from_thread(progress)

    def _journaled(self, about: About, opening: JournalOpen, keep: Keep) -> Calls:
        connection = self._station.connection
        agent = self._station.agent.name
        keeping = keep(connection, agent, opening)
        return calls_of(keeping, connection, agent, about, opening, self._in_thread, self)

    async def _last_word(self, calls: Calls, outcome: EventData) -> EventData:
        """What is reported: if the handler's calls were stopped, that. Raises Superseded."""
        await calls.finished()
        if isinstance(calls.stopped, Superseded):
            raise calls.stopped
        if calls.stopped is not None:
            outcome = reports.failure_of(calls.stopped)
        if outcome.error is not None:
            await calls.mark("fault")
        return outcome

    def _in_thread(self, function: Callable[[], Any], name: str) -> asyncio.Future[Any]:
        ending = in_thread(function, f"{self._station.agent.name}.{name}", self._thread_ended)
        self.threads += 1
        return ending

    def _thread_ended(self) -> None:
        self.threads -= 1
        self._ended()


def fault(command: Command, error: BaseException) -> EventData:
    """A failure by exception. What a handler says on purpose is the task's, and in no log; what it
    did not raise on purpose is logged whole."""
    if isinstance(error, Reject | Retry | Halted):
        _log.info("%s: %s", command.id, type(error).__name__)
    else:
        _log.warning("%s: failed", command.id, exc_info=error)
    return reports.failure_of(error)


def _result(binding: Binding, returned: Any) -> EventData:
    if returned is EMPTY and binding.phase == "compensation":
        return EventData(empty=True)
    try:
        result, handoff = binding.encode(returned), binding.next_steps(returned)
    except InvalidResult as error:
        return reports.failure(reports.INVALID_RESULT, str(error), retryable=False)
    if len(result) > INPUT_MAX_BYTES:
        return reports.failure(
            reports.RESULT_TOO_LARGE,
            f"the result has {len(result)} bytes, more than {INPUT_MAX_BYTES}; "
            "keep it elsewhere and return a reference",
            retryable=False,
        )
    return EventData(result=orjson.Fragment(result), handoff=handoff)
