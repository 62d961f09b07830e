"""How the whole system does: counted as it is committed, by each coordinator, and added up."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.agents.overview_views import MinuteView, OverviewView
from headway.coordinator import overview
from headway.coordinator.observing import (
    AttemptEnded,
    Ended,
    Happening,
    Parked,
    Recovered,
    Submitted,
)
from headway.coordinator.tally import (
    GROWTH,
    MINUTE_MS,
    SLICE_MS,
    Slice,
    Tally,
    bucket_of,
    last_minute_of,
    minutes_of,
    percentile,
)
from headway.sagas import Phase

NOW = 1_800_000_000_000


def failed(at: int, *, retry: bool) -> AttemptEnded:
    return AttemptEnded(at, "a", Phase.ACTION, 1, "shop", "failed", 5, "Ordered", retry)


def ended(at: int, duration_ms: int) -> Ended:
    return Ended(at, "succeeded", duration_ms)


def counted(*happened: Happening) -> Tally:
    tally = Tally()
    for each in happened:
        tally.count([("linear", each)])
    return tally


def test_each_happening_is_counted_as_what_it_is() -> None:
    tally = counted(
        Submitted(NOW, child=False),
        failed(NOW, retry=True),
        failed(NOW, retry=False),
        AttemptEnded(NOW, "a", Phase.ACTION, 1, "shop", "succeeded", 5),
        Recovered(NOW, "a", Phase.ACTION, "shop", "republished"),
        Parked(NOW, "failed_to_compensate"),
        Ended(NOW, "compensated", 40),
    )
    [(began, told)] = tally.changed().items()
    assert began == NOW - NOW % SLICE_MS
    assert +told.counts == {
        "submitted": 1,
        "failures": 2,
        "retries": 1,
        "recoveries": 1,
        "parked": 1,
        "compensated": 1,
    }


def test_what_changed_is_told_until_it_is_kept_and_again_if_it_was_not() -> None:
    tally = counted(ended(NOW, 10))
    changed = tally.changed()
    tally.kept(changed)
    assert tally.changed() == {}
    tally.again(changed)
    assert tally.changed() == changed
    tally.kept(changed)
    tally.count([("linear", ended(NOW, 10))])
    assert next(iter(tally.changed().values())).counts["succeeded"] == 2


def test_what_comes_late_is_counted_and_the_memory_stays_small() -> None:
    tally = Tally()
    for number in range(500):
        tally.count([("linear", ended(NOW + number * SLICE_MS, 10))])
        tally.kept(tally.changed())
    tally.count([("linear", ended(NOW, 10))])
    [late] = tally.changed().values()
    assert late.counts["succeeded"] == 2
    assert len(tally._slices) < 10


@pytest.mark.parametrize("seed", range(5))
def test_a_percentile_is_right_to_within_a_tenth(seed: int) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    durations = sorted(round(rng.lognormvariate(6, 2)) for _ in range(2_001))
    buckets = Counter(bucket_of(each) for each in durations)
    for share, true in ((0.5, durations[1_000]), (0.95, durations[1_900])):
        told = percentile(buckets, share)
        assert told is not None
        assert true / GROWTH - 1 <= told <= true * GROWTH + 1


def test_percentiles_of_nothing_are_none_and_of_nought_are_no_error() -> None:
    assert percentile({}, 0.5) is None
    assert percentile({bucket_of(0): 1, bucket_of(1): 1}, 0.95) == 1


def test_the_slices_of_all_coordinators_add_up_minute_by_minute() -> None:
    one, other, old = Slice(), Slice(), Slice()
    one.count(ended(NOW, 100))
    other.count(ended(NOW, 100))
    old.count(Submitted(NOW, child=False))
    began = NOW - NOW % SLICE_MS
    slices = [(began, one), (began, other), (began - 10 * MINUTE_MS, old), (began - 10**8, old)]
    minutes = minutes_of(slices, NOW + 1)
    assert len(minutes) == 60
    assert minutes[-1].succeeded == 2
    assert minutes[-1].p50_ms == pytest.approx(100, rel=0.1)
    assert minutes[-11].submitted == 1
    assert sum(each.submitted for each in minutes) == 1
    assert all((later.at - before.at).total_seconds() == 60 for before, later in pairwise(minutes))
    last = last_minute_of(slices, NOW + 1)
    assert (last.succeeded, last.submitted) == (2, 0)


async def told(system: System) -> OverviewView:
    return await system.client.overview()


async def test_what_coordinators_commit_is_seen_in_the_overview(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "KEPT_S", 0.05)
    monkeypatch.setattr(overview, "COUNT_EVERY_S", 0.05)
    async with system.coordinating(2), system.working():
        await registered(system.client, linear())
        for number in range(8):
            order = {"number": number} | ({"b": "reject"} if number < 3 else {})
            await system.client.run("linear", order, timeout=20)
        waiting = await system.client.submit("linear", {"number": 9, "a": "sleep=6"})

        async def counted() -> OverviewView:
            view = await told(system)
            minute = view.last_minute
            assert (minute.succeeded, minute.compensated) == (5, 3), minute
            assert (minute.submitted, minute.failures, minute.retries) == (9, 3, 0), minute
            assert view.counts == {"succeeded": 5, "compensated": 3, "running": 1}
            return view

        view = await eventually(counted, 15)
        assert (view.agents, view.instances, view.parked) == (1, 1, 0)
        assert view.oldest_dispatch_at is not None
        assert view.oldest_due_at is not None
        assert view.oldest_due_at > view.now
        assert view.last_minute.p50_ms is not None
        assert sum(minute.submitted for minute in view.minutes) == 9
        assert (await system.client.result(waiting.task, timeout=20)).status == "succeeded"


async def test_nothing_committed_is_an_overview_of_noughts(system: System) -> None:
    async with system.coordinating():
        await registered(system.client, linear())
        view = await told(system)
        assert view.counts == {}
        assert view.last_minute == MinuteView(at=view.last_minute.at)
        assert len(view.minutes) == 60
        assert (view.oldest_dispatch_at, view.oldest_due_at) == (None, None)
