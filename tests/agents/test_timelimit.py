"""An attempt's time: it runs out once, and stands still while a person is waited for."""

from __future__ import annotations

import asyncio
import time

from harness.eventually import eventually
from headway.agents.timelimit import TimeLimit


async def test_time_runs_out_once_and_its_end_is_told() -> None:
    over: list[float] = []
    limit = TimeLimit(asyncio.get_running_loop(), 0.05, lambda: over.append(time.time()))
    deadline = limit.start()
    assert deadline is not None
    await eventually(lambda: over)
    assert over[0] >= deadline - 0.01
    limit.end()


async def test_it_stands_still_until_the_last_wait_is_over_and_then_begins_anew() -> None:
    over: list[None] = []
    limit = TimeLimit(asyncio.get_running_loop(), 0.05, lambda: over.append(None))
    limit.start()
    limit.pause()
    limit.pause()
    assert limit.go_on() is None
    later = time.monotonic() + 0.15
    await eventually(lambda: time.monotonic() > later)
    assert over == []
    assert limit.go_on() is not None
    await eventually(lambda: over)


async def test_without_a_limit_or_after_the_end_nothing_runs_out() -> None:
    loop = asyncio.get_running_loop()
    assert TimeLimit(loop, 0.0, lambda: None).start() is None
    limit = TimeLimit(loop, 0.01, lambda: None)
    limit.pause()
    limit.end()
    assert limit.go_on() is None
