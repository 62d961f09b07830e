"""The faults on a whole system: that of a `headway up` on this machine, by its data directory."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from headway.coordinator.connections import running_connections
from headway.coordinator.leftovers import server_identity
from headway.drills.faults import Fault
from headway.drills.setting import NotRecovered, Setting

COORDINATOR_ARGUMENT = "coordinator"
TASKS = 20
STAGING_S = 1.0  # from a server's return to the work going on, besides the restart
RESTART_S = 2.0  # for `headway up` to start one again
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
    strike()
    struck_at = time.monotonic()
    await setting.settled(await setting.submit(), "succeeded")
    took_s = time.monotonic() - struck_at
    for task in tasks:
        await setting.settled(task, "succeeded")
    return took_s


def _kill(find: Callable[[], psutil.Process]) -> None:
    find().kill()


def _delete_store(staging: Staging) -> None:
    """With `headway up` held meanwhile, so that it starts the server on what is left."""
    up, nats = staging.up(), staging.server("nats-server", "nats")
    up.send_signal(signal.SIGSTOP)
    try:
        nats.kill()
        nats.wait()
        shutil.rmtree(staging.data / "nats" / STORE)
    finally:
        up.send_signal(signal.SIGCONT)


def staging_faults(data: Path) -> tuple[Fault, ...]:
    """What is done to the system of this data directory."""
    staging = Staging(data)

    def struck(strike: Callable[[], None]) -> Callable[[Setting], Awaitable[float]]:
        return lambda setting: _under_load(setting, strike)

    bound_s = RESTART_S + STAGING_S
    return (
        Fault(
            "coordinator-killed",
            "kill -9 a coordinator under load",
            "its peers or its successor go on",
            "coordinators are restarted, and die",
            bound_s,
            struck(partial(_kill, staging.coordinator)),
        ),
        Fault(
            "nats-killed",
            "kill -9 nats-server under load",
            "everyone reconnects, and what was lost on the way is sent again",
            "an unclean end loses what was not written yet",
            bound_s,
            struck(partial(_kill, partial(staging.server, "nats-server", "nats"))),
        ),
        Fault(
            "postgres-killed",
            "kill -9 PostgreSQL under load",
            "nothing is acked meanwhile, and work goes on with its return",
            "the truth is away for a while",
            bound_s,
            struck(partial(_kill, partial(staging.server, "postgres", "postgres"))),
        ),
        Fault(
            "store-deleted",
            "delete JetStream's store under load",
            "all that is outstanding is published again from PostgreSQL",
            "JetStream can be rebuilt, and has to be one day",
            bound_s,
            struck(partial(_delete_store, staging)),
        ),
    )
