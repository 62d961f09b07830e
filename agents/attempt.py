"""One attempt: its handler's call, its limits, and the event that says how it went.

What always holds: an attempt is through, and its slot free again, only when the command is
settled *and* the handler has really ended (a thread outlives its time limit).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import orjson
from headway.agents import payloads, reports
from headway.agents.agent import Agent
from headway.agents.binding import EMPTY, Binding, InvalidResult
from headway.agents.claims import claim
from headway.agents.connection import Connection
from headway.agents.context import Context
from headway.agents.errors import InvalidInput, Reject, Retry, Unavailable
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

HEARTBEATS_PER_TIMEOUT = 3  # said at most this often, however often the handler calls

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
        self._in_thread = False
        self._beats = 0
        self._beat_at = 0.0

    def start(self, *, claimed: bool) -> None:
        """Begin; unless `claimed`, by asking a coordinator whether to."""
        self.work = self._station.loop.create_task(self._work(claimed))

    def hand_back(self) -> None:
        """Give the command back at once and stop the handler."""
        self.settlement.hand_back()
        self._stop()

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
        except Exception as error:  # ours: whatever it is, the command must not hang
            outcome = _fault(self.command, error)
            self.settlement.report(encode(self._event(FAILED, outcome)))
        finally:
            self._handling = False
            self._part_ended()

    def _part_ended(self) -> None:
        """The command is settled, the task is ended, or the thread is: are all three?"""
        if self.settlement.settled and not self._handling and not self._in_thread:
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
            ctx = self._context(data, limit_s, in_thread=not binding.is_async)
            returned = await self._call(binding, ctx, arguments)
        except asyncio.CancelledError as error:
            if self._stopped:
                raise
            return _fault(command, error)  # the handler's own doing, not ours
        except (Exception, SystemExit) as error:
            return _fault(command, error)
        finally:
            if timer is not None:
                timer.cancel()
        return _result(binding, returned)

    async def _call(self, binding: Binding, ctx: Context, arguments: list[Any]) -> Any:
        if binding.is_async:
            return await binding.function(ctx, *arguments)
        function = partial(binding.function, ctx, *arguments)
        ending = in_thread(function, f"{ctx.agent}.{binding.name}", self._thread_ended)
        self._in_thread = True
        return await ending

    def _thread_ended(self) -> None:
        self._in_thread = False
        self._part_ended()

    def _context(self, data: CommandData, limit_s: float, *, in_thread: bool) -> Context:
        command = self.command
        beat: Callable[[], object] = self._beat
        if in_thread:
            beat = partial(self._station.loop.call_soon_threadsafe, self._beat)
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
            deadline_at=time.time() + limit_s if limit_s else None,
            cancellation=self.cancellation,
            beat=beat,
        )

    def _time_out(self) -> None:
        """The handler had its time: say so at once, whatever it does about being cancelled."""
        _log.warning("%s: over its start_to_close, stopped", self.command.id)
        self.settlement.report(encode(self._event(TIMED_OUT)))
        self._stop()

    def _stop(self) -> None:
        self._stopped = True
        self.cancellation.set()
        self.work.cancel()

    async def _say_started(self) -> None:
        """Have it stored that the attempt begins, before it does."""
        messages = [(self._event_subject, encode(self._event(STARTED)))]

        async def once() -> None:
            [error] = await self._station.connection.wire.store_all(messages)
            if error is not None:
                raise Unavailable(str(error))

        await patiently(once, f"start of {self.command.id}")

    def _beat(self) -> None:
        """Say that the handler is alive, unless that was said a moment ago."""
        interval_s = self.command.heartbeatms / 1000 / HEARTBEATS_PER_TIMEOUT
        now = self._station.loop.time()
        wire = self._station.connection.wire
        if not interval_s or now - self._beat_at < interval_s or not wire.connected:
            return
        self._beats += 1
        self._beat_at = now
        event = self._event(HEARTBEAT)
        event.id = f"{event.id}.{self._beats}"
        wire.publish(self._event_subject, encode(event))

    def _event(self, kind: str, data: EventData | None = None) -> Event:
        return reports.event(self.command, self._epoch, self._station.source, kind, data)


def _result(binding: Binding, returned: Any) -> EventData:
    if returned is EMPTY and binding.phase == "compensation":
        return EventData(empty=True)
    try:
        result = binding.encode(returned)
    except InvalidResult as error:
        return reports.failure(reports.INVALID_RESULT, str(error), retryable=False)
    if len(result) > INPUT_MAX_BYTES:
        return reports.failure(
            reports.RESULT_TOO_LARGE,
            f"the result has {len(result)} bytes, more than {INPUT_MAX_BYTES}; "
            "keep it elsewhere and return a reference",
            retryable=False,
        )
    return EventData(result=orjson.Fragment(result))


def _fault(command: Command, error: BaseException) -> EventData:
    """A failure by exception; one that the handler did not raise on purpose is logged whole."""
    if isinstance(error, Reject | Retry):
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
