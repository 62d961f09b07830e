"""Tasks found by the agents of their sagas, sagas with counts of their tasks, and what instances of
agents say of themselves."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any
from uuid import UUID

import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.office import desk
from headway.agents import Agent, Client, Context, tool
from headway.agents.catalogue_views import AgentView
from headway.agents.identity import new_task_id
from headway.agents.instances import Instances, config_digest
from headway.coordinator.census import Census
from headway.sagas import Saga


async def listed(client: Client, **filters: Any) -> set[UUID]:
    found: set[UUID] = set()
    cursor = None
    while True:
        page = await client.list(limit=500, cursor=cursor, **filters)
        found |= {row.task for row in page.tasks}
        cursor = page.cursor
        if cursor is None:
            return found


async def test_tasks_are_found_by_an_agent_of_their_saga(world, client):
    talk = (await client.submit("talk", {})).task
    plain = (await client.submit("plain", {})).task
    for task in (talk, plain):
        await world.ended(task)
    assert talk in await listed(client, agent="ann")
    assert plain not in await listed(client, agent="ann")
    assert plain in await listed(client, agent="desk", saga="plain")
    assert await listed(client, agent="desk", saga="talk") == set()
    assert await listed(client, agent="nobody") == set()


async def test_the_version_of_the_saga_counts(client):
    name = f"moving-{new_task_id()}"
    await registered(client, Saga(name, version=1).step("a", "absent.do", read_only=True))
    first = (await client.submit(name, {})).task
    await registered(client, Saga(name, version=2).step("a", "gone.do", read_only=True))
    second = (await client.submit(name, {})).task
    assert await listed(client, agent="absent", saga=name) == {first}
    assert await listed(client, agent="gone", saga=name, status=["running"]) == {second}
    for task in (first, second):
        await client.cancel(task)


async def test_sagas_are_listed_with_how_many_tasks_have_which_status(world, client):
    name = f"counted-{new_task_id()}"
    await registered(client, desk(Saga(name), "a"))
    for order in ({}, {}, {"a": "reject"}):
        await world.ended((await client.submit(name, order)).task)
    held = await world.held(name)

    async def counted() -> bool:
        [saga] = [each for each in (await client.sagas()).sagas if each.name == name]
        return saga.counts == {"succeeded": 2, "compensated": 1, "running": 1}

    await eventually(counted)
    sagas = await client.sagas()
    assert sagas.counted_at is not None
    assert datetime.now(UTC) - sagas.counted_at < timedelta(seconds=60)
    assert [each.counts for each in sagas.sagas if each.name == "late"] == [{}]
    await client.cancel(held)


class SlowStore:
    """Counting takes two seconds of a clock that only moves when something is counted."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.asked = 0

    async def fetch(self, _name: str) -> list[dict[str, Any]]:
        self.asked += 1
        self.now += 2.0
        return [{"saga": "s", "saga_version": 1, "status": "running", "tasks": self.asked}]


async def test_counting_takes_a_small_part_of_the_time():
    store = SlowStore()
    census = Census(store, lambda: 0, lambda: store.now)
    assert [(await census.look()).of("s", 1) for _ in range(3)] == 3 * [{"running": 1}]
    store.now += 40.0
    assert (await census.look()).of("s", 1) == {"running": 1}
    store.now += 1.0
    assert (await census.look()).of("s", 1) == {"running": 2}
    assert (await census.look()).of("none", 1) == {}


@pytest.mark.timed
async def test_counting_and_listing_are_quick_with_a_hundred_thousand_tasks(world, client):
    """What this takes is printed; the bounds are wide, for a busy machine."""
    await world.fetch(
        "INSERT INTO headway.tasks SELECT (repeat('0', 8) || substr(md5(n::text), 9))::uuid, saga, "
        "saga_version, CASE n % 50 WHEN 0 THEN 'parked' WHEN 1 THEN 'compensated' ELSE 'succeeded' "
        "END, version, NULL, created_at, updated_at, input_digest, input, attributes, state, "
        "manifest, parent, n % 50 = 0, owner, priority "
        "FROM (SELECT * FROM headway.tasks WHERE status = 'succeeded' LIMIT 1) AS one, "
        "generate_series(1, 100000) AS n"
    )
    await world.fetch("ANALYZE headway.tasks")
    taken = {}
    for what, ask in {
        "saga.list": client.sagas,
        "saga.list again": client.sagas,
        "list": lambda: client.list(limit=50),
        "list by agent": lambda: client.list(agent="desk", limit=50),
        "list by a rare agent": lambda: client.list(agent="ann", limit=50),
        "list parked by agent": lambda: client.list(agent="desk", status=["parked"], limit=50),
    }.items():
        began = time.monotonic()
        await ask()
        taken[what] = time.monotonic() - began
    print({what: f"{1_000 * seconds:.0f} ms" for what, seconds in taken.items()})
    assert max(taken.values()) < 2.0, taken
    await world.fetch("DELETE FROM headway.tasks WHERE id < '00000001-0000-0000-0000-000000000000'")


async def test_instances_tell_what_they_run_on_and_how_they_fare(world, client):
    for order in ({}, {"a": "reject"}):
        await world.ended((await client.submit("plain", order)).task)

    async def told() -> AgentView | None:
        view = next(each for each in (await client.agents()).agents if each.agent == "desk")
        return view if view.failed and view.instances else None

    view = await eventually(told)
    [instance] = view.instances
    assert instance.sdk == f"headway {version('headway')}"
    assert instance.config == config_digest(world.office.agents[0])
    assert datetime.now(UTC) - instance.started_at < timedelta(minutes=10)
    assert (view.ended, view.failed) == (instance.ended, instance.failed)
    assert view.ended > view.failed >= 1


async def test_an_instance_that_tells_nothing_or_nonsense_is_there_all_the_same(client):
    body = (
        b'{"agent":"odd","worker":"w","actions":[],"host":"h","pid":1,"busy":0,"slots":1,'
        b'"stopping":false}'
    )
    for header in (None, "{", '{"ended":-1}', '{"sdk":"' + "x" * 200 + '"}'):
        headers = None if header is None else {"Headway-Instance": header}
        await client.connection.nc.publish("hw.presence.odd", body, headers=headers)
        await client.connection.nc.flush()
        view = next(each for each in (await client.agents()).agents if each.agent == "odd")
        assert (view.instances[0].sdk, view.instances[0].started_at) == ("", None)
    headers = {"Headway-Instance": '{"sdk":"headway-ts 1.0","ended":3,"more":"to come"}'}
    await client.connection.nc.publish("hw.presence.odd", body, headers=headers)
    await client.connection.nc.flush()
    view = next(each for each in (await client.agents()).agents if each.agent == "odd")
    assert (view.instances[0].sdk, view.ended) == ("headway-ts 1.0", 3)


def test_attempts_count_for_a_minute():
    now = 100.0
    instances = Instances(Agent("a"), datetime.now(UTC), lambda: now)
    instances.ended(failed=False)
    now = 130.5
    instances.ended(failed=True)
    assert (instances.look().ended, instances.look().failed) == (2, 1)
    now = 160.0
    assert (instances.look().ended, instances.look().failed) == (1, 1)
    now = 190.0
    assert (instances.look().ended, instances.look().failed) == (0, 0)


def test_a_digest_tells_configurations_apart_and_nothing_else():
    @tool(recovery="natural")
    async def look(number: int) -> int:
        return number

    @tool(recovery="manual", name="look")
    async def look_by_hand(number: int) -> int:
        return number

    def agent(**options: Any) -> Agent:
        made = Agent("a")

        @made.action("do", **options)
        async def do(ctx: Context, order: Any) -> None: ...

        return made

    digests = [config_digest(agent(tools=tools)) for tools in (None, [], [look], [look_by_hand])]
    assert len(set(digests)) == 4
    assert config_digest(agent(tools=[look])) == digests[2]
