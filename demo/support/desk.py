"""The support desk at work: its agents in lanes, and each task harmed as ordered.

Each lane has agents of its own, in one process, so that an order to kill meets the task that it is
meant for. All of it runs against servers that are there already.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from headway.agents import gates
from headway.agents.client import Client
from headway.agents.errors import Unavailable
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.agents.pull import ACK_WAIT_S
from headway.agents.views import TaskView, WaitingView
from headway.cli.addresses import NATS_URL
from headway.coordinator.process import Launch
from headway.demo.crew import PYTHON
from headway.demo.support.audit import Run
from headway.demo.support.deaths import SPARE, Order, Orders, Place
from headway.demo.support.downstream import KEYS_FILE
from headway.demo.support.household import household
from headway.demo.support.person import approving
from headway.demo.support.sagas import KINDS, SUPPORT, Kind, agent_name, saga, step_name
from headway.demo.support.staff import Member
from headway.demo.support.tickets import ticket
from headway.demo.together import together

SETTLE_WITHIN_S = 120.0
FROZEN_S = 20.0  # a zombie's sleep: another one has long taken over by then
REFUSED_WITHIN_S = 20.0  # after it woke up
POLL_S = 0.05
APPROVED = "gate-approved"  # in the audit log
TOKENS_MAX = 100_000  # of the model, for one task

Victim = Literal["agent", "coordinator", "agent and coordinator", "zombie"]


@dataclass(frozen=True, slots=True)
class Harm:
    """What is done to one task, and where in its journal."""

    kind: Kind
    place: Place
    victim: Victim

    def order(self, coordinator: Path) -> Order:
        """The order to the agent's process; `coordinator` is the file with that one's pid."""
        victims = (str(coordinator),) if "coordinator" in self.victim else ()
        itself: Literal["killed", "frozen", "spared"] = "killed"
        if self.victim == "coordinator":
            itself = "spared"
        elif self.victim == "zombie":
            itself = "frozen"
        return Order(self.place.entry, self.place.when, victims, itself)


class Desk:
    """Runs tasks in its lanes, and waits at most `within_s` seconds for each.

    `coordinator` is the file with the coordinator's pid.
    """

    def __init__(
        self,
        client: Client,
        orders: Orders,
        launch: Callable[[int], Launch],
        data: Path,
        coordinator: Path,
        within_s: float | None,
    ) -> None:
        self._client = client
        self._orders = orders
        self._launch = launch
        self.data = data
        self._coordinator = coordinator
        self._within_s = within_s
        self._numbers = itertools.count(1)
        self._lanes: list[Member] = []

    async def open(self, lanes: int) -> None:
        """Make the sagas known and start the agents."""
        for lane in range(lanes):
            for kind in KINDS:
                await self._client.register(saga(kind, lane).define())
            member = Member(f"lane-{lane}", self._launch(lane), self.data)
            self._lanes.append(member)
            await member.start()

    async def close(self) -> None:
        for member in self._lanes:
            await member.stop()

    async def waits_for_a_person(self, until: asyncio.Task[Any]) -> WaitingView | None:
        """What waits for a person, once something does, and its agent is killed; None if nothing
        did before `until` was done."""
        while not until.done():
            for waiting in (await self._client.parked()).waiting:
                os.kill(self._lanes[0].pid, signal.SIGKILL)
                return waiting
            await asyncio.sleep(POLL_S)
        return None

    async def unharmed(self, kind: Kind) -> tuple[Run, list[str]]:
        """A task that nobody harms, and the lines about its journal."""
        run = await self._run(0, kind, SPARE)
        return run, self._orders.notes(run.task)

    async def harmed(self, harms: Sequence[Harm], tell: Callable[[Run], None]) -> list[Run]:
        """A task for each harm, in their order, and as many at once as there are lanes; `tell`
        hears of each when it is done."""
        runs: dict[int, Run] = {}
        todo = iter(enumerate(harms))

        async def work(lane: int) -> None:
            for number, harm in todo:  # shared: each lane takes the next
                order = harm.order(self._coordinator)
                runs[number] = await self._run(lane, harm.kind, order, harm)
                tell(runs[number])

        await together(work(lane) for lane in range(len(self._lanes)))
        return [runs[number] for number in range(len(harms))]

    async def _run(self, lane: int, kind: Kind, order: Order, harm: Harm | None = None) -> Run:
        number, task = f"{next(self._numbers):04}", new_task_id()
        self._orders.give(task, order)
        started = time.monotonic()
        waking = asyncio.create_task(self._wake(lane, task, order))
        wish = ticket(int(number)) if kind == SUPPORT else f"project-{number}"
        manifest = Manifest(max_tokens=TOKENS_MAX)
        try:
            await self._client.submit(agent_name(kind, lane), wish, task=task, manifest=manifest)
            view = await self._settled(task)
            took_s = time.monotonic() - started
            met = await waking and self._orders.carried_out(task)
        finally:
            waking.cancel()
        return Run(
            kind=kind,
            number=number,
            victim=harm.victim if harm else "",
            entry=harm.place.entry if harm else "",
            when=harm.place.when if harm else "",
            met=met,
            view=view,
            entries=tuple([each async for each in self._client.journal(task, step_name(kind))]),
            approvals=[each.kind async for each in self._client.audit(task)].count(APPROVED),
            took_s=took_s,
        )

    async def _settled(self, task: UUID) -> TaskView:
        """The task when it is settled, or as it is when it should long have been."""
        try:
            return await self._client.result(task, timeout=self._within_s)
        except Unavailable:
            return await self._client.status(task)

    async def _wake(self, lane: int, task: UUID, order: Order) -> bool:
        """Thaw a process that is frozen as ordered; whether its journal then refused it.

        Meanwhile another one works in the lane. True at once if the order is another one.
        """
        if order.itself != "frozen":
            return True
        if not await self._comes(lambda: self._orders.carried_out(task), SETTLE_WITHIN_S):
            return False
        successor = Member(f"lane-{lane}-successor", self._launch(lane), self.data)
        await successor.start()
        await asyncio.sleep(FROZEN_S)
        self._lanes[lane].thaw()
        refused = await self._comes(
            lambda: any(line.startswith("refused") for line in self._orders.notes(task)),
            REFUSED_WITHIN_S,
        )
        await successor.stop()
        return refused

    async def _comes(self, condition: Callable[[], bool], within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True


@asynccontextmanager
async def desk(
    data: Path,
    nats_url: str,
    client: Client,
    *,
    lanes: int,
    coordinator: Path,
    interactive: bool = False,
    ack_wait_s: float = ACK_WAIT_S,
) -> AsyncIterator[Desk]:
    """Services, agents and a person, at work until the block ends; their files are in `data`.

    With `interactive` nobody approves anything here.
    """
    folder = data / "orders"
    folder.mkdir()
    keys = await gates.public_keys(client.connection)
    (data / KEYS_FILE).write_text(keys.model_dump_json())
    async with AsyncExitStack() as stack:
        found = await stack.enter_async_context(household(data))
        launch = _launch(folder, ack_wait_s, {**os.environ, **found, NATS_URL: nats_url})
        within_s = None if interactive else SETTLE_WITHIN_S
        opened = Desk(client, Orders(folder), launch, data, coordinator, within_s)
        if not interactive:
            await stack.enter_async_context(approving(client))
        stack.push_async_callback(opened.close)
        await opened.open(lanes)
        yield opened


def _launch(folder: Path, ack_wait_s: float, env: Mapping[str, str]) -> Callable[[int], Launch]:
    """How the agents of a lane are started."""
    options = ("--orders", str(folder), "--ack-wait", str(ack_wait_s))
    command = (*PYTHON, "headway.demo.support.clerk")
    return lambda lane: Launch((*command, str(lane), *options), env=env)
