"""The downstream service as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from chaos.downstream import LINE_MAX_BYTES, Log, Service


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    log = Log(options.log)
    service = Service(log)
    async with await asyncio.start_server(
        service.serve, "127.0.0.1", options.port, limit=LINE_MAX_BYTES, backlog=1_024
    ):
        await log.run()


asyncio.run(main())
