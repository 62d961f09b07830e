"""The travel demo's own processes under supervision: the bookings, and three agents, each with a
key of its own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from headway.agents import credentials
from headway.agents.client import Client
from headway.agents.connection import connect
from headway.agents.credentials import Credentials
from headway.agents.nkeys import UserKey, new_seed
from headway.coordinator.embedded import Embedded
from headway.coordinator.grants import grants_in
from headway.coordinator.logfile import LogFile
from headway.coordinator.ports import free_port
from headway.coordinator.process import Launch
from headway.coordinator.supervisor import Supervised
from headway.demo.calls import is_listening
from headway.demo.crew import PYTHON, READY_POLL_S
from headway.demo.languages import nodejs
from headway.demo.languages.bookings import LOOPBACK
from headway.demo.languages.hotels import BOOKINGS_VARIABLE
from headway.demo.together import together

TYPESCRIPT = Path(__file__).parent / "typescript"
LET_IN_WITHIN_S = 10.0
LANGUAGES = {
    "flights": "TypeScript, on nats.js",
    "hotels": "Python, on bare nats-py",
    "letters": "Python, with the SDK",
}


def commands(elsewhere: Path) -> dict[str, tuple[str, ...]]:
    """What starts each agent. MissingExtra if Node.js is not there."""
    node, folder = nodejs.made(TYPESCRIPT, "the agent in TypeScript", elsewhere)
    return {
        "flights": (node, str(folder / "dist" / "main.js")),
        "hotels": (*PYTHON, "headway.demo.languages.hotels"),
        "letters": (
            *(*PYTHON, "headway.cli.main"),
            *("agent", "headway.demo.languages.letters:letters"),
        ),
    }


@dataclass(slots=True)
class Member:
    """How one of them is started; it is ready once `is_ready` says so."""

    name: str
    log: LogFile
    command: tuple[str, ...]
    env: Mapping[str, str]
    client: Client
    port: int = 0  # where it listens; 0: it is an agent

    async def end_leftovers(self) -> None:
        """An agent that is left over does no harm, and the bookings' directory is new."""

    async def prepare(self) -> None:
        """There is nothing to prepare."""

    def launch(self) -> Launch:
        return Launch(self.command, env=self.env)

    async def wait_ready(self) -> None:
        while True:
            if await self._is_ready():
                return
            await asyncio.sleep(READY_POLL_S)

    async def _is_ready(self) -> bool:
        if self.port:
            return await is_listening(f"{LOOPBACK}:{self.port}")
        views = (await self.client.agents()).agents
        return any(view.agent == self.name and view.instances for view in views)


@asynccontextmanager
async def crew(
    data: Path, embedded: Embedded, client: Client, starts: Mapping[str, tuple[str, ...]]
) -> AsyncIterator[dict[str, Supervised]]:
    """Run the bookings and the agents that `starts` names; yields the agents by name."""
    port = free_port()
    logs = data / "logs"
    options = ("--port", str(port), "--data", str(data))
    service = (*PYTHON, "headway.demo.languages.bookings", *options)
    bookings = Member("bookings", LogFile(logs / "bookings.log"), service, os.environ, client, port)
    server = f"nats://{LOOPBACK}:{urlsplit(embedded.nats_url).port}"
    usual = {
        **os.environ,
        "HEADWAY_NATS_URL": server,
        BOOKINGS_VARIABLE: f"http://{LOOPBACK}:{port}",
    }
    files = await _granted(data, embedded, server, list(starts))
    agents = {
        name: Supervised(
            Member(
                name,
                LogFile(logs / f"{name}.log"),
                command,
                {**usual, "HEADWAY_CREDS": str(files[name])},
                client,
            )
        )
        for name, command in starts.items()
    }
    async with AsyncExitStack() as stack:
        service_process = Supervised(bookings)
        for supervised in (service_process, *agents.values()):
            stack.push_async_callback(supervised.stop)
        await together(each.start() for each in (service_process, *agents.values()))
        yield agents


async def _granted(
    data: Path, embedded: Embedded, server: str, agents: list[str]
) -> dict[str, Path]:
    """A file of credentials for each agent, which the server lets in."""
    files: dict[str, Path] = {}
    keys: dict[str, UserKey] = {}
    async with grants_in(embedded.postgres_url) as grants:
        for agent in agents:
            seed = new_seed()
            keys[agent], files[agent] = UserKey.of(seed), data / f"{agent}.creds"
            await grants.grant(agent, keys[agent].public, "demo")
            credentials.write(files[agent], agent, seed)
    for agent, key in keys.items():
        let_in = await connect(
            server,
            name="headway-demo",
            credentials=Credentials(agent, key),
            wait=True,
            refused_s=LET_IN_WITHIN_S,
        )
        await let_in.close()
    return files
