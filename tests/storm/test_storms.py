"""Recovery storms in short form, on a real system."""

from __future__ import annotations

import pytest
from storm.scenario import Plan, storm

pytestmark = pytest.mark.timed

DRAIN_MAX = 1.2  # of the ideal
NOISE_S = 2.0  # processes that start, on two noisy cores


async def test_after_everything_was_killed_the_downstream_sees_no_more_than_declared(
    system, request
):
    outcome = await storm(system, Plan(tasks=300, rate=50, burst=10, begun=40))
    import os

    t0 = min(c["at"] for c in system.downstream.calls())
    b = {}
    for c in system.downstream.calls():
        b[int(c["at"] - t0)] = b.get(int(c["at"] - t0), 0) + 1
    print(os.getloadavg(), b)
    for line in outcome.rows():
        print(*line, sep="  ")
    assert outcome.ended == {"succeeded": 330}
    assert outcome.peak <= outcome.peak_max
    assert outcome.drained_s <= DRAIN_MAX * outcome.ideal_s + NOISE_S
    assert max(outcome.urgent_s) <= 3.0
    assert max(outcome.late_s) <= 5.0
    assert outcome.doubled == 0
