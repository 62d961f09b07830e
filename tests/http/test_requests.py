"""How a request on HTTP becomes that of an operation, as far as no server is needed."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
import pytest
from headway.agents import views
from headway.coordinator.errors import Refusal
from headway.coordinator.http_requests import asked_in_query, with_key, with_origin
from starlette.datastructures import Headers, QueryParams

TASK = UUID("01a228d3-8b1d-728f-a4a8-c99741d7b99b")


def asked(model: Any, query: str) -> Any:
    return orjson.loads(asked_in_query(model, QueryParams(query)))


@pytest.mark.parametrize(
    ("query", "request_made"),
    [
        ("", {}),
        ("status=parked&status=running", {"status": ["parked", "running"]}),
        ("status=parked", {"status": ["parked"]}),
        (
            "attribute=a=b&attribute=c=d=e&attribute==",
            {"attributes": {"a": "b", "c": "d=e", "": ""}},
        ),
        ("saga=x%26y&limit=5", {"saga": "x&y", "limit": "5"}),
        ("saga=", {"saga": ""}),
        ("owner=%C3%A9", {"owner": "é"}),
    ],
)
def test_parameters_are_the_fields_of_the_request(query: str, request_made: Any) -> None:
    assert asked(views.ListRequest, query) == request_made


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("limit=1&limit=2", "limit: it can be given once"),
        ("wat=1", "wat: there is no such parameter"),
        ("attributes=a", "attributes: there is no such parameter"),
        ("attribute=a", "attribute: give it as name=value"),
        ("limit", None),
        (f"{'x' * 1_000}=1", f"{'x' * 64}: there is no such parameter"),
    ],
)
def test_parameters_that_do_not_belong_there_are_refused(query: str, reason: str | None) -> None:
    if reason is None:
        assert asked(views.ListRequest, query) == {"limit": ""}
        return
    with pytest.raises(Refusal) as refused:
        asked(views.ListRequest, query)
    assert (refused.value.code, refused.value.reason) == (422, reason)


def test_the_key_of_a_submission_is_its_tasks_id() -> None:
    request = views.SubmitRequest(saga="order")
    keyed = with_key(request, Headers({"Idempotency-Key": f" {TASK} "}))
    assert keyed.task == TASK
    assert with_key(keyed, Headers({"Idempotency-Key": str(TASK).upper()})).task == TASK
    assert with_key(request, Headers()).task is None


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("again", "Idempotency-Key: it is the task's id, a UUID"),
        ("", "Idempotency-Key: it is the task's id, a UUID"),
        (
            "00000000-0000-0000-0000-000000000000",
            "Idempotency-Key: the request names another task",
        ),
    ],
)
def test_a_key_that_is_no_id_or_another_one_is_refused(key: str, reason: str) -> None:
    request = views.SubmitRequest(saga="order", task=TASK)
    with pytest.raises(Refusal) as refused:
        with_key(request, Headers({"Idempotency-Key": key}))
    assert (refused.value.code, refused.value.reason) == (422, reason)


def test_two_keys_are_one_too_many() -> None:
    twice = Headers(raw=[(b"idempotency-key", str(TASK).encode())] * 2)
    with pytest.raises(Refusal) as refused:
        with_key(views.SubmitRequest(saga="order"), twice)
    assert (refused.value.code, refused.value.reason) == (
        422,
        "Idempotency-Key: there are 2 of them",
    )


def test_the_header_traceparent_tells_in_which_span_a_task_was_submitted():
    said = f"00-{'1' * 32}-{'2' * 16}-01"
    request = views.SubmitRequest(saga="order")
    assert with_origin(request, Headers({"traceparent": said})).traceparent == said
    own = request.model_copy(update={"traceparent": said.replace("1", "3")})
    assert with_origin(own, Headers({"traceparent": said})) == own
    assert with_origin(request, Headers({"traceparent": "junk"})).traceparent == ""
