"""What the standard variables mean here, and how a collector's answers are taken."""

from __future__ import annotations

import logging

import pytest
from harness.collector import Collector, collecting
from headway.agents import tracing
from headway.agents.identity import new_task_id
from headway.coordinator.otlp import NotTaken, Sender, resource
from headway.coordinator.otlp_settings import (
    Endpoint,
    endpoint_of,
    metrics_interval_s,
    resource_of,
    sampler_of,
    spans_delay_s,
    wants_payloads,
)
from headway.coordinator.otlp_spans import encoded, trace_request
from headway.coordinator.spans import INTERNAL, Span

AT = "OTEL_EXPORTER_OTLP_ENDPOINT"
HERE = {AT: "http://here:4318/"}
SPAN = Span(bytes(15) + b"\1", bytes(7) + b"\1", b"", "one", INTERNAL, 1, 2, {})
BODY = trace_request(resource({}), [encoded([SPAN])])


@pytest.fixture
def taker():
    with collecting() as collector:
        yield collector


def sender(taker: Collector, **more: object) -> Sender:
    return Sender(Endpoint(f"{taker.url}/v1/traces", **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {AT: "  "},
        {**HERE, "OTEL_SDK_DISABLED": "TRUE"},
        {**HERE, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_without_an_endpoint_or_when_turned_off_nothing_is_sent(environ):
    assert endpoint_of("traces", environ) is None


def test_the_common_endpoint_gets_a_path_a_signals_own_is_taken_as_it_is():
    own = {**HERE, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://there/x"}
    assert endpoint_of("traces", own).url == "http://there/x"
    assert endpoint_of("metrics", own).url == "http://here:4318/v1/metrics"


def test_headers_timeout_and_compression_are_those_of_the_signal_or_of_all():
    found = endpoint_of(
        "logs",
        {
            **HERE,
            "OTEL_EXPORTER_OTLP_HEADERS": "key=a%20b,other=c",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "5000",
            "OTEL_EXPORTER_OTLP_LOGS_TIMEOUT": "2000",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        },
    )
    assert dict(found.headers) == {"key": "a b", "other": "c"}
    assert (found.timeout_s, found.gzip) == (2, True)
    assert "a b" not in repr(found), "headers carry secrets"


def test_what_cannot_be_understood_is_told_and_taken_as_its_default(caplog):
    odd = {**HERE, "OTEL_EXPORTER_OTLP_TIMEOUT": "soon", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with caplog.at_level(logging.WARNING):
        assert endpoint_of("traces", odd).timeout_s == 10
        assert metrics_interval_s({"OTEL_METRIC_EXPORT_INTERVAL": "x"}) == 60
        assert spans_delay_s({"OTEL_BSP_SCHEDULE_DELAY": "y"}) == 5
        sampler_of({"OTEL_TRACES_SAMPLER": "jaeger_remote"})
    assert [record.getMessage() for record in caplog.records] == [
        "OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not spoken here; http/protobuf is",
        "OTEL_EXPORTER_OTLP_TIMEOUT=soon is not a number; 10000 is taken",
        "OTEL_METRIC_EXPORT_INTERVAL=x is not a number; 60000 is taken",
        "OTEL_BSP_SCHEDULE_DELAY=y is not a number; 5000 is taken",
        "OTEL_TRACES_SAMPLER=jaeger_remote is not known; all tasks are traced",
    ]


def test_who_sends_is_what_the_variables_say():
    given = {"OTEL_RESOURCE_ATTRIBUTES": "service.name=shop,deployment.environment.name=a%2Cb"}
    assert resource_of({})["service.name"] == "headway"
    assert resource_of(given) == {"service.name": "shop", "deployment.environment.name": "a,b"}
    assert resource_of({**given, "OTEL_SERVICE_NAME": "mine"})["service.name"] == "mine"


@pytest.mark.parametrize(
    ("sampler", "parent", "expected"),
    [
        ("", "", True),
        ("", "-00", False),
        ("", "-01", True),
        ("always_on", "-00", True),
        ("always_off", "-01", False),
        ("parentbased_always_off", "", False),
        ("parentbased_always_off", "-01", True),
    ],
)
def test_a_sampler_decides_by_itself_or_follows_who_submits(sampler, parent, expected):
    origin = f"00-{'1' * 32}-{'2' * 16}{parent}" if parent else ""
    sample = sampler_of({"OTEL_TRACES_SAMPLER": sampler})
    assert sample(new_task_id(), origin) is expected


def test_a_ratio_takes_that_share_of_tasks_and_everybody_takes_the_same_ones():
    environ = {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}
    tasks = [new_task_id() for _ in range(4_000)]
    first, second = ([sampler_of(environ)(each, "") for each in tasks] for _ in range(2))
    assert first == second
    assert 0.20 < sum(first) / len(tasks) < 0.30


def test_payloads_are_wanted_only_by_the_one_variable():
    assert not wants_payloads({})
    assert wants_payloads({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"})


@pytest.mark.parametrize("junk", ["", "x", "00-1-2-01", f"00-{'0' * 32}-{'2' * 16}-01", "ff-"])
def test_what_is_no_traceparent_names_nothing(junk):
    assert tracing.remote(junk) is None


async def test_a_request_is_compressed_and_carries_the_headers_that_were_given(taker):
    await sender(taker, gzip=True, headers={"Api-Key": "k"}).send(BODY, 1)
    assert [each.span.name for each in taker.spans] == ["one"]
    assert taker.headers[0]["Content-Encoding"] == "gzip"
    assert taker.headers[0]["Api-Key"] == "k"


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_collector_that_asks_for_later_is_tried_again(taker, status):
    taker.status = status
    with pytest.raises(NotTaken, match=f"it answered {status}"):
        await sender(taker).send(BODY, 1)


async def test_a_collector_that_refuses_for_good_is_not_tried_again(taker, caplog):
    taker.status = 400
    await sender(taker).send(BODY, 1)
    assert "the collector refused 1 things for good: 400" in caplog.text


async def test_a_collector_that_is_not_there_is_tried_again():
    with pytest.raises(NotTaken, match="refused"):
        await Sender(Endpoint("http://127.0.0.1:9/v1/traces", timeout_s=1)).send(BODY, 1)
