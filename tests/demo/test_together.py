"""Work done together: all of it, or the first failure and nothing left running."""

from __future__ import annotations

import asyncio

import pytest
from headway.demo.together import together


async def test_all_parts_are_done() -> None:
    done: list[int] = []

    async def part(number: int) -> None:
        await asyncio.sleep(0)
        done.append(number)

    await together(part(number) for number in range(3))
    assert sorted(done) == [0, 1, 2]


async def test_the_first_failure_is_raised_as_it_is_and_ends_the_others() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def failing() -> None:
        await asyncio.sleep(0)
        raise LookupError("no such thing")

    with pytest.raises(LookupError, match="no such thing"):
        await together([endless(), failing()])
    assert ended.is_set()


async def test_to_cancel_it_is_to_cancel_every_part() -> None:
    ended = 0

    async def endless() -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended += 1

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.02):
            await together(endless() for _ in range(3))
    assert ended == 3


async def test_nothing_to_do_is_done() -> None:
    await together([])
