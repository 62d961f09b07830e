"""What anybody publishes as a task, understood or refused with the field named."""

from __future__ import annotations

import uuid

import orjson
import pytest
from headway.agents.headers import parse_headers
from headway.agents.identity import new_task_id
from headway.coordinator.errors import Refusal
from headway.coordinator.submissions import Stored, digest, new_task, parse

STORED = Stored("2026-11-29T00:00:00Z", 7, 1_795_000_000_000)


def understood(body: bytes, headers: dict[str, str] | None = None):
    published = parse("hw.tasks.order", headers or {}, body)
    assert published.data is not None
    return new_task(published, published.data, STORED)


def test_plain_json_is_the_input_and_gets_the_same_id_each_time_it_is_delivered():
    first, second = understood(b'{"n": 1}'), understood(b'{"n": 1}')
    assert first == second
    assert first.saga == "order"
    assert first.id.version == 7
    assert (first.id.int >> 80) == STORED.at_ms


def test_another_stream_incarnation_or_sequence_gives_another_id():
    published = parse("hw.tasks.order", {}, b"1")
    ids = {
        new_task(published, b"1", stored).id
        for stored in (STORED, Stored("later", 7, STORED.at_ms), Stored("x", 8, STORED.at_ms))
    }
    assert len(ids) == 3


@pytest.mark.parametrize("header", ["nats-msg-id", "ce-id"])
def test_a_uuid_given_as_message_id_is_the_task_id(header):
    task = new_task_id()
    assert understood(b"1", {header: str(task)}).id == task


def test_another_name_gives_a_derived_id_that_is_always_the_same():
    named = understood(b"1", {"nats-msg-id": "order-17"})
    assert named.id == understood(b"2", {"ce-id": "order-17"}).id
    assert named.id != understood(b"1", {"nats-msg-id": "order-18"}).id


def test_a_structured_cloudevent_carries_id_and_data():
    task = new_task_id()
    event = {"specversion": "1.0", "id": str(task), "type": "t", "source": "/s", "data": {"n": 1}}
    new = understood(orjson.dumps(event))
    assert (new.id, orjson.loads(new.input)) == (task, {"n": 1})


def test_a_binary_cloudevent_is_taken_whole():
    headers = parse_headers(b"NATS/1.0\r\nce-specversion: 1.0\r\nCe-Id: a-1\r\n\r\n")
    new = understood(b'{"specversion": "x", "type": "y"}', headers)
    assert orjson.loads(new.input) == {"specversion": "x", "type": "y"}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"not json", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"1" * 1_048_577, r"limit is 1048576 \(1 MiB\)"),
        (b'{"specversion": "0.3", "type": "t"}', "only CloudEvents 1.0"),
        (b'{"specversion": "1.0", "type": "t", "id": 5}', "id: must be a string"),
        (b'{"specversion": "1.0", "type": "t", "dataref": 5}', "dataref"),
        (b'"\\ud800"', "not JSON"),
    ],
)
def test_what_is_not_a_submission_is_refused_with_the_reason(body, complaint):
    with pytest.raises(Refusal, match=complaint):
        parse("hw.tasks.order", {}, body)


@pytest.mark.parametrize("subject", ["hw.tasks", "hw.tasks.a.b", "hw.other.x", "hw.tasks.ü"])
def test_a_subject_that_names_no_saga_is_refused(subject):
    with pytest.raises(Refusal):
        parse(subject, {}, b"1")


def test_white_space_and_order_of_keys_do_not_make_another_body():
    def of(body: bytes) -> bytes:
        return understood(body).input_digest

    assert of(b'{"a":1,"b":[2]}') == of(b'{ "b": [2], "a": 1 }')
    assert of(b'{"a":1}') != of(b'{"a":2}')
    assert digest("s", 1) != digest("t", 1)


@pytest.mark.parametrize("depth", [66, 198, 300, 1_000, 100_000])
def test_deeply_nested_json_is_refused_and_harms_nothing(depth):
    for body in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
        with pytest.raises(Refusal, match="nested more than"):
            parse("hw.tasks.order", {}, body)


def test_headers_of_any_shape_are_read_without_complaint():
    assert parse_headers(b"") == {}
    assert parse_headers(b"NATS/1.0 503\r\n\r\n") == {}
    assert parse_headers(b"NATS/1.0\r\nA:1\r\na: 2\r\nno colon\r\n\xff: x\r\n\r\n")["a"] == "1"
    assert uuid.UUID(str(new_task_id())).version == 7
