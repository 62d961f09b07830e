"""The demo's own processes under supervision: the downstream service and the four agents."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from headway.agents.client import Client
from headway.coordinator.logfile import LogFile
from headway.coordinator.ports import free_port
from headway.coordinator.process import Launch
from headway.coordinator.supervisor import Supervised
from headway.demo.calls import ADDRESS_VARIABLE, is_listening
from headway.demo.downstream import LOOPBACK
from headway.demo.killer import AGENTS
from headway.demo.together import together

READY_POLL_S = 0.05
PYTHON = (sys.executable, "-P", "-m")
"""-P: a folder named like one of our packages, where the user happens to be, is not imported."""


@dataclass(slots=True)
class DownstreamChild:
    """How the downstream service is started and found ready."""

    data: Path
    log: LogFile
    seed: int
    port: int
    name: str = "downstream"

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    async def end_leftovers(self) -> None:
        """Its directory is new, so nobody can have left one behind."""

    async def prepare(self) -> None:
        """The orders are there already."""

    def launch(self) -> Launch:
        options = ("--data", str(self.data), "--port", str(self.port), "--seed", str(self.seed))
        return Launch((*PYTHON, "headway.demo.downstream", *options), env=os.environ)

    async def wait_ready(self) -> None:
        while True:
            if await is_listening(self.address):
                return
            await asyncio.sleep(READY_POLL_S)


@dataclass(slots=True)
class AgentChild:
    """How one agent is started and found ready: when the coordinator knows that it is there."""

    name: str
    log: LogFile
    env: Mapping[str, str]
    client: Client

    async def end_leftovers(self) -> None:
        """An agent that is left over does no harm: any number may run side by side."""

    async def prepare(self) -> None:
        """An agent keeps nothing on disk."""

    def launch(self) -> Launch:
        command = (*PYTHON, "headway.cli.main", "agent", f"headway.demo.agents:{self.name}")
        return Launch(command, env=self.env)

    async def wait_ready(self) -> None:
        while True:
            present = {view.agent for view in (await self.client.agents()).agents}
            if self.name in present:
                return
            await asyncio.sleep(READY_POLL_S)


@asynccontextmanager
async def crew(
    data: Path, seed: int, nats_url: str, client: Client
) -> AsyncIterator[dict[str, Supervised]]:
    """Run the service and the agents on the orders in `data`; yields the agents by name.

    Whoever dies is started again. ServerError, with the end of its log, when one cannot start.
    """
    logs = data / "logs"
    service = DownstreamChild(data, LogFile(logs / "downstream.log"), seed, free_port())
    env = {**os.environ, "HEADWAY_NATS_URL": nats_url, ADDRESS_VARIABLE: service.address}
    agents = {
        name: Supervised(AgentChild(name, LogFile(logs / f"{name}.log"), env, client))
        for name in AGENTS
    }
    async with AsyncExitStack() as stack:
        downstream = Supervised(service)
        for supervised in (downstream, *agents.values()):
            stack.push_async_callback(supervised.stop)
        await downstream.start()
        await together(agent.start() for agent in agents.values())
        yield agents
