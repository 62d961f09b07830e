"""The whole kill sweep: `python -m headway.demo.support.sweep`.

Every place in the journal of the support agent and of the buyer, who asks in parallel: before,
during and after each request. At each the agent is killed, then the coordinator, then both; and at
three of each kind the agent is frozen for 20 s while another one takes over. Minutes, not seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from headway.demo.support.run import EVERYTHING, LANES_DEFAULT, run_sweep


def main() -> None:
    """Sweep; the exit status is 0 only if killing made no difference."""
    parser = argparse.ArgumentParser(description="Kill at every place of a journal, and audit.")
    parser.add_argument("--lanes", type=int, default=LANES_DEFAULT, help="tasks at a time")
    parser.add_argument(
        "--victims", nargs="+", choices=EVERYTHING.victims, default=EVERYTHING.victims
    )
    parser.add_argument("--kinds", nargs="+", choices=EVERYTHING.kinds, default=EVERYTHING.kinds)
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep data and logs there")
    chosen = parser.parse_args()
    plan = replace(EVERYTHING, kinds=chosen.kinds, victims=chosen.victims, lanes=chosen.lanes)
    sys.exit(run_sweep(plan, as_json=chosen.json, keep=chosen.keep))


if __name__ == "__main__":
    main()
