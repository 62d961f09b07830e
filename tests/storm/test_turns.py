"""Turns as they are given from PostgreSQL: once each, on any coordinator."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from uuid import UUID

import pytest
from headway.agents.identity import new_task_id
from headway.coordinator.admission_limits import Declared
from headway.coordinator.admission_turns import (
    RECOVERIES_AT_ONCE,
    RECOVERIES_PER_S,
    RECOVERY_JITTER,
    Turns,
)
from headway.coordinator.errors import Refusal
from headway.coordinator.pacing import Ask
from headway.coordinator.store import Store
from headway.sagas import Saga

RATE = 20.0
SAGA = Saga("s").step("a", "shop.a", read_only=True)
AT_WORK = {"status": "scheduled", "attempt": 1, "actions": 1, "scheduled_at": 1, "dispatched_at": 1}
STATE = json.dumps({"reason": "", "incident": "", "cause": "", "steps": {"a": AT_WORK}}).encode()


@pytest.fixture
async def store(postgres_url):
    store = Store(postgres_url)
    await store.open()
    await store.fetch("register_saga", "s", 1, "digest", SAGA.define().body, 0)
    yield store
    await store.close()


async def tasks_in(store, count):
    """Tasks whose one step is with its agent."""
    ids = [new_task_id() for _ in range(count)]
    async with store._service._connection() as connection:
        await connection.raw.executemany(
            "INSERT INTO headway.tasks (id, saga, saga_version, version, status, created_at,"
            " updated_at, input_digest, input, attributes, state, waits, due_at) VALUES"
            " ($1, 's', 1, 2, 'running', now(), now(), '', '{}', '{}', $2, false, now())",
            [(each, STATE) for each in ids],
        )
    return ids


async def turns_of(store):
    declared = Declared(store)
    await declared.begin()
    return Turns(store, declared, time.monotonic, random.Random(1))


def ask(task, asked="0/1/w"):
    return Ask(task, "a", "action", 1, 0, asked)


async def test_two_coordinators_give_turns_from_one_bucket(store):
    await store.fetch("set_limit", "agent", "shop", RATE, 3, None, "ada")
    tasks = await tasks_in(store, 60)
    both = [await turns_of(store), await turns_of(store)]
    began = time.monotonic()
    waits = await asyncio.gather(
        *(
            turns.take("shop", ask(task), recovery=True)
            for turns, task in zip(itertools.cycle(both), tasks, strict=False)
        )
    )
    took_ms = (time.monotonic() - began) * 1_000
    assert all(wait.paced and not wait.again for wait in waits)
    last_ms = max(wait.ms for wait in waits)
    assert 58 / RATE * 1_000 - took_ms <= last_ms <= 60 / RATE * 1_000


async def test_a_question_whose_answer_was_lost_gets_the_same_turn_from_any_coordinator(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    first, second, third = await tasks_in(store, 3)
    one, other = await turns_of(store), await turns_of(store)
    await one.take("shop", ask(first), recovery=True)
    given = await one.take("shop", ask(second), recovery=True)
    for turns in (other, one, other):
        again = await turns.take("shop", ask(second), recovery=True)
        assert again.ms <= given.ms
    assert (await one.take("shop", ask(third), recovery=True)).ms <= 2_000


async def test_questions_for_one_command_at_the_same_time_take_one_turn_each_delivery(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    before, task = await tasks_in(store, 2)
    turns = await turns_of(store)
    await turns.take("shop", ask(before), recovery=True)
    waits = await asyncio.gather(
        *(turns.take("shop", ask(task), recovery=True) for _ in range(5)),
        turns.take("shop", ask(task, "0/2/v"), recovery=True),
    )
    assert all(wait.ms <= 1_000 for wait in waits[:5])
    assert 1_000 < waits[-1].ms <= 2_000


async def test_a_clock_of_postgresql_that_is_put_back_keeps_nobody_waiting(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    first, second = await tasks_in(store, 2)
    turns = await turns_of(store)
    await turns.take("shop", ask(first), recovery=True)
    async with store._service._connection() as connection:
        hour_us = 3_600_000_000
        await connection.raw.execute(
            "UPDATE headway.buckets SET full_us = full_us + $1, said_us = said_us + $1", hour_us
        )
    assert (await turns.take("shop", ask(second), recovery=True)).ms <= 1_000


async def test_a_command_whose_successor_waits_is_refused(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    [task] = await tasks_in(store, 1)
    turns = await turns_of(store)
    row = [[each] for each in (task, "a", "action", 2, 0, "shop", "x", b'["agent/shop"]', 4)]
    await store.fetch("queue_commands", *row)
    with pytest.raises(Refusal, match="a newer command of this step was given out"):
        await turns.take("shop", ask(task), recovery=True)


async def test_nobody_gets_a_turn_for_a_task_that_does_not_exist(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    turns = await turns_of(store)
    with pytest.raises(Refusal, match="there is no such task"):
        await turns.take("shop", ask(UUID(int=7)), recovery=True)


async def test_a_few_recoveries_wait_for_nothing_and_many_are_spread(store):
    now = 1_000.0
    declared = Declared(store)
    turns = Turns(store, declared, lambda: now, random.Random(1))
    waits = [await turns.take("shop", ask(UUID(int=n)), recovery=True) for n in range(1_000)]
    free = sum(wait.ms == 0 for wait in waits)
    assert RECOVERIES_AT_ONCE * 0.4 <= free <= RECOVERIES_AT_ONCE
    ideal_ms = (1_000 - free) / RECOVERIES_PER_S * 1_000
    assert 0.95 * ideal_ms <= max(wait.ms for wait in waits) <= ideal_ms * (1.1 + RECOVERY_JITTER)
    assert (await turns.take("other", ask(UUID(int=1)), recovery=True)).ms == 0
    assert (await turns.take("shop", ask(UUID(int=1)), recovery=False)).ms == 0


async def test_a_recovery_that_is_asked_for_again_has_the_same_turn(store):
    now = 1_000.0
    turns = Turns(store, Declared(store), lambda: now, random.Random(1))
    waits = [await turns.take("shop", ask(UUID(int=n)), recovery=True) for n in range(400)]
    assert waits[-1].ms > 0
    assert await turns.take("shop", ask(UUID(int=399)), recovery=True) == waits[-1]
    now += waits[-1].ms / 1_000
    assert (await turns.take("shop", ask(UUID(int=399)), recovery=True)).ms == 0


async def test_what_is_not_outstanding_has_no_turn(store):
    await store.fetch("set_limit", "agent", "shop", 1.0, 1, None, "ada")
    [task] = await tasks_in(store, 1)
    turns = await turns_of(store)
    later = ask(task)._replace(attempt=2)
    for recovery in (True, False):
        with pytest.raises(Refusal, match="this attempt is not outstanding any more"):
            await turns.take("shop", later, recovery=recovery)


async def test_no_turn_is_given_at_a_rate_after_its_bucket_was_eased(store, monkeypatch):
    """Or whoever comes next waits as if that rate held still."""
    await store.fetch("set_limit", "agent", "shop", 1 / 3600, 1, None, "ann")
    declared = Declared(store)
    await declared.begin()
    turns = Turns(store, declared, time.monotonic, random.Random(1))
    first, second = await tasks_in(store, 2)
    fetch, reached, go_on = store.fetch, asyncio.Event(), asyncio.Event()

    async def held(name, *arguments):
        if name == "bucket_levels":
            reached.set()
            await go_on.wait()
        return await fetch(name, *arguments)

    monkeypatch.setattr(store, "fetch", held)
    asked = asyncio.create_task(turns.take("shop", ask(first), recovery=False))
    await reached.wait()
    await fetch("set_limit", "agent", "shop", RATE, 5, None, "ann")
    declared._read_at = float("-inf")
    refreshed = asyncio.create_task(declared.refresh())
    await asyncio.wait({refreshed}, timeout=0.3)  # that it waits is as good
    go_on.set()
    await asyncio.gather(asked, refreshed)
    assert (await turns.take("shop", ask(second), recovery=False)).ms < 1_000
