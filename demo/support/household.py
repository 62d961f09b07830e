"""What the support desk needs around it: the model's stand-in and the shop's services, running."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from headway.coordinator.logfile import LogFile
from headway.coordinator.ports import free_port
from headway.coordinator.process import Launch
from headway.coordinator.supervisor import Supervised
from headway.demo.calls import is_listening
from headway.demo.crew import PYTHON, READY_POLL_S
from headway.demo.support.agent import MODEL_URL_VARIABLE, SERVICES_VARIABLE
from headway.demo.support.service import LOOPBACK


@dataclass(slots=True)
class ServiceChild:
    """How a service is started and found ready."""

    name: str  # its module's
    data: Path
    log: LogFile
    port: int

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def end_leftovers(self) -> None:
        """Its directory is new, so nobody can have left one behind."""

    async def prepare(self) -> None:
        """It makes its own file."""

    def launch(self) -> Launch:
        options = ("--port", str(self.port), "--data", str(self.data))
        return Launch((*PYTHON, f"headway.demo.support.{self.name}", *options), env=os.environ)

    async def wait_ready(self) -> None:
        while True:
            if await is_listening(f"{LOOPBACK}:{self.port}"):
                return
            await asyncio.sleep(READY_POLL_S)


@asynccontextmanager
async def household(data: Path) -> AsyncIterator[dict[str, str]]:
    """Run the services on `data`; yields where agents find them, as environment variables.

    A model's address that is in the environment already is left alone, and no stand-in runs.
    """
    found: dict[str, str] = {}
    wanted = {SERVICES_VARIABLE: ("downstream", "")}
    if not os.environ.get(MODEL_URL_VARIABLE):
        wanted[MODEL_URL_VARIABLE] = ("stub", "/v1")
    async with AsyncExitStack() as stack:
        for variable, (module, path) in wanted.items():
            log = LogFile(data / "logs" / f"{module}.log")
            child = ServiceChild(module, data, log, free_port())
            supervised = Supervised(child)
            stack.push_async_callback(supervised.stop)
            await supervised.start()
            found[variable] = child.url + path
        yield found
