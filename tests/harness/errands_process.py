"""The agent of `errands` as a process that is replaced, at once, whenever it is killed.

It forks, since a fresh interpreter would take longer than all the rest.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from functools import partial
from pathlib import Path

from harness.errands import Ordered, Traces, Watched, errands, outlive
from headway.agents import attempt, runner
from headway.agents.worker import Worker


def work(name: str, traces: Path, ack_wait_s: float) -> None:
    left = Traces(traces)
    ordered = Ordered(left)
    attempt.Coordinated = partial(Watched, ordered)
    runner.Worker = partial(Worker, ack_wait_s=ack_wait_s)
    runner.run([errands(name, left, ordered)], os.environ["HEADWAY_NATS_URL"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name")
    parser.add_argument("--traces", type=Path)
    parser.add_argument("--ack-wait", type=float)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(process)d %(name)s %(message)s")
    parent = os.getpid()
    while True:
        child = os.fork()
        if child == 0:
            threading.Thread(target=outlive, args=(parent,), daemon=True).start()
            work(options.name, options.traces, options.ack_wait)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            break


main()
