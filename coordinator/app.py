"""The coordinator as a process: its parts wired by hand, and all of its loops.

Always holds: no outage of PostgreSQL or NATS, however long, ends a loop or loses a message: what
cannot be done is tried again, and what is not done is not acked.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import uvloop
from headway.agents import subjects
from headway.agents.connection import Connection, connect
from headway.agents.pull import Pull
from headway.agents.reading import Health
from headway.coordinator import telemetry
from headway.coordinator.api import Api
from headway.coordinator.bus import Bus
from headway.coordinator.clock import now_ms
from headway.coordinator.engine import BATCH_MAX, Committed, Engine
from headway.coordinator.errors import CoordinatorError, Refusal, SchemaMismatch, StoreUnavailable
from headway.coordinator.inlets import Inlets
from headway.coordinator.intake import Answer, Intake, Item
from headway.coordinator.operations import Operations
from headway.coordinator.presence import Roll
from headway.coordinator.schemas import InputCheck
from headway.coordinator.settings import Settings
from headway.coordinator.store import Store
from headway.coordinator.sweep import LOOK_AHEAD_MS, Sweep
from headway.sagas.definition import Definition

_LOG = logging.getLogger(__name__)

QUEUE_MAX = 1_024  # items that wait before less is pulled
SECOND_BATCH_MIN = 64  # items that must wait before a second batch starts beside the first
BATCHES_MAX = 2
PERFORMING_MAX = 8  # batches whose PubAcks are still awaited

SWEEP_INTERVAL_S = 0.1
TEND_INTERVAL_S = 1.0
PARTITIONS_INTERVAL_S = 6 * 3_600.0
PEER_SILENT_MS = 3_000
BACKOFF_FIRST_S = 0.1
BACKOFF_MAX_S = 2.0
STOP_GRACE_S = 5.0
DRAIN_POLL_S = 0.01
YOUNG_OBJECTS = 50_000  # allocations between two collections: few cycles are made here
COMPLAINT_INTERVAL_S = 5.0


class Coordinator:
    """One coordinator. Any number may run side by side."""

    def __init__(self, settings: Settings) -> None:
        self.id = uuid4()
        self._settings = settings
        self._rng = random.Random()  # noqa: S311 - jitter, not secrets
        self._store = Store(settings.postgres_url.get_secret_value())
        self._intake = Intake()
        self._roll = Roll()
        self._performing: set[asyncio.Task[None]] = set()
        self._stored = asyncio.Semaphore(PERFORMING_MAX)
        self._store_is_down = False
        self._reconnected = asyncio.Event()
        self._pulls: list[Pull] = []

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set. Raises SchemaMismatch only."""
        await self._until_up("PostgreSQL", self._store.open, stop)
        if stop.is_set():
            return
        connection = await _first(
            connect(
                self._settings.nats_url.get_secret_value(),
                name=f"headway-coordinator-{self.id}",
                wait=True,
            ),
            stop,
        )
        if connection is None:
            return
        self._wire_up(connection)
        await self._until_up("JetStream", self._declare, stop)
        deciding = asyncio.create_task(self._decide())
        loops = [asyncio.create_task(loop) for loop in self._loops()]
        try:
            await connection.wire.subscribe(subjects.PRESENCE, self._roll.hear)
            await self._api.start()
            _LOG.info("coordinator %s serves", self.id)
            await stop.wait()
        finally:
            await _end(*loops)
            await self._leave(deciding)
            await connection.close()
            await self._store.close()

    def _wire_up(self, connection: Connection) -> None:
        wire, put = connection.wire, self._intake.put
        wire.on_reconnect(self._reconnected.set)
        self._bus = Bus(connection, self._settings.replicas)
        self._sweep = Sweep(self._store, self._bus, put, now_ms, self._rng)
        self._engine = Engine(self._store, self._bus, InputCheck().check, self._sweep.suspect)
        self._inlets = Inlets(self._bus, put, wire.publish, now_ms, self._rng)
        operations = Operations(
            self._store, self._bus, self._roll, put, now_ms, lambda: self._rng.uniform(-1, 1)
        )
        self._api = Api(connection, operations, self._health)
        self._pulls = [
            Pull(wire, stream, subjects.COORDINATOR, on_delivery, self._free)
            for stream, on_delivery in (
                (subjects.TASKS_STREAM, self._inlets.on_task),
                (subjects.EVENTS_STREAM, self._inlets.on_event),
            )
        ]

    def _loops(self) -> list[Any]:
        return [
            *(pull.run() for pull in self._pulls),
            self._forever("sweep", self._sweep_once, SWEEP_INTERVAL_S),
            self._forever("streams", self._tend_streams, TEND_INTERVAL_S),
            self._forever("agents", self._tend_agents, TEND_INTERVAL_S),
            self._forever("peers", self._tend_peers, TEND_INTERVAL_S),
            self._forever("partitions", self._tend_partitions, PARTITIONS_INTERVAL_S),
        ]

    async def _leave(self, deciding: asyncio.Task[None]) -> None:
        """Take nothing more, let what is under way end, say goodbye; within STOP_GRACE_S."""
        try:
            async with asyncio.timeout(STOP_GRACE_S):
                while not self._intake.empty:
                    await asyncio.sleep(DRAIN_POLL_S)
                await asyncio.gather(*self._performing)
                await self._api.stop()
                await self._store.fetch("leave", self.id)
        except (CoordinatorError, TimeoutError) as error:
            _LOG.info("left without saying goodbye: %s", error or "out of time")
        finally:
            await _end(deciding, *self._performing)

    # Deciding

    def _free(self) -> int:
        return 0 if self._store_is_down else max(0, QUEUE_MAX - len(self._intake))

    async def _decide(self) -> None:
        """Batches, one at a time; a second one beside it when much waits."""
        flying: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                await self._intake.wait()
                few = len(self._intake) < SECOND_BATCH_MIN
                if flying and (few or len(flying) >= BATCHES_MAX):
                    self._intake.doze()
                    continue
                items = self._intake.take(BATCH_MAX)
                if items:
                    batch = group.create_task(self._batch(items))
                    flying.add(batch)
                    batch.add_done_callback(flying.discard)
                    batch.add_done_callback(lambda _: self._intake.wake())

    async def _batch(self, items: list[Item]) -> None:
        began = time.perf_counter()
        try:
            committed = await self._commit(items)
        finally:
            self._intake.release(item.task for item in items)
        telemetry.commit_ms.record((time.perf_counter() - began) * 1000)
        telemetry.batch_items.record(len(items))
        telemetry.transitions.add(sum(1 for d in committed.decisions if d.change is not None))
        await self._stored.acquire()
        performing = asyncio.create_task(self._perform(committed))
        self._performing.add(performing)
        performing.add_done_callback(self._performing.discard)
        for pull in self._pulls:
            pull.freed()

    async def _commit(self, items: list[Item]) -> Committed:
        """Commit, however long PostgreSQL stays away. A fault of ours is narrowed down to the
        item that causes it, which is refused alone."""
        wait_s = BACKOFF_FIRST_S
        while True:
            try:
                committed = await self._engine.commit(items)
                self._store_is_down = False
                return committed
            except StoreUnavailable as error:
                if not self._store_is_down:
                    _LOG.warning("PostgreSQL is away; nothing is lost, trying again: %s", error)
                self._store_is_down = True
            except Exception:
                _LOG.exception("deciding failed; %d items in this batch", len(items))
                return await self._one_by_one(items)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)

    async def _one_by_one(self, items: list[Item]) -> Committed:
        if len(items) == 1:
            refusal = Refusal("this could not be decided: an internal error, see the log", 500)
            items[0].answer(Answer(None, refusal))
            return Committed()
        decisions = []
        for item in items:
            decisions += (await self._commit([item])).decisions
        return Committed(decisions)

    async def _perform(self, committed: Committed) -> None:
        try:
            await self._engine.perform(committed)
        except Exception:
            _LOG.exception("publishing failed; the sweep will look after it")
            for decision in committed.decisions:
                self._sweep.suspect(decision.id)
        finally:
            self._stored.release()

    # Housekeeping

    async def _sweep_once(self) -> None:
        """A nats-server that was killed has lost what it had acked and not written yet, and its
        streams look as before. So after each reconnect: look after all that waits for an answer.
        """
        if self._reconnected.is_set():
            self._reconnected.clear()
            try:
                await self._sweep.look_over(LOOK_AHEAD_MS)
            except CoordinatorError:
                self._reconnected.set()
                raise
        while await self._sweep.step():
            pass

    async def _declare(self) -> None:
        """Streams, consumers and partitions; then look after what an earlier life left behind."""
        await self._tend_partitions()
        await self._store.fetch("beat", self.id)
        await self._tend_streams()
        count = await self._sweep.look_over(LOOK_AHEAD_MS)
        if count:
            _LOG.info("looking after %d tasks that wait for an answer", count)

    async def _tend_streams(self) -> None:
        """A stream that was created anew lost its messages: publish again what is outstanding."""
        known = {
            row["name"]: row["created"] for row in await self._store.fetch("stream_identities")
        }
        now = await self._bus.identities()
        if known == now and self._inlets.tasks_stream_created == now[subjects.TASKS_STREAM]:
            return
        now = await self._bus.declare(await self._agents())
        self._inlets.tasks_stream_created = now[subjects.TASKS_STREAM]
        lost = [name for name, created in now.items() if known.get(name, created) != created]
        if lost:
            _LOG.warning("%s lost what it held; publishing again", ", ".join(lost))
            await self._sweep.look_over(None)
        for name, created in now.items():
            if known.get(name) != created:
                await self._store.fetch("save_stream_identity", name, created)

    async def _agents(self) -> set[str]:
        named = set(self._roll.instances())
        for row in await self._store.fetch("list_sagas"):
            named |= Definition.from_json(row["body"]).agents()
        return named

    async def _tend_agents(self) -> None:
        for agent in self._roll.instances():
            await self._bus.ensure_agent(agent)

    async def _tend_peers(self) -> None:
        await self._store.fetch("beat", self.id)
        silent = await self._store.fetch("reap_silent", PEER_SILENT_MS)
        if silent:
            _LOG.warning("%d coordinators fell silent; looking after what they left", len(silent))
            await self._sweep.look_over(LOOK_AHEAD_MS)

    async def _tend_partitions(self) -> None:
        await self._store.fetch("ensure_partitions", now_ms())

    async def _health(self, _body: bytes) -> Health:
        row = (await self._store.fetch("now"))[0]
        return Health(
            status="ok",
            postgres=row["version"],
            nats=self._bus.server_version,
            version=version("headway"),
            now=datetime.now(UTC),
        )

    # Keeping on

    async def _forever(
        self, name: str, step: Callable[[], Awaitable[None]], interval_s: float
    ) -> None:
        wait_s, said_at = BACKOFF_FIRST_S, 0.0
        while True:
            try:
                await step()
                wait_s = BACKOFF_FIRST_S
                await asyncio.sleep(interval_s)
                continue
            except CoordinatorError as error:
                if time.monotonic() - said_at > COMPLAINT_INTERVAL_S:
                    said_at = time.monotonic()
                    _LOG.warning("%s: %s; trying again", name, error)
            except Exception:
                _LOG.exception("%s failed; trying again", name)
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)

    async def _until_up(
        self, name: str, step: Callable[[], Awaitable[None]], stop: asyncio.Event
    ) -> None:
        wait_s, said_at = BACKOFF_FIRST_S, 0.0
        while not stop.is_set():
            try:
                await step()
                return
            except SchemaMismatch:
                raise
            except CoordinatorError as error:
                if time.monotonic() - said_at > COMPLAINT_INTERVAL_S:
                    said_at = time.monotonic()
                    _LOG.warning("waiting for %s: %s", name, error)
            await _first(asyncio.sleep(wait_s), stop)
            wait_s = min(2 * wait_s, BACKOFF_MAX_S)


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
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _first(work: Any, stop: asyncio.Event) -> Any:
    """The result of `work`, or None when `stop` is set before."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        return working.result()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    return None


def _settle_memory() -> None:
    """Few cycles are made in the hot path: collect rarely, and never what start-up made."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 20)
