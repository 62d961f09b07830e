"""Callers who ask for everything at once, with the largest bodies, until they are killed.

`python crowd_process.py URL TOKEN CALLERS`; writes a line when each has been answered once, and the
number of answers every second from then on.
"""

from __future__ import annotations

import asyncio
import sys
import time
from uuid import uuid4

import httpx

LARGE = {"saga": "linear", "input": "x" * 1_000_000, "task": str(uuid4())}
NONSENSE = b'{"saga":"linear","input":' + b"[" * 1_000_000


async def ask(client: httpx.AsyncClient, number: int) -> None:
    match number % 4:
        case 0:
            await client.get("/api/list", params={"limit": 500})
        case 1:
            await client.get("/api/overview")
        case 2:
            await client.post("/api/submit", json=LARGE)
        case _:
            kind = {"Content-Type": "application/json"}
            await client.post("/api/submit", content=NONSENSE, headers=kind)


async def main(url: str, token: str, callers: int) -> None:
    answered = 0
    shown = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, timeout=60, headers=shown) as client:

        async def keep_asking(number: int) -> None:
            nonlocal answered
            while True:
                await ask(client, number)
                answered += 1

        await asyncio.gather(*(ask(client, number) for number in range(callers)))
        asking = [asyncio.create_task(keep_asking(number)) for number in range(callers)]
        print("ready", flush=True)
        began_at = time.monotonic()
        while True:
            await asyncio.wait(asking, timeout=1, return_when=asyncio.FIRST_EXCEPTION)
            print(round(answered / (time.monotonic() - began_at)), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
