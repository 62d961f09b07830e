"""The person who approves large refunds, when nobody is there to do it."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import Conflict, NotFound, Unavailable
from headway.agents.views import WaitingView

NAME = "a scripted person"
LOOK_EVERY_S = 0.25
MOMENT_S = 0.5  # nobody answers at once


class Person:
    """Approves whatever call waits for that; `approvals` counts them by task."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.approvals: Counter[UUID] = Counter()

    async def work(self) -> None:
        """Approve without end. Coordinators that are away are waited for."""
        while True:
            try:
                page = await self._client.parked()
                gates = [each for each in page.waiting if each.kind == "gate"]
                if gates:
                    await asyncio.sleep(MOMENT_S)
                for gate in gates:
                    await self._approve(gate)
            except Unavailable:
                continue
            await asyncio.sleep(LOOK_EVERY_S)

    async def _approve(self, gate: WaitingView) -> None:
        try:
            await self._client.approve(gate.task, invocation=gate.invocation, by=NAME)
        except (Conflict, NotFound):
            return  # it is not wanted any more
        self.approvals[gate.task] += 1
