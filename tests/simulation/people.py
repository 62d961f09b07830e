"""Those who hand in tasks and step in: what they were promised is what the laws are about."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

import orjson
from headway.agents import Client, HeadwayError
from headway.agents.identity import invocation_id, new_task_id, operation_id
from headway.agents.views import SubmitReceipt
from headway.sagas.codec import decode_task
from simulation.crew import TALLIES
from simulation.downstream import Downstream
from simulation.process import Process
from simulation.shapes import AGENTS, SHAPES
from simulation.store_tables import TaskRow

LARGE_SHARE = 0.04  # of orders: these travel by reference
LARGE_BYTES = 300_000


@dataclass
class Desk:
    """What is wanted, and what was promised. It outlives the process that fills it in."""

    wanted: list[tuple[str, float]]  # saga and when, in the world's time
    accepted: dict[UUID, str] = field(default_factory=dict)  # by a receipt
    published: dict[UUID, str] = field(default_factory=dict)  # by a PubAck
    shown: dict[UUID, str] = field(default_factory=dict)  # final states that people were shown
    limits: list[tuple[str, float, int]] = field(default_factory=list)  # agent, rate, at a time
    lost: dict[UUID, None] = field(default_factory=dict)  # with the store of JetStream
    submitted_all: bool = False

    def lose(self, bodies: list[bytes]) -> None:
        """Submissions that were in JetStream only are gone with its store."""
        self.lost.update(dict.fromkeys(UUID(orjson.loads(body)["id"]) for body in bodies))

    @property
    def owed(self) -> list[UUID]:
        """The tasks that must not be lost."""
        kept = [task for task in self.published if task not in self.lost]
        return [*self.accepted, *kept]


def desk_of(rng: Random, tasks: int, seconds: float) -> Desk:
    names = sorted(SHAPES)
    picked = rng.sample(names, rng.randint(1, len(names)))
    burst = rng.random() < 0.15
    at_once = seconds * rng.random()
    wanted = [
        (rng.choice(picked), at_once if burst else seconds * rng.random() ** 2)
        for _ in range(tasks * (4 if burst else 1))
    ]
    desk = Desk(sorted(wanted, key=lambda each: each[1]))
    if rng.random() < 0.25:
        desk.limits = [(rng.choice(AGENTS), rng.uniform(2.0, 20.0), rng.randint(1, 4))]
    return desk


async def hand_in(process: Process, desk: Desk) -> None:
    """The main of the client: registers all sagas, then hands in one task after the other."""
    world = process.world
    connection = await process.connect(name="client", wait=True)
    async with Client(connection, timeout=30.0) as client:
        for saga in SHAPES.values():
            await _patiently(client.register, saga)
        await _patiently(client.documents.collection, TALLIES)
        for agent, rate, together in desk.limits:
            await _patiently(client.set_limit, "agent", agent, rate=rate, concurrency=together)
        while desk.wanted:
            saga, at = desk.wanted[0]
            together = sum(1 for each in desk.wanted if each == (saga, at))
            if together > 1:
                await asyncio.sleep(max(0.0, at - world.timeline.now))
                await _hand_in_many(process, client, desk, saga, together)
                continue
            await asyncio.sleep(max(0.0, at - world.timeline.now))
            task = new_task_id()
            order: dict[str, Any] = {"n": process.rng.randrange(4)}
            if process.rng.random() < LARGE_SHARE:
                order["large"] = "x" * LARGE_BYTES
            if process.rng.random() < 0.25:
                published = await _patiently(client.publish, saga, order, task=task)
                desk.published[published] = saga
            else:
                receipt = await _patiently(client.submit, saga, order, task=task)
                desk.accepted[receipt.task] = saga
            world.told("handed in", saga, task)
            desk.wanted.pop(0)
        desk.submitted_all = True
        world.told("all handed in")
        await asyncio.gather(*(_await(client, desk, task) for task in desk.accepted))


async def _hand_in_many(
    process: Process, client: Client, desk: Desk, saga: str, count: int
) -> None:
    """Many with one call. Those whose outcome nobody heard are handed in by themselves."""
    receipts = await _patiently(client.submit_many, saga, [{"n": n} for n in range(count)])
    for receipt in receipts:
        desk.wanted.pop(0)
        if isinstance(receipt, SubmitReceipt):
            desk.accepted[receipt.task] = saga
            process.world.told("handed in", saga, receipt.task)
        else:
            desk.wanted.append((saga, process.world.timeline.now + len(desk.wanted)))


async def _await(client: Client, desk: Desk, task: UUID) -> None:
    view = await _patiently(client.result, task, timeout=40.0)
    if view.status in ("succeeded", "compensated"):
        desk.shown[task] = view.status


async def step_in(process: Process, downstream: Downstream) -> None:
    """The main of whoever looks after tasks: approves, signals, cancels, tries again."""
    world, rng = process.world, process.rng
    connection = await process.connect(name="people", wait=True)
    async with Client(connection, timeout=5.0) as client:
        while True:
            await asyncio.sleep(0.5 + rng.random())
            for task, row in list(world.tables.tasks.items()):
                if row.status in ("succeeded", "compensated"):
                    continue
                try:
                    await _look_after(process, client, downstream, row)
                except HeadwayError as error:
                    world.told("people", type(error).__name__, task)


async def _look_after(
    process: Process, client: Client, downstream: Downstream, row: TaskRow
) -> None:
    chance, rng, task = process.world.chance, process.rng, row.id
    if chance.hit("people", f"cancel.{task}"):
        await client.cancel(task, "no longer wanted", by="somebody")
    if row.saga == "waits":
        decide = client.reject if rng.random() < 0.1 else client.approve
        if rng.random() < 0.5:
            await decide(task, "ok", by="somebody")
        await client.signal(task, "news", id=f"{task}", payload={"n": 2})
    if row.status not in ("parked", "failed_to_compensate") or rng.random() > 0.3:
        return
    process.world.told("people look at", task)
    if row.status == "parked":
        await _settle_calls(process, client, downstream, task)
    match rng.randrange(3):
        case 0:
            await client.resume(task, by="somebody")
        case 1:
            await client.retry(task, by="somebody")
        case 2:
            await _settle(process, client, downstream, row)


async def _settle(process: Process, client: Client, downstream: Downstream, row: TaskRow) -> None:
    """See what is downstream, make sure that it stays so, and say that."""
    task = decode_task(row.status, row.version, row.state)
    for name, state in task.steps.items():
        operation = operation_id(row.id, name, "action")
        if state.status == "failed_to_compensate":
            await downstream.undo(process, operation, row.id, name)
            await client.settle(row.id, name, "happened", by="somebody")
        elif state.status == "unknown" and row.status == "parked":
            found = downstream.rows.get(operation)
            if found is not None and found.state == "done":
                await client.settle(row.id, name, "happened", {"step": name}, by="somebody")
            elif not await downstream.undo(process, operation, row.id, name):
                await client.settle(row.id, name, "did_not_happen", by="somebody")


async def _settle_calls(
    process: Process, client: Client, downstream: Downstream, task: UUID
) -> None:
    """Say of each call of which nobody knows whether it took effect."""
    for (of, step, phase), head in list(process.world.tables.journals.items()):
        if of != task:
            continue
        for key in orjson.loads(head.unsettled):
            invocation = invocation_id(operation_id(task, step, phase), key)
            if invocation in downstream.tools:
                result = downstream.results[invocation]
                await client.settle_call(task, step, key, "happened", result, by="somebody")
            else:
                await client.settle_call(task, step, key, "did_not_happen", by="somebody")


async def _patiently(ask, *arguments, **options):  # type: ignore[no-untyped-def]
    while True:
        try:
            return await ask(*arguments, **options)
        except HeadwayError:
            await asyncio.sleep(0.5)
