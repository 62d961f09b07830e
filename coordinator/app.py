"""The coordinator as a process: its parts wired by hand, and what it repeats.

Always holds: no outage of PostgreSQL or NATS, however long, ends a loop or loses a message: what
cannot be done is tried again, and what is not done is not acked.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID, uuid4

import uvloop
from headway.agents import subjects
from headway.agents.connection import Connection, connect
from headway.agents.isolation import Isolation
from headway.agents.news import is_settled, news_of
from headway.agents.pull import Delivery, Pull
from headway.agents.wire import Wire
from headway.coordinator.access import Access
from headway.coordinator.admission import Admission
from headway.coordinator.api import Api
from headway.coordinator.asking import asking
from headway.coordinator.batches import Batches
from headway.coordinator.bus import Bus
from headway.coordinator.catalogue import Catalogue
from headway.coordinator.clock import Clock
from headway.coordinator.command_keys import CommandKeys
from headway.coordinator.engine import Engine
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.family import Family
from headway.coordinator.feed import Feed
from headway.coordinator.feed_http import feed_router
from headway.coordinator.hooks_http import hooks_router
from headway.coordinator.housekeeping import Housekeeping
from headway.coordinator.http_face import HttpFace
from headway.coordinator.http_metrics import metrics_router
from headway.coordinator.inlets import Inlets
from headway.coordinator.intake import Answer, Intake
from headway.coordinator.observing import Counters, Observers
from headway.coordinator.overview import KEEP_EVERY_S, Overview
from headway.coordinator.presence import Roll
from headway.coordinator.records import NewTask
from headway.coordinator.repeating import first_of, forever, until_up
from headway.coordinator.schemas import InputCheck
from headway.coordinator.services import Parts, services
from headway.coordinator.settings import Settings
from headway.coordinator.settled import Settled
from headway.coordinator.store import Store
from headway.coordinator.sweep import Sweep
from headway.coordinator.tally import Tally
from headway.coordinator.telemetry import Telemetry
from headway.coordinator.tokens import Tokens
from headway.coordinator.topology import Topology
from headway.coordinator.vigil import Vigil
from headway.coordinator.vouching import Vouching
from headway.coordinator.watch import WATCH_INTERVAL_S
from headway.coordinator.webhooks import Webhooks
from headway.coordinator.wellbeing import Wellbeing
from headway.sagas.inputs import Guarded, Input

_LOG = logging.getLogger(__name__)

SWEEP_INTERVAL_S = 0.1
TEND_INTERVAL_S = 1.0
PARTITIONS_INTERVAL_S = 6 * 3_600.0
STOP_GRACE_S = 5.0
CANCEL_AGAIN_S = 0.1
YOUNG_OBJECTS = 50_000  # allocations between two collections: few cycles are made here


class Coordinator:
    """One coordinator. Any number may run side by side."""

    def __init__(self, settings: Settings) -> None:
        self.id = uuid4()
        self._settings = settings
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets
        self._store = Store(settings.postgres_url.get_secret_value())
        self._clock = Clock()
        self._command_keys = CommandKeys(self._store, self._clock.now_ms)
        self._tokens = Tokens(self._store.fetch, required=settings.require_tokens)
        self._telemetry = Telemetry(self.id, os.environ, self._clock.now_ms)
        self._intake = Intake(self._telemetry.sample)
        self._roll = Roll()
        self._tally = Tally()
        self._pulls: list[Pull] = []
        self._http = HttpFace(settings, self._tokens)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises SchemaMismatch and CannotListen only."""
        self._http.start()
        try:
            await self._run(stop)
        finally:
            await self._http.stop()

    async def _run(self, stop: asyncio.Event) -> None:
        await until_up("PostgreSQL", self._open, stop)
        if stop.is_set():
            return
        connection = await first_of(
            connect(
                self._settings.nats_url.get_secret_value(),
                name=f"headway-coordinator-{self.id}",
                inbox_prefix=subjects.COORDINATORS_INBOX,
                wait=True,
            ),
            stop,
        )
        if connection is None:
            return
        self._wire_up(connection)
        self._feed = Feed(connection.wire)
        await until_up("PostgreSQL", self._admission.begin, stop)
        await until_up("JetStream", self._housekeeping.begin, stop)
        await self._vigil.begin()
        deciding = asyncio.create_task(self._batches.run())
        loops = [asyncio.create_task(loop) for loop in self._loops()]
        try:
            await connection.wire.subscribe(subjects.PRESENCE, self._roll.hear)
            await self._api.start()
            feed = feed_router(self._feed, self._http.access, self._store.owner_of)
            webhooks = Webhooks(self._store, self._command_keys.key_for, self._clock.now_ms)
            metrics = metrics_router(self._numbers, self._http.access)
            hooks = hooks_router(webhooks, self._offer.people["signal"])
            self._http.open(self._offer, self._wellbeing.looks(), [feed, hooks, metrics])
            await until_up("JetStream", self._vigil.succession.begin, stop)
            _LOG.info("coordinator %s serves", self.id)
            await stop.wait()
        finally:
            await _end(*loops)
            await self._leave(deciding)
            await connection.close()
            await self._store.close()

    async def _open(self) -> None:
        await self._store.open()
        await self._command_keys.open()

    def _wire_up(self, connection: Connection) -> None:
        wire, put, store, roll = connection.wire, self._intake.put, self._store, self._roll
        now_ms = self._clock.now_ms
        bus = Bus(connection, self._command_keys.sign, now_ms)
        self._topology = topology = Topology(
            connection,
            self._settings.replicas,
            lambda agent: self._admission.breakers.delivering(agent),  # noqa: PLW0108  # made below
        )
        self._admission = admission = Admission(
            self.id, store, bus, topology, roll, wire, self._rng
        )
        commands = admission.commands
        sweep = Sweep(store, commands, put, now_ms, self._rng)
        self._settled = settled = Settled(lambda task: news_of(wire, task, is_settled))
        check = InputCheck().check
        family = Family(self._tell, now_ms)
        told = self._telemetry.listeners
        counters = Counters(self._tally.count, self._telemetry.count)
        observe = Observers(settled.observe, counters, *told)
        engine = Engine(store, store.sagas, commands, observe, family, check, sweep.suspect, put)
        measure = self._telemetry.measure
        self._batches = Batches(self._intake, engine, self._freed, self._ask_again, measure)
        self._ask = asking(self._batches.ask)
        self._vigil = vigil = Vigil(self.id, wire, store, topology, sweep, roll, put, now_ms)
        vouching = Vouching(self._command_keys.key_for)
        acknowledge = vigil.held.acknowledge
        inlets = Inlets(bus, put, acknowledge, now_ms, self._rng, self._tokens, vouching)
        catalogue = Catalogue(store, topology, roll, now_ms, admission.breakers.of)
        self._offer_services(connection, bus, settled, catalogue)
        self._housekeeping = Housekeeping(
            self.id, self._clock, store, topology, catalogue, sweep, inlets, roll
        )
        wire.on_reconnect(self._housekeeping.nats_was_away)
        self._isolation = Isolation(connection, f"STREAM.INFO.{subjects.EVENTS_STREAM}")
        self._pulls = [
            self._pull(wire, subjects.TASKS_STREAM, inlets.on_task),
            self._pull(wire, subjects.EVENTS_STREAM, inlets.on_event),
        ]

    def _offer_services(
        self, connection: Connection, bus: Bus, settled: Settled, catalogue: Catalogue
    ) -> None:
        store, topology, now_ms = self._store, self._topology, self._clock.now_ms
        wire = connection.wire
        self._wellbeing = Wellbeing(wire, store, topology)
        self._overview = Overview(self.id, self._tally, store, wire, self._roll, now_ms)
        parts = Parts(
            connection,
            store,
            topology,
            bus,
            self._roll,
            settled,
            catalogue,
            self._ask,
            self._guard,
            self._jitter,
            self._command_keys,
            self._admission,
            self._wellbeing,
            self._overview,
            self._telemetry.journaled,
            now_ms,
        )
        access = Access(self._tokens, store.owner_of)
        self._offer = access.guarded(services(parts))
        self._api = Api(connection, self._offer, access.caller)

    def _pull(self, wire: Wire, stream: str, on_delivery: Callable[[Delivery], None]) -> Pull:
        taking = self._vigil.held.taking(stream, on_delivery)
        return Pull(wire, stream, subjects.COORDINATOR, taking, self._batches.room)

    def _loops(self) -> list[Coroutine[Any, Any, None]]:
        look = self._housekeeping
        return [
            *(pull.run() for pull in self._pulls),
            self._isolation.run(),
            forever("admission", self._admission.step, 0.0),
            forever("breakers", self._admission.breakers.step, 0.0),
            forever("sweep", look.sweep, SWEEP_INTERVAL_S),
            forever("streams", look.tend_streams, TEND_INTERVAL_S),
            forever("agents", look.tend_agents, TEND_INTERVAL_S),
            forever("peers", look.tend_peers, TEND_INTERVAL_S),
            forever("lost workers", self._vigil.watch.agents, WATCH_INTERVAL_S),
            forever("lost coordinators", self._vigil.watch.peers, WATCH_INTERVAL_S),
            forever("tallies", self._overview.keep, KEEP_EVERY_S),
            *self._telemetry.loops(self._store, self._overview),
            forever("partitions", look.tend_partitions, PARTITIONS_INTERVAL_S),
        ]

    async def _leave(self, deciding: asyncio.Task[None]) -> None:
        """Take nothing more, let what is under way end, say goodbye; within STOP_GRACE_S."""
        try:
            async with asyncio.timeout(STOP_GRACE_S):
                self._feed.close()
                self._settled.close()
                await self._http.stop()
                await self._batches.drain()
                await self._api.stop()
                await self._overview.keep()
                await self._housekeeping.leave()
                await self._vigil.end()
                await self._telemetry.end()
        except (CoordinatorError, TimeoutError) as error:
            _LOG.info("left without saying goodbye: %s", error or "out of time")
        finally:  # PubAcks are waited for no longer: what was not acked comes again
            await _end(deciding, *self._batches.under_way())

    async def _guard(self, task: UUID, step: str, kind: str, reason: str) -> None:
        """A guard stopped a step: its task is held, whatever its agent says."""
        await self._ask(task, Guarded(self._clock.now_ms(), step, kind, reason))

    async def _tell(self, task: UUID, happened: Input, new: NewTask | None) -> Answer:
        return await self._ask(task, happened, new=new)

    def _ask_again(self) -> None:
        self._vigil.succession.ask_again()

    async def _numbers(self) -> str:
        return await self._telemetry.text(self._overview)

    def _freed(self) -> None:
        for pull in self._pulls:
            pull.freed()

    def _jitter(self) -> float:
        return self._rng.uniform(-1.0, 1.0)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Run one coordinator until `stop` is set. SchemaMismatch: this database is not for it."""
    await Coordinator(settings).run(stop)


def run(settings: Settings) -> None:
    """`serve` as the main thing of this process, until SIGTERM or SIGINT."""

    async def until_told() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        _settle_memory()
        await serve(settings, stop)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(until_told())


async def _end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel, and again until all are over: `asyncio.wait_for` of Python 3.11, which asyncpg and
    nats-py use, swallows a cancellation that comes in the moment in which it is done waiting."""
    going = set(tasks)
    while going:
        for task in going:
            task.cancel()
        _, going = await asyncio.wait(going, timeout=CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)


def _settle_memory() -> None:
    """Few cycles are made in the hot path: collect rarely, and never what start-up made."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
