"""Numbers on /metrics and JSON lines on standard error, without any collector."""

from __future__ import annotations

import io
import logging
import sys

import httpx
import orjson
import pytest
from harness.coordination import coordinators, registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.cli.logformat import JsonLines
from headway.coordinator.http_metrics import HANDED_ON, _is_of_this_machine
from headway.coordinator.roles import ROLES
from headway.coordinator.token_making import token_making
from starlette.requests import Request


async def test_a_coordinator_that_serves_http_shows_its_numbers_without_any_variable(
    system: System,
):
    face = coordinators(system.nats.url, system.postgres_url, http="127.0.0.1:0")
    async with face as [coordinator], system.working():
        await registered(system.client, linear())
        await system.client.run("linear", {"c": "reject"}, timeout=30)
        async with httpx.AsyncClient(base_url=coordinator._http.address) as client:
            answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = answer.text.splitlines()
    assert 'headway_tasks_submitted_total{headway_saga="linear"} 1' in lines
    assert (
        'headway_tasks_ended_total{headway_saga="linear",headway_status="compensated"} 1' in lines
    )
    assert 'headway_attempts_failures_total{headway_agent="shop",error_type="Ordered"} 1' in lines


def asked_from(client: str, **headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "headers": raw, "client": (client, 1)})


@pytest.mark.parametrize(
    ("host", "here"), [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("x", False)]
)
def test_numbers_are_for_programs_on_this_machine_or_with_a_token(host, here):
    assert _is_of_this_machine(asked_from(host)) is here


@pytest.mark.parametrize(
    ("host", "here"),
    [
        *(("localhost", True), ("localhost:7480", True), ("127.0.0.1:7480", True), ("", True)),
        *(("127.1.2.3", True), ("[::1]:7480", True), ("LOCALHOST", True)),
        *(("evil.example:7480", False), ("127.0.0.1.evil.example", False), ("[::1", False)),
        *(("localhost@evil.example", False), ("10.0.0.7", False), (":7480", False)),
    ],
)
def test_a_page_whose_name_is_made_to_lead_here_is_no_program_on_this_machine(host, here):
    assert _is_of_this_machine(asked_from("127.0.0.1", host=host)) is here


@pytest.mark.parametrize("header", HANDED_ON)
def test_who_comes_by_a_proxy_is_not_on_this_machine(header):
    asked = asked_from("127.0.0.1", host="localhost", **{header.replace("-", "_"): "10.0.0.7"})
    assert not _is_of_this_machine(asked)


async def test_numbers_are_shown_to_tokens_that_see_everybodys_tasks(system: System):
    face = coordinators(system.nats.url, system.postgres_url, http="127.0.0.1:0")
    async with face as [coordinator], token_making(system.postgres_url) as making:
        tokens = {role: await making.create(f"a-{role}", role) for role in ROLES}
        async with httpx.AsyncClient(
            base_url=coordinator._http.address, headers={"Host": "headway.example"}
        ) as client:

            async def asked(token: str) -> httpx.Response:
                return await client.get("/metrics", headers={"Authorization": f"Bearer {token}"})

            async def known() -> bool:
                return (await asked(tokens["operate"])).status_code == 200

            await eventually(known, 2, what="fresh tokens are known")
            assert (await client.get("/metrics")).status_code == 401
            assert (await asked(tokens["view"])).status_code == 200
            refused = await asked(tokens["submit"])
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "token 'a-submit' has role 'submit'; 'metrics' needs 'view' or 'operate'",
    )


async def test_each_change_of_state_is_a_json_line_if_lines_are_wanted(
    system: System, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HEADWAY_LOG_FORMAT", "json")
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("headway")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        async with system.coordinating(), system.working():
            await registered(system.client, linear())
            view = await system.client.run("linear", {"b": "reject"}, timeout=30)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    lines = [orjson.loads(line) for line in stream.getvalue().splitlines()]
    mine = [line for line in lines if line.get("headway.task") == str(view.task)]
    assert [line["message"] for line in mine][:1] == ["task running"]
    assert mine[-1]["message"] == "task compensated"
    [turned] = [line for line in mine if "RecoveryStarted" in line["headway.events"]]
    assert turned["severity"] == "WARN"
    assert "AttemptFailed b Ordered" in turned["headway.events"]
    assert turned["trace_id"] == view.task.hex


def test_an_exception_and_the_attempt_that_it_came_from_are_in_the_line():
    try:
        raise ValueError("no luck")
    except ValueError:
        record = logging.LogRecord("shop", logging.ERROR, "", 0, "failed", (), sys.exc_info())
    record.step = "pay"
    line = orjson.loads(JsonLines().format(record))
    assert (line["message"], line["headway.step"]) == ("failed", "pay")
    assert line["exception"].endswith("ValueError: no luck")
