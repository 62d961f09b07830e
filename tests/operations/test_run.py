"""`run`: a task is handed in and its end is answered in one request."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from harness.coordination import coordinators
from headway.agents import Client
from headway.agents.errors import Conflict, InvalidInput, NotFound
from headway.agents.identity import new_task_id
from headway.agents.views import WAIT_MAX_S, TaskView


async def run(client: Client, **request: Any) -> TaskView:
    """The answer to one request, as it is."""
    return await client.ask("run", orjson.dumps({"saga": "plain"} | request), TaskView)


async def test_the_answer_is_the_task_once_it_has_ended(client, world):
    view = await run(client, input={"b": "reject"}, attributes={"customer": "c-19"})
    assert (view.status, view.attributes) == ("compensated", {"customer": "c-19"})
    assert world.office.log[view.task] == ["a", "b", "undo a"]
    assert view == await client.result(view.task)


async def test_what_is_not_settled_in_time_is_shown_as_it_is_and_asked_for_again(client, world):
    task = new_task_id()
    request = {"task": task, "input": {"b": "hold"}}
    view = await run(client, **request, wait_s=0.2)
    assert (view.task, view.status) == (task, "running")
    view = await run(client, **request, wait_s=0.0)
    assert view.status == "running"
    world.office.held[task].set()
    assert (await run(client, **request)).status == "succeeded"
    assert (await run(client, **request, wait_s=0.0)).status == "succeeded"
    assert world.office.log[task] == ["a", "b"]


async def test_a_task_that_waits_for_a_person_is_settled(client):
    view = await run(client, input={"a": "reject", "undo a": "reject"}, saga="agreed", wait_s=0.3)
    assert view.settled


async def test_it_does_not_matter_which_coordinator_ends_it(client, world):
    async with coordinators(world.nats.url, world.postgres_url, 2):
        for _ in range(40):
            view = await client.run("plain", {})
            assert view.status == "succeeded"


async def test_what_submit_refuses_is_refused_alike(client):
    with pytest.raises(NotFound, match="nothing"):
        await run(client, saga="nothing")
    with pytest.raises(InvalidInput, match="wait_s"):
        await run(client, wait_s=WAIT_MAX_S + 1)
    task = (await client.run("plain", {"a": {"gives": 1}})).task
    with pytest.raises(Conflict):
        await run(client, task=task, input={"a": {"gives": 2}})


async def test_role_submit_is_shown_no_task_of_others(world, client, making):
    carl, dora = [
        Client(client.connection, token=await making.create(name, "submit"))
        for name in ("carl", "dora")
    ]
    viewer = Client(client.connection, token=await making.create("vera", "view"))
    view = await carl.run("plain", {"a": {"gives": "a secret"}})
    assert view.steps[0].result == "a secret"
    request = {"task": view.task, "input": {"a": {"gives": "a secret"}}}
    assert await run(carl, **request) == view
    with pytest.raises(Conflict) as refused:
        await run(dora, **request)
    assert str(refused.value) == f"task {view.task} exists and is not yours; take a new id"
    with pytest.raises(Exception, match="'run' needs 'submit'"):
        await viewer.run("plain", {})
