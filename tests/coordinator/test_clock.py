"""Coordinators go by PostgreSQL's clock, whatever their machines' clocks show."""

from __future__ import annotations

import time

import pytest
from harness.coordination import client_of, coordinators, registered
from harness.shop import linear
from headway.coordinator.clock import READING_MAX_NS, Clock, now_ms

HOUR_MS = 3_600_000
NEAR_MS = 200
AROUND_MS = 10_000


async def test_until_it_is_read_it_shows_the_machines_time():
    assert abs(Clock().now_ms() - now_ms()) <= NEAR_MS


async def test_it_shows_what_was_read_and_goes_on_from_there(monkeypatch):
    clock = Clock()
    await clock.read(_answer(1_000_000))
    assert 0 <= clock.now_ms() - 1_000_000 <= NEAR_MS
    real = time.monotonic_ns
    monkeypatch.setattr(time, "monotonic_ns", lambda: real() + HOUR_MS * 1_000_000)
    assert 0 <= clock.now_ms() - 1_000_000 - HOUR_MS <= NEAR_MS


async def test_a_jump_of_the_machines_clock_is_not_seen(monkeypatch):
    clock = Clock()
    before = clock.now_ms()
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + HOUR_MS * 1_000_000)
    assert 0 <= clock.now_ms() - before <= NEAR_MS


async def test_a_reading_that_took_long_counts_only_if_there_is_no_better_one(monkeypatch):
    clock, real, late = Clock(), time.monotonic_ns, [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: real() + late[0])

    async def slow(shown_ms):
        late[0] += 2 * READING_MAX_NS
        return shown_ms

    await clock.read(lambda: slow(1_000_000))
    assert 0 <= clock.now_ms() - 1_000_000 - READING_MAX_NS // 1_000_000 <= NEAR_MS
    before = clock.now_ms()
    await clock.read(lambda: slow(9_000_000))
    assert clock.now_ms() - before <= 2 * READING_MAX_NS // 1_000_000 + NEAR_MS


async def test_what_postgresql_does_not_answer_changes_nothing():
    clock = Clock()

    async def away():
        raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        await clock.read(away)
    assert abs(clock.now_ms() - now_ms()) <= NEAR_MS


async def test_a_coordinator_whose_machine_is_an_hour_off_stores_postgresqls_time(
    nats_url, postgres_url, monkeypatch
):
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + HOUR_MS * 1_000_000)
    async with coordinators(nats_url, postgres_url), client_of(nats_url) as client:
        await registered(client, linear())
        task = (await client.submit("linear", {})).task
        view = await client.status(task)
    assert abs(view.created_at.timestamp() * 1000 - real() / 1e6) < AROUND_MS


def _answer(shown_ms):
    async def ask():
        return shown_ms

    return ask
