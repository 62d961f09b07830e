"""The person who approves large refunds, when nobody is there to do it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from headway.agents.client import Client
from headway.agents.errors import Conflict, NotFound, Unavailable
from headway.agents.views import WaitingView

NAME = "a scripted person"
LOOK_EVERY_S = 0.25
MOMENT_S = 0.5  # nobody answers at once


@asynccontextmanager
async def approving(client: Client) -> AsyncIterator[None]:
    """Approve whatever call waits for that, a moment later, while the block lasts."""
    task = asyncio.create_task(_approve_all(client))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()


async def _approve_all(client: Client) -> None:
    """Without end; coordinators that are away are waited for."""
    while True:
        try:
            page = await client.parked()
            gates = [each for each in page.waiting if each.kind == "gate"]
            if gates:
                await asyncio.sleep(MOMENT_S)
            for gate in gates:
                await _approve(client, gate)
        except Unavailable:
            continue
        await asyncio.sleep(LOOK_EVERY_S)


async def _approve(client: Client, gate: WaitingView) -> None:
    with suppress(Conflict, NotFound):  # it is not wanted any more
        await client.approve(gate.task, invocation=gate.invocation, by=NAME)
