"""Whose turn it is, and when: the rules alone, without a database."""

from __future__ import annotations

import random
import sys
from uuid import UUID

import pytest
from headway.agents.limit_views import rate_text
from headway.coordinator.limits import (
    SECOND_US,
    Limit,
    Limits,
    least_burst,
    places_of,
)
from headway.coordinator.pacing import (
    LEAD_US,
    TURN_KEPT_US,
    Ask,
    Candidate,
    Room,
    Standing,
    Turn,
    Use,
    admitted,
    in_line,
    turn,
)

NOW = 1_800_000_000 * SECOND_US
TASK = UUID(int=1)


def agent(rate=None, burst=1, concurrency=None, name="shop"):
    return Limit("agent", name, rate, burst, concurrency)


def candidate(number, *, priority=4, undo=False, since=None, fresh=False, places=("agent/shop",)):
    phase = "compensation" if undo else "action"
    since_us = NOW - 60 * SECOND_US + number if since is None else since
    return Candidate(UUID(int=number), "a", phase, 1, 0, "shop", places, priority, since_us, fresh)


def numbers(line):
    return [each.task.int for each in line]


def ask(number=1, asked="0/1/me", **changes):
    named = {"phase": "action", "attempt": 1, "epoch": 0, **changes}
    return Ask(UUID(int=number), "a", **named, asked=asked)


def standing(places=("agent/shop",), **changes):
    return Standing(places, 4, **{"state": "admitted", "row": ("action", 1, 0), **changes})


def test_places_do_not_depend_on_what_is_declared():
    attributes = {"customer": "alice/x", "no key": "x", "region": "eu"}
    assert places_of("pay", "refund", attributes) == (
        "agent/pay",
        "saga/refund",
        "key/pay:customer/alice/x",
        "key/pay:region/eu",
    )


def test_a_key_limits_each_of_its_values_by_itself():
    limit = Limit("key", "pay:customer", 1.0, 1, None)
    limits = Limits([limit])
    places = places_of("pay", "refund", {"customer": "alice/x", "region": "eu"})
    assert limits.limiting(places) == {"key/pay:customer/alice/x": limit}
    assert limits.limiting(places_of("ship", "refund", {"customer": "alice"})) == {}


@pytest.mark.parametrize(
    ("rate", "text"), [(50.0, "50/s"), (1.5, "1.5/s"), (0.5, "30/m"), (10 / 3600, "10/h")]
)
def test_rates_are_told_as_they_are_written(rate, text):
    assert rate_text(rate) == text


def test_a_burst_has_room_for_all_that_may_begin_late_together():
    rates = (50.0, 40.0, 5.0, 1.0, None)
    assert [least_burst(rate) for rate in rates] == [11, 9, 2, 1, 1]


def test_of_any_window_no_more_turns_than_rate_and_burst_allow():
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed: {seed}\n")
    rng = random.Random(seed)
    for _ in range(50):
        limit = agent(rng.choice([0.5, 3.0, 50.0, 900.0]), rng.randint(1, 30))
        limits, levels, now, turns = Limits([limit]), {}, NOW, []
        for number in range(200):
            now += rng.choice([0, 0, 0, 1_000, limit.interval_us, 5 * limit.interval_us])
            turns.append(turn(ask(number), standing(), limits, levels, {}, now).at_us)
        assert turns == sorted(turns)
        for width in (SECOND_US // 10, SECOND_US, 7 * SECOND_US):
            allowed = limit.rate * width / SECOND_US + limit.burst
            for first in turns:
                within = sum(first <= at < first + width for at in turns)
                assert within <= allowed + 1e-6, (limit, width)


def test_turns_come_as_fast_as_declared_while_there_is_enough_to_do():
    limits, levels = Limits([agent(50.0, 10)]), {}
    turns = [turn(ask(n), standing(), limits, levels, {}, NOW).at_us for n in range(101)]
    assert 95 / 50 <= (turns[-1] - NOW) / SECOND_US <= 100 / 50


def test_a_turn_asked_for_again_is_the_same_and_takes_nothing():
    limits, levels = Limits([agent(1.0)]), {}
    given = turn(ask(), standing(), limits, levels, {}, NOW)
    level = dict(levels)
    again = standing(state="begun", asked="0/1/me", turn_us=given.at_us)
    assert turn(ask(), again, limits, levels, {}, NOW + 1_000) == Turn(given.at_us)
    assert levels == level


def test_a_turn_that_was_slept_through_is_lost():
    limits, levels = Limits([agent(1.0)]), {}
    given = turn(ask(), standing(), limits, levels, {}, NOW)
    late = given.at_us + TURN_KEPT_US + 1
    again = standing(state="begun", asked="0/1/me", turn_us=given.at_us)
    other = turn(ask(), again, limits, levels, {}, late)
    assert other == Turn(given.at_us + SECOND_US, new=True)


def test_another_delivery_of_the_command_takes_a_turn_of_its_own():
    limits, levels = Limits([agent(1.0)]), {}
    given = turn(ask(), standing(), limits, levels, {}, NOW)
    taken = standing(state="begun", asked="0/1/me", turn_us=given.at_us)
    assert turn(ask(asked="0/2/you"), taken, limits, levels, {}, NOW).at_us == NOW + SECOND_US


def test_the_slowest_of_several_places_decides_and_all_are_charged():
    places = ("agent/shop", "saga/x")
    limits, levels = Limits([agent(10.0), Limit("saga", "x", 1.0, 1, None)]), {}
    turns = [turn(ask(n), standing(places), limits, levels, {}, NOW).at_us for n in range(3)]
    assert [(at - NOW) / SECOND_US for at in turns] == [0, 1, 2]
    assert levels["agent/shop"] == NOW + 2 * SECOND_US + SECOND_US // 10


def test_a_command_is_late_when_a_newer_one_of_its_step_waits():
    newer = standing(state="waiting", row=("action", 1, 1))
    assert turn(ask(), newer, Limits([agent(1.0)]), {}, {}, NOW).late
    undoing = standing(state="waiting", row=("compensation", 1, 0))
    assert turn(ask(attempt=7), undoing, Limits([agent(1.0)]), {}, {}, NOW).late


def test_what_was_never_admitted_waits_for_room_and_then_counts():
    limits, use, levels = Limits([agent(concurrency=2)]), {"agent/shop": Use(1)}, {}
    stranger = standing(row=None, state="")
    assert turn(ask(1), stranger, limits, levels, use, NOW).new
    assert turn(ask(2), stranger, limits, levels, use, NOW).full
    assert use["agent/shop"].open == 2
    assert levels["agent/shop"] == 1  # so that another coordinator notices


def test_what_was_never_admitted_does_not_wait_for_what_waits_for_its_worker():
    """The worker's hands are full of it, so what is admitted cannot reach the worker."""
    limits, use = Limits([agent(concurrency=2)]), {"agent/shop": Use(2, 2)}
    stranger = standing(row=None, state="")
    assert turn(ask(1), stranger, limits, {}, use, NOW).new
    assert turn(ask(2), stranger, limits, {}, use, NOW).new
    assert turn(ask(3), stranger, limits, {}, use, NOW).full


def test_admission_never_runs_further_ahead_than_its_lead():
    limits = Limits([agent(50.0, 10)])
    room = Room(limits, {}, {}, NOW)
    taken = admitted([candidate(n) for n in range(200)], room, 200)
    ahead = LEAD_US / SECOND_US * 50
    assert ahead <= len(taken) <= ahead + 10 + 1


def test_a_place_without_room_holds_back_nothing_else():
    limits = Limits([Limit("key", "shop:customer", None, 1, 1), agent(concurrency=3)])
    alice = ("agent/shop", "key/shop:customer/alice")
    line = [candidate(n, places=alice) for n in range(5)] + [candidate(n) for n in range(5, 9)]
    room = Room(limits, {}, {}, NOW)
    assert numbers(admitted(line, room, 10)) == [0, 5, 6]
    assert list(room.full) == ["key/shop:customer/alice", "agent/shop"]


def test_an_agent_that_is_probed_gets_one_at_a_time():
    room = Room(Limits([agent(1_000.0, 100)]), {}, {}, NOW, frozenset({"agent/shop"}))
    assert numbers(admitted([candidate(1), candidate(2)], room, 10)) == [1]


def test_compensations_come_first_and_then_priorities():
    line = [
        candidate(1),
        candidate(2, priority=9),
        candidate(3, undo=True, priority=0),
        candidate(4, priority=0),
        candidate(5, undo=True),
    ]
    assert numbers(in_line(line, fresh_first=False)) == [5, 3, 2, 1, 4]


@pytest.mark.parametrize(
    ("fresh_first", "order"),
    [(False, [1, 12, 2, 11, 3, 10, 4]), (True, [12, 1, 11, 2, 10, 3, 4])],
)
def test_a_backlog_and_what_is_new_take_turns(fresh_first, order):
    backlog = [candidate(n) for n in (1, 2, 3, 4)]
    new = [candidate(n, since=NOW + n, fresh=True) for n in (10, 11, 12)]
    assert numbers(in_line([*backlog, *new], fresh_first=fresh_first)) == order


def test_what_is_in_both_lanes_comes_once():
    both = [candidate(n, fresh=fresh) for n in (1, 2, 3) for fresh in (False, True)]
    assert sorted(numbers(in_line(both, fresh_first=True))) == [1, 2, 3]
