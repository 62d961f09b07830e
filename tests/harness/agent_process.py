"""The agent `shop` as a process of its own, as `headway agent` runs one: grace time, signals."""

from __future__ import annotations

import argparse
import logging
import os
from functools import partial
from pathlib import Path

from harness.downstream import Downstream
from harness.shop import shop
from headway.agents import runner
from headway.agents.worker import Worker


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--downstream", type=Path)
    parser.add_argument("--ack-wait", type=float, default=None)
    parser.add_argument("--grace", type=float, default=10.0)
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.ack_wait is not None:
        runner.Worker = partial(Worker, ack_wait_s=options.ack_wait)
    agent = shop(Downstream(options.downstream))
    runner.run(
        [agent],
        os.environ["HEADWAY_NATS_URL"],
        concurrency=options.concurrency,
        grace_s=options.grace,
    )


main()
