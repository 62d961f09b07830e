"""Whatever people ask for on HTTP, tasks go on beside it."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from harness.findings import note
from harness.served import Served

pytestmark = pytest.mark.timed

CROWD = Path(__file__).parents[1] / "harness/crowd_process.py"
TASKS = 40
CALLERS = 24
PAUSE_MAX_S = 0.5  # of the loop that coordinator and worker share
CROWDED_MAX_S = 0.3  # at the median


@asynccontextmanager
async def crowd(served: Served) -> AsyncIterator[asyncio.StreamReader]:
    """CALLERS in a process of their own, while the block lasts; it tells its rate each second."""
    asking = await asyncio.create_subprocess_exec(
        *(sys.executable, str(CROWD), served.address, served.tokens["operate"], str(CALLERS)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert asking.stdout is not None
    try:
        assert await asking.stdout.readline() == b"ready\n"
        yield asking.stdout
    finally:
        asking.kill()
        await asking.communicate()


async def latencies(served: Served) -> list[float]:
    """Seconds that each of TASKS tasks takes, one after the other."""
    found = []
    for number in range(TASKS):
        began_at = time.monotonic()
        view = await served.system.client.run("linear", {"number": number}, timeout=60)
        assert view.status == "succeeded"
        found.append(time.monotonic() - began_at)
    return found


async def longest_pause(seen: list[float]) -> None:
    while True:
        before = time.monotonic()
        await asyncio.sleep(0.005)
        seen.append(time.monotonic() - before - 0.005)


async def test_a_crowd_on_http_holds_no_task_up(
    served: Served, anybody: httpx.AsyncClient, request: pytest.FixtureRequest
) -> None:
    alone = await latencies(served)
    async with crowd(served) as rates:
        pauses: list[float] = []
        watching = asyncio.create_task(longest_pause(pauses))
        crowded = await latencies(served)
        watching.cancel()
        rate = int((await rates.readuntil(b"\n")).split()[-1])
    found = (
        f"alone {1000 * statistics.median(alone):.0f} ms, beside {rate} requests/s "
        f"{1000 * statistics.median(crowded):.0f} ms, longest pause {1000 * max(pauses):.0f} ms"
    )
    print(found)
    note(request, "http", (found,))
    assert rate > 20
    assert max(pauses) < PAUSE_MAX_S, found
    assert statistics.median(crowded) < CROWDED_MAX_S, found
