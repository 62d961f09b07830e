"""The order desk: submits orders at an even pace, sees each one through, and takes returns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import NotFound, Unavailable
from headway.agents.identity import new_task_id
from headway.agents.views import TaskView
from headway.demo.audit import Claim
from headway.demo.narration import Narration
from headway.demo.orders import Order
from headway.demo.sagas import FULFIL_ORDER, REFUND, fulfil_order, refund
from headway.demo.together import together

SETTLE_WITHIN_S = 120.0
QUESTIONS_AT_ONCE = 16


Send = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Filed:
    """A task that the desk has submitted. `latency_s` is None while it is not settled."""

    task: UUID
    order: Order
    latency_s: float | None


class Desk:
    """Everything that the shop asks of Headway goes through here."""

    def __init__(self, client: Client, narration: Narration) -> None:
        self._client = client
        self._narration = narration
        self.filed: list[Filed] = []

    async def open(self) -> None:
        """Make the sagas known."""
        for saga in (fulfil_order(), refund()):
            await self._client.register(saga.define())

    async def serve(self, orders: Sequence[Order], span_s: float) -> None:
        """Submit `orders` over `span_s` seconds; return when all of them are settled."""
        await together(
            self._see_through(order, number, number * span_s / len(orders))
            for number, order in enumerate(orders)
        )

    def latencies_s(self) -> list[float]:
        """From each submission until the task was settled, in seconds."""
        return [filed.latency_s for filed in self.filed if filed.latency_s is not None]

    async def claims(self) -> list[Claim]:
        """What the coordinator says of every task that was submitted; lost ones are absent."""
        at_once = asyncio.Semaphore(QUESTIONS_AT_ONCE)

        async def ask(filed: Filed) -> Claim | None:
            async with at_once:
                return await self._claim(filed)

        claims = await asyncio.gather(*map(ask, self.filed))
        return [claim for claim in claims if claim is not None]

    async def _claim(self, filed: Filed) -> Claim | None:
        try:
            view = await self._client.status(filed.task)
        except NotFound:
            return None
        return Claim(filed.order, view, tuple(await self._client.history(filed.task)))

    async def _see_through(self, order: Order, number: int, wait_s: float) -> None:
        """One order, and its return if there is one. Every other order is a plain message."""
        await asyncio.sleep(wait_s)
        send = self._client.publish if number % 2 else self._client.submit
        settled = await self._run(FULFIL_ORDER, order, send)
        if order.returned and settled is not None and settled.status == "succeeded":
            await self._run(REFUND, order, self._client.submit)
        self._narration.one_done()

    async def _run(self, saga: str, order: Order, send: Send) -> TaskView | None:
        """Submit a task and wait until it is settled; None when it is not in time."""
        task, started = new_task_id(), time.monotonic()
        self._narration.task_filed()
        try:
            await send(saga, order, task=task)
            view = await self._client.result(task, timeout=SETTLE_WITHIN_S)
        except (Unavailable, NotFound):
            self.filed.append(Filed(task, order, None))
            return None
        self.filed.append(Filed(task, order, time.monotonic() - started))
        self._narration.task_settled(view.status)
        return view
