"""Some agents of the crew as a process, as `headway agent` runs them."""

from __future__ import annotations

import argparse
import logging
import os

from chaos.crew import crew, wreck
from harness import clock
from headway.agents import runner


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wreck", action="store_true", help="only the agent that crashes")
    parser.add_argument("--grace", type=float, default=10.0)
    options = parser.parse_args()
    clock.follow_if_told()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    agents = [wreck()] if options.wreck else crew()
    runner.run(agents, os.environ["HEADWAY_NATS_URL"], grace_s=options.grace)


main()
