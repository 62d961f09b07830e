"""One attempt: its handler's call, its limits, and the event that says how it went.

What always holds: an attempt is through, and its slot free again, only when the command is
settled *and* the handler has really ended (a thread outlives its time limit). One that was
superseded leaves no event; one that was halted is reported as that, whatever its handler did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

import orjson
from headway.agents import payloads, reports
from headway.agents.checkpoints import Cause
from headway.agents.claims import claim
from headway.agents.codec import Sealing, Undecryptable
from headway.agents.errors import InvalidInput, Superseded, Unavailable
from headway.agents.handling import Handling, Keep, Station, fault
from headway.agents.journal import Coordinated
from headway.agents.messages import (
    COMPLETED,
    FAILED,
    HANDED_BACK,
    HEARTBEAT,
    INLINE_MAX_BYTES,
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
from headway.agents.sealing import keeping_sealed, opened, sealed, sealing_of
from headway.agents.settlement import Settlement
from headway.agents.subjects import CommandSubject, event_subject, payloads_by
from headway.agents.timelimit import TimeLimit

BEGIN_WITHIN_S = 1.0  # after which an attempt may have been given up before its handler began
HAND_BACK_S = 1.0  # for the stream to confirm that a command is given back

_log = logging.getLogger("headway.agents.attempt")


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
        self.failed = False  # by what was reported
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
        self._sealing: Sealing | None = None  # if the task is encrypted
        self._working = True
        self._handling: Handling | None = None  # it knows this attempt; gone when all is through
        self._taken_up = command.attempt > 1  # an earlier worker may have called tools

    def start(self, *, claimed: bool, paced: bool = False) -> None:
        """Begin; unless `claimed`, by asking a coordinator whether to. What is `paced` waits for
        its turn in any case."""
        self._taken_up = self._taken_up or not claimed
        self.work = self._station.loop.create_task(self._work(claimed, paced))

    async def hand_back(self) -> None:
        """Stop the handler, keep how far it came if that is soon done, and give the command back:
        at once if it has no journal."""
        await self._stop("stop")
        if not self.settlement.reported:
            await self._say_handed_back()
        self.settlement.hand_back()

    async def _work(self, claimed: bool, paced: bool) -> None:
        try:
            may_begin = (claimed and not paced) or await self._claim(claimed)
            outcome = await self._carry_out() if may_begin else None
            if outcome is None:
                self.settlement.drop()
                return
            event = self._event(COMPLETED if outcome.error is None else FAILED, outcome)
            body = encode(event)
            if len(body) > INLINE_MAX_BYTES:
                body = encode(await _by_reference(self._station, event))
            self._report(body, failed=outcome.error is not None)
        except Superseded as error:
            _log.info("%s: superseded, dropped: %s", self.command.id, error)
            self.settlement.abandon()
        except Exception as error:  # ours: whatever it is, the command must not hang
            outcome = fault(self.command, error)
            self._report(encode(self._event(FAILED, outcome)), failed=True)
        finally:
            if self._handling is not None and not self._handling.stopped:
                self._handling.end()
            self._working = False
            self._part_ended()

    def _report(self, event: bytes, *, failed: bool) -> None:
        """Have the event stored that ends the attempt, unless one was before."""
        if not self.settlement.reported:
            self.failed = failed
        self.settlement.report(event)

    def _part_ended(self) -> None:
        """The command is settled, the task is ended, or a thread is: is everything?"""
        if not self.settlement.settled or self._working:
            return
        if self._handling is None or not self._handling.threads:
            self._handling = None
            self._on_through(self)

    async def _claim(self, first: bool) -> bool:
        """Whether to begin. Raises Superseded if another worker has the command."""
        station = self._station
        reply = await claim(
            station.connection,
            self.command,
            self._task_id,
            delivered=self._delivered,
            agent=station.agent.name,
            worker=station.worker,
            first=first,
        )
        if reply.elsewhere:
            raise Superseded(reply.reason)
        if reply.granted:
            self._epoch = reply.epoch
        else:
            _log.info("%s: not granted, dropped: %s", self.command.id, reply.reason)
        return reply.granted

    async def _carry_out(self) -> EventData | None:
        """Call the handler and say how it went; cancelled if that is known already. None: the
        attempt was given up before all that its handler needs was there."""
        command, binding, since = self.command, self._binding, self._station.loop.time()
        if binding is None or binding.phase != command.phase:
            return reports.unknown_action(self._station.agent.name, self._action, command.phase)
        try:
            data = command.data or await _fetch(self._station, command)
            keep: Keep = Coordinated
            sealing = sealing_of(self._station.keyring, command.task, data)
            if sealing is not None:
                data, keep = opened(sealing, data), keeping_sealed(sealing, keep)
                self._sealing = sealing
            arguments = binding.arguments(data)
        except (InvalidInput, PayloadLost) as error:
            return reports.unusable(error)
        except Undecryptable as error:
            return reports.undecryptable(error, no_effect=True)
        if command.reportstart:
            await self._say_started()
        waited_s = self._station.loop.time() - since
        if waited_s > BEGIN_WITHIN_S and not await self._claim(first=False):
            return None
        limit = TimeLimit(self._station.loop, command.starttoclosems / 1000, self._time_out)
        handling = self._handling = Handling(
            self._station,
            command,
            self.cancellation,
            limit,
            self._say_alive,
            self._say_waiting,
            self._part_ended,
        )
        ctx = handling.context(binding, data, self._task_id, self._epoch, keep)
        try:
            return await handling.outcome(binding, ctx, arguments, taken_up=self._taken_up)
        finally:
            limit.end()

    def _time_out(self) -> None:
        """The handler had its time: say so at once, whatever it does about being cancelled."""
        _log.warning("%s: over its start_to_close, stopped", self.command.id)
        self._report(encode(self._event(TIMED_OUT)), failed=True)
        self._stopping = self._station.loop.create_task(self._stop("fault"))

    async def _stop(self, cause: Cause) -> None:
        """Stop the handler, and give it a moment to keep how far it came if it has a journal."""
        self.cancellation.set()
        handling = self._handling
        if handling is not None:
            handling.stopped = True
        self.work.cancel()
        if handling is not None:
            await handling.wind_up(self.work, cause)

    async def _say_started(self) -> None:
        """Have it stored that the attempt begins, before it does."""
        messages = [(self._event_subject, encode(self._event(STARTED)))]

        async def once() -> None:
            [error] = await self._station.connection.wire.store_all(messages)
            if error is not None:
                raise Unavailable(str(error))

        await patiently(once, f"start of {self.command.id}")

    async def _say_handed_back(self) -> None:
        """Have it stored that nobody died of this command, if that can be had in time: or else
        whoever takes it next counts as if one had."""
        message = (self._event_subject, encode(self._event(HANDED_BACK)))
        with suppress(TimeoutError, ConnectionError):
            async with asyncio.timeout(HAND_BACK_S):
                await self._station.connection.wire.store_all([message])

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

    def _say_waiting(self) -> None:
        """Tell that a person is waited for; said again and again, so once may be lost."""
        wire = self._station.connection.wire
        if wire.connected:
            event = self._event(HEARTBEAT, EventData(waiting=True))
            event.id = f"{event.id}.waiting"
            wire.publish(self._event_subject, encode(event))

    def _event(self, kind: str, data: EventData | None = None) -> Event:
        if data is not None and self._sealing is not None:
            data = sealed(self._sealing, data)
        return reports.event(self.command, self._epoch, self._station.source, kind, data)


async def _fetch(station: Station, command: Command) -> CommandData:
    """The data that travels by reference; asked for until the store answers."""
    reference, digest = command.dataref, command.datadigest
    get = partial(payloads.get, station.connection.wire, reference, digest)
    return decode_command_data(await patiently(get, f"payload of {command.id}"))


async def _by_reference(station: Station, event: Event) -> Event:
    """The event with its data put into the payload store, however long that takes."""
    space, data = payloads_by(station.agent.name), orjson.dumps(event.data)
    put = partial(payloads.put, station.connection.wire, space, event.task, data)
    reference, digest = await patiently(put, f"payload of {event.id}")
    return replace(event, data=None, dataref=reference, datadigest=digest)
