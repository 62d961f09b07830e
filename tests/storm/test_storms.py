"""A recovery storm in short form, on a real system."""

from __future__ import annotations

import pytest
from storm.scenario import DRAIN_MAX, LATE_MAX_S, NOISE_S, URGENT_MAX_S, Plan, peak, storm

pytestmark = pytest.mark.timed


async def test_after_everything_was_killed_the_downstream_sees_no_more_than_declared(system):
    outcome = await storm(system, Plan(tasks=300, rate=50, burst=11, begun=40))
    for name, value in outcome.rows():
        print(f"{name}: {value}")
    assert outcome.ended == {"succeeded": 330}
    assert outcome.doubled == 0
    assert outcome.peak <= outcome.peak_max
    assert outcome.drained_s <= DRAIN_MAX * outcome.ideal_s + NOISE_S
    assert max(outcome.urgent_s) <= URGENT_MAX_S
    assert max(outcome.late_s) <= LATE_MAX_S


def test_the_fullest_second_is_found_wherever_it_begins():
    assert peak([0.0, 0.6, 1.2, 1.5, 1.59, 3.0]) == 4
    assert peak([]) == 0
