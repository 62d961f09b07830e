"""Group commit: what waits goes together, in order, and each request fails for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from headway.coordinator.errors import Refusal, StoreRefused, StoreUnavailable
from headway.coordinator.groupcommit import BATCH_MAX, BATCH_MAX_BYTES, GroupCommit


class Slow:
    """Commits what it is given when it is let; keeps the batches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.let = asyncio.Event()

    async def commit(self, requests: Sequence[str]) -> list[str]:
        self.batches.append(list(requests))
        await self.let.wait()
        if "poison" in requests:
            raise StoreRefused("these rows")
        return [request.upper() for request in requests]

    def group(self) -> GroupCommit[str, str]:
        """What touches the same thing begins with the same letter."""
        return GroupCommit(self.commit, lambda request: request[:1])


def asked(group: GroupCommit[str, str], *requests: str, size: int = 1) -> list[asyncio.Task[str]]:
    return [asyncio.ensure_future(group.ask(request, size)) for request in requests]


async def run_what_is_ready() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_first_request_waits_for_nothing_and_the_others_go_together():
    slow = Slow()
    group = slow.group()
    first = asked(group, "a")
    await run_what_is_ready()
    assert slow.batches == [["a"]]
    others = asked(group, "b", "c", "d")
    await run_what_is_ready()
    assert slow.batches == [["a"]]
    slow.let.set()
    assert await asyncio.gather(*first, *others) == ["A", "B", "C", "D"]
    assert slow.batches == [["a"], ["b", "c", "d"]]


async def test_what_touches_the_same_is_taken_one_after_another_in_order():
    slow = Slow()
    slow.let.set()
    requests = ["a1", "b1", "a2", "a3", "b2", "c1"]
    assert await asyncio.gather(*asked(slow.group(), *requests)) == [r.upper() for r in requests]
    assert slow.batches == [["a1", "b1", "c1"], ["a2", "b2"], ["a3"]]


async def test_a_batch_is_bounded_in_requests_and_in_bytes():
    slow = Slow()
    slow.let.set()
    group = slow.group()
    many = [f"{chr(0x4E00 + number)}" for number in range(BATCH_MAX + 1)]
    await asyncio.gather(*asked(group, *many))
    assert [len(batch) for batch in slow.batches] == [BATCH_MAX, 1]
    slow.batches.clear()
    await asyncio.gather(*asked(group, "a", "b", "c", size=BATCH_MAX_BYTES // 2))
    assert slow.batches == [["a", "b"], ["c"]]


async def test_a_request_that_cannot_be_committed_fails_alone():
    slow = Slow()
    slow.let.set()
    answers = await asyncio.gather(*asked(slow.group(), "a", "poison", "c"), return_exceptions=True)
    assert answers[::2] == ["A", "C"]
    assert isinstance(answers[1], StoreRefused)


async def test_a_refusal_is_for_the_one_who_asked():
    async def commit(requests: Sequence[str]) -> list[str | Refusal]:
        return [Refusal("not this one") if each == "b" else each for each in requests]

    group: GroupCommit[str, str] = GroupCommit(commit, lambda request: request)
    answers = await asyncio.gather(*asked(group, "a", "b"), return_exceptions=True)
    assert answers[0] == "a"
    assert isinstance(answers[1], Refusal)


async def test_an_outage_is_told_to_all_and_the_next_ones_are_tried():
    away = [True]

    async def commit(requests: Sequence[str]) -> list[str]:
        if away:
            away.clear()
            raise StoreUnavailable("it is away")
        return list(requests)

    group: GroupCommit[str, str] = GroupCommit(commit, lambda request: request)
    answers = await asyncio.gather(*asked(group, "a", "b"), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
    assert await group.ask("a", 1) == "a"


async def test_who_stops_waiting_keeps_nobody_from_an_answer():
    slow = Slow()
    gone, stays = asked(slow.group(), "a", "b")
    await run_what_is_ready()
    gone.cancel()
    slow.let.set()
    assert await stays == "B"
    with pytest.raises(asyncio.CancelledError):
        await gone
