"""One attempt: its handler's call, its limits, and the event that says how it went.

What always holds: an attempt is through, and its slot free again, only when the command is
settled *and* the handler has really ended (a thread outlives its time limit). One that was
superseded leaves no event; one that was halted is reported as that, whatever its handler did.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from headway.agents import payloads, reports
from headway.agents.about import About
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Binding, InvalidResult
from headway.agents.calling import calls_of
from headway.agents.checkpoints import Cause
from headway.agents.claims import claim
from headway.agents.connection import Connection
from headway.agents.context import Context
from headway.agents.entries import JournalOpen
from headway.agents.errors import Halted, InvalidInput, Reject, Retry, Superseded, Unavailable
from headway.agents.heartbeats import Heartbeats
from headway.agents.invocations import MARK_S, Calls
from headway.agents.journal import Coordinated
from headway.agents.messages import (
    COMPLETED,
    FAILED,
    HEARTBEAT,
    INLINE_MAX_BYTES,
    INPUT_MAX_BYTES,
    STARTED,
    TIMED_OUT,
    Command,
    CommandData,
    Event,
    EventData,
    decode_command_data,
    encode,
)
from headway.agents.patience import patiently
from headway.agents.payloads import PayloadLost
from headway.agents.pull import Delivery
from headway.agents.settlement import Settlement
from headway.agents.subjects import CommandSubject, event_subject
from headway.agents.threads import in_thread

_log = logging.getLogger("headway.agents.attempt")


@dataclass(frozen=True, slots=True)
class Station:
    """What all attempts of one worker share."""

    connection: Connection
    agent: Agent
    worker: str
    source: str
    loop: asyncio.AbstractEventLoop


class Attempt:
    """Carries out one command, in one task; `on_through` is called once, when all is over."""

    def __init__(
        self,
        station: Station,
        delivery: Delivery,
        subject: CommandSubject,
        command: Command,
        task_id: UUID,
        on_through: Callable[[Attempt], None],
    ) -> None:
        self.subject = delivery.subject
        self.cancellation = asyncio.Event()
        self._station = station
        self.command = command
        self._task_id = task_id
        self._binding = station.agent.handlers.get(subject.action)
        self._action = subject.action
        self._delivered = delivery.delivered
        self._epoch = command.epoch
        self._event_subject = event_subject(station.agent.name, subject.task)
        self.settlement = Settlement(
            station.connection.wire, delivery, self._event_subject, self._part_ended
        )
        self._on_through = on_through
        self._stopped = False  # by us: what the handler still does is of no interest
        self._handling = True
        self._threads = 0
        self._calls: Calls | None = None
        self._taken_up = command.attempt > 1  # an earlier worker may have called tools
        self._heartbeats = Heartbeats(station.loop, command.heartbeatms, self._say_alive)

    def start(self, *, claimed: bool) -> None:
        """Begin; unless `claimed`, by asking a coordinator whether to."""
        self._taken_up = self._taken_up or not claimed
        self.work = self._station.loop.create_task(self._work(claimed))

    async def hand_back(self) -> None:
        """Stop the handler, keep how far it came if that is soon done, and give the command back:
        at once if it has no journal."""
        self._stop()
        await self._wind_up("stop")
        self.settlement.hand_back()

    async def _work(self, claimed: bool) -> None:
        try:
            if not claimed and not await self._claim():
                self.settlement.drop()
                return
            outcome = await self._carry_out()
            event = self._event(COMPLETED if outcome.error is None else FAILED, outcome)
            body = encode(event)
            if len(body) > INLINE_MAX_BYTES:
                body = encode(await _by_reference(self._station, event))
            self.settlement.report(body)
        except Superseded as error:
            _log.info("%s: superseded, dropped: %s", self.command.id, error)
            self.settlement.abandon()
        except Exception as error:  # ours: whatever it is, the command must not hang
            outcome = _fault(self.command, error)
            self.settlement.report(encode(self._event(FAILED, outcome)))
        finally:
            if self._calls is not None and not self._stopped:
                self._calls.close()
            self._heartbeats.end()
            self._handling = False
            self._part_ended()

    def _part_ended(self) -> None:
        """The command is settled, the task is ended, or the thread is: are all three?"""
        if self.settlement.settled and not self._handling and not self._threads:
            self._calls = None  # they know this attempt: a cycle
            self._on_through(self)

    async def _claim(self) -> bool:
        station = self._station
        reply = await claim(
            station.connection,
            self.command,
            self._task_id,
            delivered=self._delivered,
            agent=station.agent.name,
            worker=station.worker,
        )
        if reply.granted:
            self._epoch = reply.epoch
        else:
            _log.info("%s: not granted, dropped: %s", self.command.id, reply.reason)
        return reply.granted

    async def _carry_out(self) -> EventData:
        """Call the handler and say how it went; cancelled if that is known already."""
        command, binding = self.command, self._binding
        if binding is None or binding.phase != command.phase:
            return reports.unknown_action(self._station.agent.name, self._action, command.phase)
        try:
            data = command.data or await _fetch(self._station, command)
            arguments = binding.arguments(data)
        except (InvalidInput, PayloadLost) as error:
            return reports.unusable(error)
        if command.reportstart:
            await self._say_started()
        limit_s = command.starttoclosems / 1000
        timer = self._station.loop.call_later(limit_s, self._time_out) if limit_s else None
        try:
            return await self._handle(binding, self._context(binding, data, limit_s), arguments)
        finally:
            if timer is not None:
                timer.cancel()

    async def _handle(self, binding: Binding, ctx: Context, arguments: list[Any]) -> EventData:
        """Call the handler, and wait for the calls that it left behind."""
        calls = self._calls
        try:
            if calls is not None and self._taken_up:
                await calls.open()
            outcome = _result(binding, await self._call(binding, ctx, arguments))
        except Superseded:
            raise
        except asyncio.CancelledError as error:
            if self._stopped:
                raise
            outcome = _fault(self.command, error)  # the handler's own doing, not ours
        except (Exception, SystemExit) as error:
            outcome = _fault(self.command, error)
        return outcome if calls is None else await self._last_word(calls, outcome)

    async def _last_word(self, calls: Calls, outcome: EventData) -> EventData:
        """What is reported, if the handler's calls were stopped, is that. Raises Superseded."""
        await calls.finished()
        if isinstance(calls.stopped, Superseded):
            raise calls.stopped
        if calls.stopped is not None:
            outcome = reports.failure_of(calls.stopped)
        if outcome.error is not None:
            await calls.mark("fault")
        return outcome

    async def _call(self, binding: Binding, ctx: Context, arguments: list[Any]) -> Any:
        if binding.is_async:
            return await binding.function(ctx, *arguments)
        function = partial(binding.function, ctx, *arguments)
        return await self._in_thread(function, binding.name)

    def _in_thread(self, function: Callable[[], Any], name: str) -> asyncio.Future[Any]:
        ending = in_thread(function, f"{self._station.agent.name}.{name}", self._thread_ended)
        self._threads += 1
        return ending

    def _thread_ended(self) -> None:
        self._threads -= 1
        self._part_ended()

    def _context(self, binding: Binding, data: CommandData, limit_s: float) -> Context:
        command, beats = self.command, self._heartbeats
        deadline_at = time.time() + limit_s if limit_s else None
        if binding.tools is not None:
            self._calls = self._journaled(binding, data, deadline_at)
        return Context(
            task=self._task_id,
            saga=command.saga,
            step=command.step,
            phase=command.phase,
            attempt=command.attempt,
            epoch=self._epoch,
            agent=self._station.agent.name,
            traceparent=command.traceparent,
            input=data.input,
            results=data.results,
            outcome_unknown=data.outcome_unknown,
            goal=data.goal,
            rejection=data.rejection,
            deadline_at=deadline_at,
            cancellation=self.cancellation,
            beat=beats.beat if binding.is_async else beats.beat_from_thread,
            calls=self._calls,
            connection=self._station.connection,
        )

    def _journaled(self, binding: Binding, data: CommandData, deadline_at: float | None) -> Calls:
        command, station = self.command, self._station
        opening = JournalOpen(
            task=self._task_id,
            step=command.step,
            phase=command.phase,
            attempt=command.attempt,
            epoch=self._epoch,
            agent=station.agent.name,
            worker=station.worker,
        )
        anew = bool(data.rejection)
        about = About(opening, command.attempt, binding.tools, deadline_at, anew)
        keeping, beat = Coordinated(station.connection, opening), self._heartbeats.beat
        return calls_of(keeping, station.connection, about, opening, self._in_thread, beat)

    def _time_out(self) -> None:
        """The handler had its time: say so at once, whatever it does about being cancelled."""
        _log.warning("%s: over its start_to_close, stopped", self.command.id)
        self.settlement.report(encode(self._event(TIMED_OUT)))
        self._stop()
        self._winding_up = self._station.loop.create_task(self._wind_up("fault"))

    def _stop(self) -> None:
        self._stopped = True
        self.cancellation.set()
        self.work.cancel()

    async def _wind_up(self, cause: Cause) -> None:
        """Once stopped: keep how far the attempt came, if it takes no longer than MARK_S."""
        calls = self._calls
        if calls is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(MARK_S):
                await asyncio.wait({self.work})
                await calls.mark(cause)
        calls.close()

    async def _say_started(self) -> None:
        """Have it stored that the attempt begins, before it does."""
        messages = [(self._event_subject, encode(self._event(STARTED)))]

        async def once() -> None:
            [error] = await self._station.connection.wire.store_all(messages)
            if error is not None:
                raise Unavailable(str(error))

        await patiently(once, f"start of {self.command.id}")

    def _say_alive(self, number: int, progress: bytes) -> bool:
        """Publish a heartbeat, unless there is nobody to hear it."""
        wire = self._station.connection.wire
        if not wire.connected:
            return False
        news = EventData(progress=orjson.Fragment(progress)) if progress else None
        event = self._event(HEARTBEAT, news)
        event.id = f"{event.id}.{number}"
        wire.publish(self._event_subject, encode(event))
        return True

    def _event(self, kind: str, data: EventData | None = None) -> Event:
        return reports.event(self.command, self._epoch, self._station.source, kind, data)


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


def _fault(command: Command, error: BaseException) -> EventData:
    """A failure by exception; one that the handler did not raise on purpose is logged whole."""
    if isinstance(error, Reject | Retry | Halted):
        _log.info("%s: %s: %s", command.id, type(error).__name__, error)
    else:
        _log.warning("%s: failed", command.id, exc_info=error)
    return reports.failure_of(error)


async def _fetch(station: Station, command: Command) -> CommandData:
    """The data that travels by reference; asked for until the store answers."""
    reference, digest = command.dataref, command.datadigest
    get = partial(payloads.get, station.connection.nc, reference, digest)
    return decode_command_data(await patiently(get, f"payload of {command.id}"))


async def _by_reference(station: Station, event: Event) -> Event:
    """The event with its data put into the payload store, however long that takes."""
    put = partial(payloads.put, station.connection.nc, event.task, orjson.dumps(event.data))
    reference, digest = await patiently(put, f"payload of {event.id}")
    return replace(event, data=None, dataref=reference, datadigest=digest)
