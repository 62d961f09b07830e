"""The faults on a whole system: that of a `headway up` on this machine, by its data directory."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from headway.coordinator.connections import running_connections
from headway.coordinator.leftovers import server_identity
from headway.drills.faults import Fault
from headway.drills.setting import POLL_S, NotRecovered, Setting

COORDINATOR_ARGUMENT = "coordinator"
TASKS = 20

# Seconds that are documented, with the restart by `headway up`.
NATS_S = 2.0
SERVER_S = 5.0
STORE = "jetstream"


@dataclass(frozen=True, slots=True)
class Staging:
    """The processes of one `headway up`, found anew each time: they are restarted."""

    data: Path

    def up(self) -> psutil.Process:
        running = running_connections(self.data)
        if running is None:
            raise NotRecovered(f"no `headway up` runs in {self.data}")
        return psutil.Process(running.pid)

    def server(self, program: str, directory: str) -> psutil.Process:
        """The main process of a server."""
        identity = server_identity(self.data / directory)
        return self._child(
            program, lambda child: child.name() == program and identity in _line(child)
        )

    def coordinator(self) -> psutil.Process:
        return self._child(
            "coordinator", lambda child: child.cmdline()[-1:] == [COORDINATOR_ARGUMENT]
        )

    def _child(self, what: str, fits: Callable[[psutil.Process], bool]) -> psutil.Process:
        for child in self.up().children():
            try:
                if fits(child):
                    return child
            except psutil.Error:
                continue  # ended meanwhile
        raise NotRecovered(f"`headway up` in {self.data} has no {what}")


def _line(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


async def _under_load(setting: Setting, strike: Callable[[], None]) -> float:
    """Strike while tasks are open; seconds until one that is submitted then has succeeded, by
    which all others have or soon will."""
    tasks = [await setting.submit(reserve="linger=0.2") for _ in range(TASKS)]
    await setting.called(tasks[0], "reserve")
    try:
        strike()
    except (psutil.Error, OSError) as error:
        raise NotRecovered(f"the fault could not be caused: {error}") from error
    struck_at = time.monotonic()
    await setting.settled(await setting.submit(), "succeeded")
    took_s = time.monotonic() - struck_at
    for task in tasks:
        await setting.settled(task, "succeeded")
    return took_s


def _kill(find: Callable[[], psutil.Process]) -> None:
    process = find()
    process.kill()
    _until_dead(process)


def _until_dead(process: psutil.Process) -> None:
    """Its parent, which has yet to take note, may be held."""
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(POLL_S)


def _delete_store(staging: Staging) -> None:
    """With `headway up` held meanwhile, so that it starts the server on what is left."""
    up, nats = staging.up(), staging.server("nats-server", "nats")
    up.send_signal(signal.SIGSTOP)
    try:
        nats.kill()
        _until_dead(nats)
        shutil.rmtree(staging.data / "nats" / STORE)
    finally:
        up.send_signal(signal.SIGCONT)


def staging_faults(data: Path) -> tuple[Fault, ...]:
    """What is done to the system of this data directory."""
    staging = Staging(data)

    def struck(strike: Callable[[], None]) -> Callable[[Setting], Awaitable[float]]:
        return lambda setting: _under_load(setting, strike)

    return (
        Fault(
            "coordinator-killed",
            "kill -9 a coordinator under load",
            "its peers or its successor go on",
            "coordinators are restarted, and die",
            SERVER_S,
            struck(partial(_kill, staging.coordinator)),
        ),
        Fault(
            "nats-killed",
            "kill -9 nats-server under load",
            "everyone reconnects, and what was lost on the way is sent again",
            "an unclean end loses what was not written yet",
            NATS_S,
            struck(partial(_kill, partial(staging.server, "nats-server", "nats"))),
        ),
        Fault(
            "postgres-killed",
            "kill -9 PostgreSQL under load",
            "nothing is acked meanwhile, and work goes on with its return",
            "the truth is away for a while",
            SERVER_S,
            struck(partial(_kill, partial(staging.server, "postgres", "postgres"))),
        ),
        Fault(
            "store-deleted",
            "delete JetStream's store under load",
            "all that is outstanding is published again from PostgreSQL",
            "JetStream can be rebuilt, and has to be one day",
            SERVER_S,
            struck(partial(_delete_store, staging)),
        ),
    )
