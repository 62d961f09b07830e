"""Running agents as a process: find them by name, connect, work until told to stop."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from types import ModuleType

from headway.agents import loading, tracing
from headway.agents.agent import Agent
from headway.agents.codec import Keyring
from headway.agents.connection import Connection, connect
from headway.agents.credentials import Credentials
from headway.agents.errors import DeclarationError
from headway.agents.isolation import Isolation
from headway.agents.subjects import COMMANDS_STREAM
from headway.agents.worker import CONCURRENCY, GRACE_S, Worker

try:
    import uvloop
except ImportError:  # an extra speed, not a need
    uvloop = None  # type: ignore[assignment]

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

INSTALL_SDK = "pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http"
REFUSED_S = 3.0  # a key that was granted just now is let in sooner
NO_TARGET = "not MODULE:NAME, for example shop.payments:payments"
YOUNG_OBJECTS = 50_000  # between two collections: messages make many short-lived objects

_log = logging.getLogger("headway.agents.runner")


def load(target: str) -> Agent:
    """The agent that `module:name` stands for, as seen from the current directory.

    Raises DeclarationError that says which part is wrong; of an error inside the module itself,
    where.
    """
    module_name, name = loading.split(target, NO_TARGET, _agents)
    module = loading.module_of(module_name, target)
    found = getattr(module, name, None)
    if isinstance(found, Agent):
        return found
    agents = _agents(module)
    there = f"its agents are: {', '.join(agents)}" if agents else "it has no agents"
    what = "nothing" if found is None else f"a {type(found).__name__}, not an Agent,"
    raise DeclarationError(loading.lacks(module, name, what, there))


def _agents(module: ModuleType) -> list[str]:
    """The names of its agents."""
    return sorted(name for name, value in vars(module).items() if isinstance(value, Agent))


async def serve(
    agents: Sequence[Agent],
    url: str,
    *,
    credentials: Sequence[Credentials] = (),
    concurrency: int = CONCURRENCY,
    grace_s: float = GRACE_S,
    keyring: Keyring | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Work for all `agents` until SIGTERM, SIGINT or `stop`: each on a connection of its own with
    its `credentials`, or all on one if there are none.

    Waits for a server that is not there yet. A second signal ends the process at once.
    DeclarationError: some agents have credentials, but not all. NotLetIn: a server that is there
    refuses one of them at the start, and then none works; later it is waited for.
    """
    crews = _crews(agents, credentials)
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        _log.info("%s: stopping", number.name)
        for each in _SIGNALS:
            loop.remove_signal_handler(each)
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    connecting = asyncio.ensure_future(_connect(crews, url))
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({connecting, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not connecting.done():
        connecting.cancel()
        return
    opened, connections = connecting.result()
    async with opened, asyncio.TaskGroup() as group:
        for (crew, _), connection in zip(crews, connections, strict=True):
            group.create_task(_serve(crew, connection, concurrency, grace_s, keyring, stop))


def _crews(
    agents: Sequence[Agent], credentials: Sequence[Credentials]
) -> list[tuple[Sequence[Agent], Credentials | None]]:
    """Agents that share a connection, and what that is opened with."""
    if not credentials:
        return [(agents, None)]
    known = {each.agent: each for each in credentials}
    for agent in agents:
        if agent.name not in known:
            raise DeclarationError(
                f"there are no credentials for agent {agent.name!r}, only for "
                f"{', '.join(sorted(known))}: `headway agents grant {agent.name}` makes them"
            )
    return [((agent,), known[agent.name]) for agent in agents]


async def _connect(
    crews: Sequence[tuple[Sequence[Agent], Credentials | None]], url: str
) -> tuple[AsyncExitStack, list[Connection]]:
    """A connection for each crew, or none at all, and what closes them."""
    async with AsyncExitStack() as opened:
        connections = []
        for crew, credentials in crews:
            name = "agents " + ", ".join(agent.name for agent in crew)
            connection = await connect(
                url, name=name, credentials=credentials, wait=True, refused_s=REFUSED_S
            )
            connections.append(await opened.enter_async_context(connection))
        return opened.pop_all(), connections


async def _serve(
    agents: Sequence[Agent],
    connection: Connection,
    concurrency: int,
    grace_s: float,
    keyring: Keyring | None,
    stop: asyncio.Event,
) -> None:
    """Work for `agents` on one connection until `stop`."""
    async with asyncio.TaskGroup() as group:
        isolation = Isolation(connection, f"CONSUMER.INFO.{COMMANDS_STREAM}.{agents[0].name}")
        watching = asyncio.create_task(isolation.run())
        stopping = group.create_task(stop.wait())
        stopping.add_done_callback(lambda _: watching.cancel())
        for agent in agents:
            worker = Worker(
                connection, agent, concurrency=concurrency, grace_s=grace_s, keyring=keyring
            )
            group.create_task(worker.run(stop))


def run(
    agents: Sequence[Agent],
    url: str,
    *,
    credentials: Sequence[Credentials] = (),
    concurrency: int = CONCURRENCY,
    grace_s: float = GRACE_S,
    keyring: Keyring | None = None,
) -> None:
    """`serve` as the main thing of this process, tuned for it (uvloop if it is installed)."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)
    new_loop = None if uvloop is None else uvloop.new_event_loop
    with _tracing(), asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(
            serve(
                agents,
                url,
                credentials=credentials,
                concurrency=concurrency,
                grace_s=grace_s,
                keyring=keyring,
            )
        )


@contextmanager
def _tracing() -> Iterator[None]:
    """What handlers trace is sent where the standard variables say, unless somebody else sees to
    that."""
    end = None
    if tracing.is_wanted("traces", os.environ) and not tracing.is_configured():
        try:
            end = importlib.import_module("headway.agents.tracing_sdk").install(os.environ)
        except ImportError as error:
            _log.warning("what handlers trace is not sent: %s: %s", error, INSTALL_SDK)
    try:
        yield
    finally:
        if end is not None:
            end()
