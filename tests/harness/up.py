"""`headway up` as a process of its own, with a stand-in for the coordinator.

Run as a script it is that process; imported, it is how tests start and watch one.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from headway.agents.errors import HeadwayError
from headway.coordinator.connections import Connections, running_connections
from headway.coordinator.embedded import Embedded, serve

STANDIN = (sys.executable, "-P", str(Path(__file__).with_name("standin_coordinator.py")))
READY = "ready"


class Up:
    """A running `up`; its narration is in `narration`."""

    def __init__(self, data: Path, *, coordinators: int = 1, wait: bool = True) -> None:
        self.data = data
        self._narration = data.with_name(f"{data.name}.narration")
        with self._narration.open("wb") as narration:
            self.process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(data), str(coordinators)],
                stdout=subprocess.PIPE,
                stderr=narration,
                text=True,
            )
        if wait:
            assert self.process.stdout is not None
            assert self.process.stdout.readline().strip() == READY, self.narration

    @property
    def narration(self) -> str:
        return self._narration.read_text()

    @property
    def connections(self) -> Connections:
        connections = running_connections(self.data)
        assert connections is not None
        return connections

    def tree(self) -> list[psutil.Process]:
        """Every process below this one."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, program: str) -> psutil.Process | None:
        """The supervised process whose command has `program` in it, if it runs now."""
        children = alive(psutil.Process(self.process.pid).children())
        return next((each for each in children if _is(each, program)), None)

    def end(self, how: signal.Signals = signal.SIGTERM, within_s: float = 20.0) -> int:
        """Send a signal, wait for the end, and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(within_s)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those of `processes` that still run; an unreaped zombie does not."""
    return [each for each in processes if _runs(each)]


def _is(process: psutil.Process, program: str) -> bool:
    try:
        return program in " ".join(process.cmdline()[:3])
    except psutil.Error:  # ended meanwhile
        return False


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def main() -> int:
    heed_signals()
    logging.basicConfig(level=logging.INFO, format="%(relativeCreated)d %(message)s")
    data, coordinators = Path(sys.argv[1]), int(sys.argv[2])
    embedded = Embedded(data, coordinators=coordinators, coordinator_command=STANDIN)
    try:
        asyncio.run(serve(embedded, say_ready))
    except HeadwayError as error:
        logging.error("%s", error)
        return 1
    return 0


def say_ready(_: Connections) -> None:
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()


def heed_signals() -> None:
    """Undo what a test run in the background (by nohup, or a script's &) would have us ignore."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
