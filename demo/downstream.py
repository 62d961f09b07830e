"""The world behind the agents: one service that keeps stock, money, parcels and mails.

A process of its own: `python -m headway.demo.downstream --data DIR --port PORT --seed N` serves on
loopback until SIGTERM. It answers late, fails, or applies and drops the answer, when a call asks
for it or its seed says so.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from headway.agents.errors import InvalidInput
from headway.demo.books import ACTIONS
from headway.demo.calls import LINE_MAX_BYTES, Answer, Call, decode_call, encode
from headway.demo.ledger import Ledger
from headway.demo.orders import read_orders
from headway.demo.trouble import Trouble, trouble

LOOPBACK = "127.0.0.1"
ORDERS_FILE = "orders.jsonl"
LEDGER_FILE = "downstream.sqlite3"

logger = logging.getLogger("headway.demo.downstream")


class Downstream:
    """Serves the calls of any number of agents on one ledger."""

    def __init__(self, ledger: Ledger, trouble_of: Callable[[str, str, int], Trouble]) -> None:
        """`trouble_of` gives the trouble of an order's call of a name, for the n-th time."""
        self._ledger = ledger
        self._trouble_of = trouble_of
        self._seen: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one call of a connection. An effect does not depend on who still listens."""
        try:
            line = await reader.readline()
            if not line:
                return  # somebody looked whether the service is there
            answer = await self._treat(decode_call(line))
            if answer is not None:
                writer.write(encode(answer))
                await writer.drain()
        except (InvalidInput, ValueError) as error:
            logger.warning("hung up on a caller: %s", error)
        except ConnectionError:
            logger.info("a caller hung up before its answer")
        finally:
            writer.close()

    async def _treat(self, call: Call) -> Answer | None:
        if call.action not in ACTIONS:
            raise InvalidInput(f"there is no action {call.action!r}")
        met = call.trouble or self._trouble(call)
        await asyncio.sleep(met.hold_s)
        if met.fails:
            return self._ledger.fail(call)
        answer = self._ledger.perform(call)
        await asyncio.sleep(met.late_s)
        return None if met.drops else answer

    def _trouble(self, call: Call) -> Trouble:
        name = f"undo {call.action}" if call.undo else call.action
        seen = f"{call.order.order} {name}"
        self._seen[seen] += 1
        return self._trouble_of(call.order.order, name, self._seen[seen] - 1)


async def _serve(data: Path, port: int, seed: int) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    ledger = Ledger(data / LEDGER_FILE, read_orders(data / ORDERS_FILE))
    downstream = Downstream(ledger, partial(trouble, seed))
    async with await asyncio.start_server(downstream.serve, LOOPBACK, port, limit=LINE_MAX_BYTES):
        await stop.wait()
    ledger.close()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description="The downstream service of the demo.")
    parser.add_argument("--data", type=Path, required=True, help=f"holds {ORDERS_FILE}")
    parser.add_argument("--port", type=int, required=True, help="on 127.0.0.1")
    parser.add_argument("--seed", type=int, default=1, help="decides which calls meet trouble")
    chosen = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    asyncio.run(_serve(chosen.data, chosen.port, chosen.seed))


if __name__ == "__main__":
    main()
