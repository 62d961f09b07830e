"""Texts that would be statements, subjects, headers or paths elsewhere: here they stay texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from command_shell import Shell
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.requests import TASK, sample, with_text
from harness.system import System
from headway.agents import Agent, Context, Reject
from headway.agents.api import ERROR, ERROR_CODE
from headway.agents.errors import DeclarationError, HeadwayError, InvalidInput
from headway.agents.headers import parse_headers
from headway.agents.messages import Event, encode
from headway.agents.subjects import agent_subject, api_subject, event_subject
from headway.coordinator.app import Coordinator
from headway.sagas import Retry, Saga
from headway.sagas.errors import SagaError

STATEMENTS = [
    "'; DROP TABLE headway.tasks CASCADE; --",
    "x' OR '1'='1",
    '"; SELECT pg_sleep(30); --',
    "$1); DELETE FROM headway.sagas; --",
    "\\'; TRUNCATE headway.task_events; --",
    "%' UNION SELECT digest FROM headway.tokens; --",
    "{x}') ; COPY headway.tasks TO PROGRAM 'id'; --",
]
NAMES = [
    "a.b",
    "a b",
    "a*",
    ">",
    "*",
    "a\nb",
    "a\r\nPUB x 0\r\n",
    "a\0",
    "",
    "é",
    "a" * 65,
    "../a",
    "/a",
]


async def test_no_text_of_any_request_is_a_statement(
    system: System, running: list[Coordinator]
) -> None:
    """Every text field of every operation, of people and of agents, one at a time."""
    await system.client.submit("linear", {"number": 1})
    before = await tables(system)
    offer, asked = running[0]._api._offer, 0
    wire = system.client.connection.wire
    everything = [
        *((api_subject(name), serve) for name, serve in offer.people.items()),
        *((agent_subject("shop", name), serve) for name, serve in offer.agents.items()),
    ]
    for number, (subject, serve) in enumerate(everything):
        for place, request in enumerate(with_text(sample(serve.request), "TEXT")):
            text = STATEMENTS[(number + place) % len(STATEMENTS)]
            body = json.dumps(request).replace('"TEXT"', json.dumps(text)).encode()
            answer = await wire.request(subject, body, 5)
            code = int((answer.headers or {}).get(ERROR_CODE, "200"))
            assert code < 500, (subject, body, answer.data)
            asked += 1
    assert asked > 150
    assert await tables(system) == before
    assert (await system.client.health()).status == "ok"


async def test_texts_of_events_and_tasks_are_kept_as_they_are(
    system: System, running: list[Coordinator]
) -> None:
    agent = Agent("shop")

    @agent.action("a")
    async def act(ctx: Context, said: str) -> str:
        raise Reject(said, kind=said)

    await registered(
        system.client,
        Saga("one").step("a", "shop.a", read_only=True, retry=Retry(maximum_attempts=1)),
    )
    async with working(system.nats.url, agent):
        for said in STATEMENTS:
            receipt = await system.client.submit("one", said, attributes={said: said})
            view = await system.client.result(receipt.task, timeout=10)
            assert view.status == "compensated"
            assert said in view.reason
            assert view.attributes == {said: said}
            [found] = (await system.client.list(attributes={said: said})).tasks
            assert found.task == receipt.task
    before = await letters(system)
    events = [{"step": said, "error": {"type": said, "message": said}} for said in STATEMENTS]
    for each in events:
        event = Event("x", TASK, each["step"], "action", 1, 0, "headway.attempt.failed", "/x")
        body = orjson.loads(encode(event)) | {"data": {"error": each["error"]}}
        subject = event_subject("shop", TASK)
        [error] = await system.client.connection.wire.store_all([(subject, orjson.dumps(body))])
        assert error is None

    async def refused() -> bool:
        return await letters(system) >= before + len(events)

    await eventually(refused, 10)
    assert (await tables(system))["headway.tasks"]


# Subjects


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_stand_in_a_subject_is_no_name_of_anything(name: str) -> None:
    with pytest.raises(DeclarationError):
        Agent(name)
    with pytest.raises(DeclarationError):
        Agent("a").action(name)
    for saga in (
        lambda: Saga(name).step("s", "a.b", read_only=True).define(),
        lambda: Saga("x").step(name, "a.b", read_only=True).define(),
        lambda: Saga("x").step("s", f"{name}.b", read_only=True).define(),
        lambda: Saga("x").step("s", f"a.{name}", read_only=True).define(),
    ):
        with pytest.raises(SagaError):
            saga()


async def test_what_cannot_stand_in_a_subject_is_refused_before_it_is_one(
    system: System, running: list[Coordinator]
) -> None:
    """By clients, and by coordinators for whoever has no client of ours."""
    wire, sagas = system.client.connection.wire, "SELECT name, version FROM headway.sagas"
    before = await system.fetch(sagas)
    for name in NAMES:
        with pytest.raises(InvalidInput):
            await system.client.publish(name, 1)
        with pytest.raises(HeadwayError):
            await system.client.documents.get(name, "x")
        for body in (
            {"name": name, "version": 1, "steps": [{"name": "s", "action": "a.b"}]},
            {"name": "x", "version": 1, "steps": [{"name": name, "action": "a.b"}]},
            {"name": "x", "version": 1, "steps": [{"name": "s", "action": f"{name}.b"}]},
            {"name": "x", "version": 1, "steps": [{"name": "s", "action": f"a.{name}"}]},
        ):
            answer = await wire.request(api_subject("saga.register"), orjson.dumps(body), 5)
            assert (answer.headers or {}).get(ERROR_CODE) == "422", body
    for subject in ("hw.agents..claim", "hw.agents.a.b.claim", "hw.agents.a", "hw.api.get.x"):
        with pytest.raises(Exception, match=r"no responders|nobody|subject"):
            await wire.request(subject, b"{}", 2)
    assert await system.fetch(sagas) == before


# Headers


@pytest.mark.parametrize(
    ("block", "token"),
    [
        (b"NATS/1.0\r\nHeadway-Token: a\r\nHeadway-Token: b\r\n\r\n", "a"),
        (b"NATS/1.0\r\nheadway-token: a\r\nHEADWAY-TOKEN: b\r\n\r\n", "a"),
        (b"NATS/1.0\r\nX: y\nHeadway-Token: a\r\n\r\n", None),
        (b"NATS/1.0\r\nX: y\rHeadway-Token: a\r\n\r\n", None),
        (b"NATS/1.0 503 Headway-Token: a\r\n\r\n", None),
        (b"NATS/1.0\r\nHeadway-Token\r\n: a\r\n\r\n", None),
        (b"\xff\xfe\r\nHeadway-Token: \xff\r\n\r\n", "\N{REPLACEMENT CHARACTER}"),
        (b"", None),
    ],
)
def test_a_header_is_what_stands_on_a_line_of_its_own_and_the_first_counts(
    block: bytes, token: str | None
) -> None:
    assert parse_headers(block).get("headway-token") == token


async def test_no_text_of_a_request_makes_a_header_of_the_answer(
    system: System, running: list[Coordinator]
) -> None:
    wire = system.client.connection.wire
    evil = f"x\r\n{ERROR_CODE}: 200\r\nX-Evil: 1\r\n\r\n{{}}"
    requests: list[tuple[str, dict[str, Any]]] = [
        ("submit", {"saga": evil, "input": 1}),
        ("saga.get", {"name": evil}),
        ("document.get", {"collection": "none", "key": evil}),
        ("journal.read", {"task": TASK, "step": evil, "phase": "action"}),
        ("list", {"cursor": evil}),
        ("saga.register", {"name": evil, "version": 1, "steps": []}),
        ("cancel", {"task": TASK, "by": evil, "reason": evil}),
    ]
    for operation, request in requests:
        answer = await wire.request(api_subject(operation), orjson.dumps(request), 5)
        headers = answer.headers or {}
        assert set(headers) <= {ERROR, ERROR_CODE}, operation
        assert headers.get(ERROR_CODE, "404") in ("404", "422", "409"), operation
        assert orjson.loads(answer.data), operation


# Paths


def test_a_file_that_is_none_is_refused_in_words_and_nothing_is_written(tmp_path: Path) -> None:
    shell = Shell(tmp_path, {"HEADWAY_NATS_URL": "nats://127.0.0.1:9"})
    (tmp_path / "folder").mkdir()
    for name in ("../../../../etc/shadow/x", "folder"):
        ended = shell.run_here("submit", "linear", "--file", name)
        assert ended.code == 2
        assert "Traceback" not in ended.err
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "precious").write_text("mine")
    ended = shell.run_here("up", "--reset", "--data", "other/../other")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    assert (tmp_path / "other" / "precious").read_text() == "mine"


async def tables(system: System) -> dict[str, int]:
    """How many rows each of the tables that matter has; it fails if one is gone."""
    names = ("headway.tasks", "headway.sagas", "headway.tokens", "headway.journals")
    found = {}
    for name in names:
        [row] = await system.fetch(f"SELECT count(*) FROM {name}")
        found[name] = row["count"]
    return found


async def letters(system: System) -> int:
    """How many messages were put aside."""
    return len([letter for letter in await system.dead_letters() if "size" in letter])
