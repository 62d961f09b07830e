"""Numbers on /metrics and JSON lines on standard error, without any collector."""

from __future__ import annotations

import io
import logging
import sys

import httpx
import orjson
import pytest
from harness.coordination import coordinators, registered
from harness.shop import linear
from harness.system import System
from headway.cli.logformat import JsonLines
from headway.coordinator.http_metrics import _is_of_this_machine
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


def asked_from(host: str) -> Request:
    return Request({"type": "http", "headers": [], "client": (host, 1)})


@pytest.mark.parametrize(
    ("host", "here"), [("127.0.0.1", True), ("::1", True), ("10.0.0.7", False), ("x", False)]
)
def test_numbers_are_for_programs_on_this_machine_or_with_a_token(host, here):
    assert _is_of_this_machine(asked_from(host)) is here


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
