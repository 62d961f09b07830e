"""One lane's agents as a process of their own, which die as they are ordered to.

`python -m headway.demo.support.clerk LANE --orders DIR` runs `support-LANE` and `research-LANE`
until SIGTERM. `headway agent headway.demo.support.agent:…` runs the same agents without orders.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path

from headway.agents import attempt
from headway.agents.connection import connect
from headway.agents.pull import ACK_WAIT_S
from headway.agents.worker import Worker
from headway.cli.addresses import NATS_URL
from headway.demo.support.agent import research, support
from headway.demo.support.deaths import Orders, Watched, execute
from headway.demo.support.sagas import RESEARCH, SUPPORT, agent_name

GRACE_S = 0.5


async def _serve(lane: int, ack_wait_s: float) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    agents = support(agent_name(SUPPORT, lane)), research(agent_name(RESEARCH, lane))
    async with (
        await connect(os.environ[NATS_URL], name=f"lane {lane}", wait=True) as connection,
        asyncio.TaskGroup() as group,
    ):
        for agent in agents:
            worker = Worker(connection, agent, grace_s=GRACE_S, ack_wait_s=ack_wait_s)
            group.create_task(worker.run(stop))


def main() -> None:
    """Work until SIGTERM, or until an order says otherwise."""
    parser = argparse.ArgumentParser(description="The support desk's agents of one lane.")
    parser.add_argument("lane", type=int)
    parser.add_argument("--orders", type=Path, required=True, help="who dies when")
    parser.add_argument("--ack-wait", type=float, default=ACK_WAIT_S, help="of the commands, s")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(message)s")
    watched = partial(Watched, Orders(chosen.orders), execute)
    setattr(attempt, "Coordinated", watched)  # noqa: B010 - the SDK has no hook to die by
    asyncio.run(_serve(chosen.lane, chosen.ack_wait))


if __name__ == "__main__":
    main()
