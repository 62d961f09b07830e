"""What every demo has around it: a folder, a log, narration, processes to kill, and a report."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

from headway.cli import output
from headway.coordinator.embedded import Embedded
from headway.coordinator.supervisor import Supervised
from headway.demo.datafolder import data_folder, log_into
from headway.demo.killer import COORDINATOR, NATS, Find
from headway.demo.narration import Narration

ANSWER_WITHIN_S = 60.0  # servers that are killed are back long before

SERVERS = "servers"
LOG_FILE = "demo.log"


class Judged(Protocol):
    """A report that says whether the audit found nothing at all."""

    @property
    def holds(self) -> bool: ...


R = TypeVar("R", bound=Judged)
Begin = Callable[[Path, Narration], Coroutine[Any, Any, R]]


def perform(
    begin: Begin[R], show: Callable[[R], None], *, what: str, keep: Path | None, hint: str = ""
) -> int:
    """Run what `begin` begins in a data folder, and show its report; the exit status, 0 only if the
    audit holds.

    Data and logs stay in `keep`, which is told with the `hint`, or are removed. `what` is counted.
    """
    with data_folder(keep) as data, log_into(data / LOG_FILE):
        with Narration(output.narration_console(), what) as narration:
            try:
                report = asyncio.run(begin(data, narration))
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
        if keep:
            narration.say(f"Data and logs are in {keep}.{hint}")
        elif not report.holds:
            narration.say("Run it again with --keep DIR to look into what the audit found.")
    show(report)
    return 0 if report.holds else 1


def stop_in_order_at_sigterm() -> None:
    """Have SIGTERM cancel the current task, as SIGINT does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def finder(embedded: Embedded, agents: Mapping[str, Supervised]) -> Find:
    """Finds the process of an agent, of the coordinator or of nats-server."""
    roles = {
        **agents,
        COORDINATOR: embedded.processes["coordinator-1"],
        NATS: embedded.processes["nats"],
    }

    def find(role: str) -> int | None:
        return roles[role].pid if roles[role].running else None

    return find
