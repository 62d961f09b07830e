"""Stands in for a coordinator under supervision: reaches both servers, and answers `health`."""

from __future__ import annotations

import asyncio
import os
import signal

import asyncpg
import nats
from nats.aio.msg import Msg

RETRY_S = 0.05


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await reach_postgres()
    client = await nats.connect(
        os.environ["HEADWAY_NATS_URL"], max_reconnect_attempts=-1, reconnect_time_wait=0
    )

    async def answer(message: Msg) -> None:
        await message.respond(b"{}")

    await client.subscribe("hw.api.health", cb=answer)
    await stop.wait()
    await client.close()


async def reach_postgres() -> None:
    """As a coordinator does: a server that is being killed right now is tried again."""
    while True:
        try:
            await (await asyncpg.connect(os.environ["HEADWAY_POSTGRES_URL"])).close()
            return
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await asyncio.sleep(RETRY_S)


asyncio.run(main())
