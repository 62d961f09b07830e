"""Tasks with encrypted payloads: the servers hold none of the text; who has the keys sees all."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import orjson
import pytest
import pytest_asyncio
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.system import System
from headway.agents import (
    Agent,
    Client,
    Context,
    HandOff,
    Keyring,
    Metered,
    Next,
    Reject,
    ToolFailed,
    tool,
)
from headway.agents.codec import is_sealed
from headway.agents.errors import InvalidInput
from headway.agents.manifest import Manifest
from headway.coordinator.app import Coordinator
from headway.sagas import Retry, Saga
from pydantic import BaseModel

ONE, TWO = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
MARKER = "a-text-that-nobody-else-may-read"
OPEN = "a-text-that-anybody-may-read"
LARGE = 300_000  # bytes, which travel by reference

KEYS = Keyring.parse(f"one:{ONE}")
NEWER = Keyring.parse(f"two:{TWO},one:{ONE}")


class Ticket(BaseModel):
    text: str


@tool(recovery="natural", model=True)
async def think(question: str) -> Metered[str]:
    return Metered(f"{MARKER}: {question}", input_tokens=3, output_tokens=1)


@tool(recovery="natural")
async def fetch(name: str) -> str:
    return MARKER * (LARGE // len(MARKER))


@tool(recovery="natural")
async def fail(why: str) -> str:
    raise ValueError(f"{MARKER} {why}")


def desk() -> Agent:
    """Uses whatever puts a payload somewhere."""
    agent = Agent("desk")

    @agent.action("work", tools=[think, fetch, fail])
    async def work(ctx: Context, ticket: Ticket) -> Any:
        answer = await ctx.call(think, ticket.text)
        await ctx.checkpoint({"answer": answer})
        await ctx.note(f"noted: {answer}")
        await ctx.heartbeat({"at": answer})
        large = await ctx.call(fetch, MARKER)
        with pytest.raises(ToolFailed, match=MARKER):
            await ctx.call(fail, MARKER)
        assert ctx.input == {"text": MARKER}
        return HandOff(
            {"answer": answer, "large": large},
            Next("desk.file", name="filing", input=[answer], read_only=True),
        )

    @agent.action("file")
    async def file(ctx: Context, answers: list[str]) -> dict[str, str]:
        assert MARKER in answers[0]
        assert len(ctx.results["work"]["large"]) > LARGE // 2
        assert ctx.results["told"] == {"secret": MARKER}
        return {"filed": answers[0]}

    @agent.action("look")
    async def look(ctx: Context, ticket: Ticket) -> dict[str, str]:
        return {"answer": ticket.text}

    @agent.action("refuse")
    async def refuse(ctx: Context, ticket: Ticket) -> None:
        raise Reject(f"{ticket.text} cannot be")

    @agent.compensation("undo")
    async def undo(ctx: Context, ticket: Ticket, result: Any) -> None:
        assert ticket.text == MARKER
        assert result is None or MARKER in result["answer"]

    return agent


ONCE = Retry(maximum_attempts=1)
WORK = (
    Saga("work")
    .wait("told")
    .step("work", "desk.work", compensate="desk.undo", after="told", retry=ONCE)
)
REFUSED = (
    Saga("refused")
    .step("first", "desk.look", compensate="desk.undo", retry=ONCE)
    .step("refuse", "desk.refuse", compensate="desk.undo", after="first", retry=ONCE)
)


@pytest_asyncio.fixture(loop_scope="module")
async def keyed(system: System) -> AsyncIterator[Client]:
    async with await Client.connect(system.nats.url, keyring=KEYS) as client:
        yield client


async def test_neither_postgresql_nor_jetstream_holds_the_text_of_an_encrypted_task(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    await registered(keyed, WORK)
    await registered(keyed, REFUSED)
    async with working(system.nats.url, desk(), keyring=KEYS):
        task = (await keyed.submit("work", {"text": MARKER})).task
        await keyed.signal(task, "told", {"secret": MARKER})
        view = await keyed.result(task, timeout=30)
        assert (view.status, view.reason) == ("succeeded", "")
        refused = await keyed.run("refused", {"text": MARKER}, timeout=30)
        assert refused.status == "compensated"
        published = await keyed.publish("refused", {"text": MARKER, "more": MARKER * 10_000})
        assert (await keyed.result(published, timeout=30)).status == "compensated"
        held = await held_by(system)
    for place, body in held.items():
        for form in (MARKER.encode(), base64.b64encode(MARKER.encode())[2:-4]):
            assert form not in body, place
    assert sum(map(len, held.values())) > 4 * LARGE

    assert view.encrypted
    assert MARKER in view.results["filing"]["filed"]
    assert f"{MARKER} cannot be" in refused.reason
    entries = [entry async for entry in keyed.journal(task, "work")]
    shown = {entry.kind: orjson.dumps(entry.data).decode() for entry in entries}
    assert {"intent", "result", "failure", "checkpoint", "note"} <= set(shown)
    assert all(MARKER in shown[kind] for kind in ("intent", "failure", "note"))
    without = await system.client.status(task)
    assert is_sealed(without.results["filing"])
    assert MARKER not in (await system.client.status(refused.task)).reason


async def test_an_agent_without_the_keys_parks_the_task_and_goes_on_once_it_has_them(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    await registered(keyed, WORK)
    async with working(system.nats.url, desk()):
        task = (await keyed.submit("work", {"text": MARKER})).task
        await keyed.signal(task, "told", {"secret": MARKER})
        view = await keyed.result(task, timeout=20)
    assert view.status == "parked"
    assert "the task is encrypted, and this agent has no HEADWAY_PAYLOAD_KEYS" in view.reason
    async with working(system.nats.url, desk(), keyring=Keyring.parse(f"two:{TWO}")):
        await keyed.resume(task)
        view = await keyed.result(task, timeout=20)
    assert view.status == "parked"
    assert "a value is encrypted with key 'one', which is not here" in view.reason
    async with working(system.nats.url, desk(), keyring=NEWER):
        await keyed.resume(task)
        assert (await keyed.result(task, timeout=20)).status == "succeeded"
    async with await Client.connect(system.nats.url, keyring=NEWER) as newer:
        results = (await newer.status(task)).results
    assert MARKER in results["filing"]["filed"]


async def test_a_call_that_a_person_settles_is_read_by_the_agent_as_any_other(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    @tool(recovery="manual")
    async def pay(text: str) -> str:
        raise ConnectionError("the line went dead")

    agent = Agent("desk")

    @agent.action("pay", tools=[pay])
    async def act(ctx: Context, text: str) -> str:
        return await ctx.call(pay, text)

    await registered(keyed, Saga("pay").step("pay", "desk.pay", pivot=True, retry=ONCE))
    async with working(system.nats.url, agent, keyring=KEYS):
        task = (await keyed.submit("pay", MARKER)).task
        assert (await keyed.result(task, timeout=20)).status == "parked"
        waiting = [each for each in (await keyed.parked()).waiting if each.task == task]
        [call] = [each for each in waiting if each.kind == "unsettled"]
        assert call.details == {"text": MARKER}
        with pytest.raises(InvalidInput, match="result: the task is encrypted, and so must this"):
            await system.client.settle_call(task, "pay", call.key, "happened", "paid")
        await keyed.settle_call(task, "pay", call.key, "happened", "paid", by="ann")
        await keyed.resume(task)
        view = await keyed.result(task, timeout=20)
    assert (view.status, view.results) == ("succeeded", {"pay": "paid"})


async def test_an_input_moved_to_another_task_is_not_read(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    """By somebody who can write into the database or the stream."""
    await registered(keyed, Saga("refuse").step("refuse", "desk.refuse", pivot=True, retry=ONCE))
    [one] = [await keyed.submit("refuse", {"text": MARKER})]
    [row] = await system.fetch("SELECT input FROM headway.tasks WHERE id = $1", one.task)
    moved = await system.client.submit("refuse", orjson.loads(row["input"]))
    async with working(system.nats.url, desk(), keyring=KEYS):
        view = await keyed.result(moved.task, timeout=20)
    assert view.status == "parked"
    assert "it was changed, or is another task's" in view.reason


async def test_what_coordinators_would_have_to_read_is_refused_at_submission(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    sagas = {
        "its input schema": Saga("a", input=Ticket).step("s", "desk.file", read_only=True),
        "a step's `when`": Saga("b").step("s", "desk.file", read_only=True, when="input.x > 1"),
        "a child's input": Saga("c").child("s", "a"),
    }
    for why, saga in sagas.items():
        await registered(keyed, saga)
        with pytest.raises(InvalidInput) as refused:
            await keyed.submit(saga.define().name, {"text": MARKER})
        assert str(refused.value) == (
            f"the input is encrypted, but for {why} coordinators must read the payloads of saga "
            f"{saga.define().name!r}: submit it in clear, or do without that"
        )
    await registered(keyed, WORK)
    with pytest.raises(InvalidInput, match="for the manifest's acceptance coordinators must read"):
        await keyed.submit("work", 1, manifest=Manifest(acceptance={"type": "object"}))
    made = "SELECT id FROM headway.tasks WHERE saga IN ('a', 'b', 'c') OR manifest IS NOT NULL"
    assert await system.fetch(made) == []


async def test_no_payload_of_an_encrypted_task_is_taken_in_clear_nor_the_reverse(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    await registered(keyed, WORK)
    task = (await keyed.submit("work", {"text": MARKER})).task
    with pytest.raises(InvalidInput) as refused:
        await system.client.signal(task, "told", {"secret": 1})
    assert str(refused.value) == "payload: the task is encrypted, and so must this be"
    clear = (await system.client.submit("work", {"text": "anything"})).task
    with pytest.raises(InvalidInput) as reverse:
        await system.client.signal(clear, "told", {"$sealed": "one.AAAA"})
    assert str(reverse.value) == "payload: the task is not encrypted, and so must this be"
    await keyed.signal(clear, "told", {"secret": 1})  # in clear, as its task is


async def test_submitting_again_is_harmless_and_too_large_when_encrypted_is_told_before(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    await registered(keyed, WORK)
    receipt = await keyed.submit("work", {"text": MARKER})
    again = await keyed.submit("work", {"text": MARKER}, task=receipt.task)
    assert (receipt.created, again.created) == (True, False)
    with pytest.raises(InvalidInput, match="bytes when encrypted, more than 1048576"):
        await keyed.submit("work", "x" * 900_000)


async def test_clear_tasks_stay_clear_for_an_agent_that_has_keys(
    system: System, running: list[Coordinator], keyed: Client
) -> None:
    conditional = Saga("when").step("file", "desk.echo", read_only=True)
    conditional.step("more", "desk.echo", read_only=True, after="file", when="results.file == 7")
    agent = Agent("desk")

    @agent.action("echo")
    async def echo(ctx: Context, given: int) -> int:
        return given

    await registered(keyed, conditional)
    async with working(system.nats.url, agent, keyring=KEYS):
        view = await system.client.run("when", 7, timeout=20)
    assert view.results == {"file": 7, "more": 7}


async def held_by(system: System) -> dict[str, bytes]:
    """Everything that PostgreSQL and JetStream hold, by where."""
    held: dict[str, bytes] = {}
    connection = await asyncpg.connect(system.postgres_url)
    try:
        for schema in ("headway", "public"):
            names = await connection.fetch(
                "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema
            )
            for row in names:
                table = f"{schema}.{row['tablename']}"
                rows = await connection.fetch(f"SELECT to_json(t)::text AS row FROM {table} AS t")
                held[table] = "\n".join(each["row"] for each in rows).encode()
    finally:
        await connection.close()
    return held | await asyncio.to_thread(files_in, Path(system.nats.server.store))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def test_the_search_would_find_a_text_that_is_not_encrypted(
    system: System, running: list[Coordinator]
) -> None:
    await system.client.submit("linear", {"text": OPEN})
    await system.client.publish("none", {"text": OPEN})

    async def found() -> bool:
        held = await held_by(system)
        places = [place for place, body in held.items() if OPEN.encode() in body]
        return "headway.tasks" in places and any("/" in place for place in places)

    await eventually(found, 10)
