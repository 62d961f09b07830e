"""A request on HTTP as the bytes of an operation's request, and what is refused before that.

Reading operations take their request's fields as query parameters, `attributes` as `attribute`
(name=value), acting ones as JSON in the body. Always holds: a body is never kept beyond
BODY_MAX_BYTES, nor waited for longer than BODY_WITHIN_S.
"""

from __future__ import annotations

import asyncio
from typing import Any, get_args, get_origin
from uuid import UUID

import orjson
from headway.agents.messages import INPUT_MAX_BYTES
from headway.agents.tracing import remote
from headway.coordinator.errors import Refusal
from headway.coordinator.places import Places
from pydantic import BaseModel
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect, Request

REQUESTS_MAX = 256  # in one coordinator; more are told to come again
REQUESTS_OF_ONE_MAX = 64  # of one token
BODY_MAX_BYTES = INPUT_MAX_BYTES + 65_536  # an input of the largest size, and what surrounds it
BODY_WITHIN_S = 10.0
KEY_HEADER = "Idempotency-Key"
ORIGIN_HEADER = "traceparent"
JSON = "application/json"
ATTRIBUTES, ATTRIBUTE = "attributes", "attribute"  # as a field, and as a parameter


class Gone(Exception):
    """Nobody waits for the answer any more."""


def request_places() -> Places:
    """Places for requests that are worked on."""
    return Places(REQUESTS_MAX, REQUESTS_OF_ONE_MAX, "requests")


def parameter_of(field: str) -> str:
    """The name of the query parameter that gives a field."""
    return ATTRIBUTE if field == ATTRIBUTES else field


def is_list(model: type[BaseModel], field: str) -> bool:
    """Whether a field takes several values, or none."""
    annotation = model.model_fields[field].annotation
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))


def asked_in_query(model: type[BaseModel], query: QueryParams) -> bytes:
    """The request that query parameters make; Refusal (422) names one that does not belong there.

    What their values must be is for `model` to say.
    """
    names = {parameter_of(field): field for field in model.model_fields}
    request: dict[str, Any] = {}
    for name in dict.fromkeys(query.keys()):
        field, values = names.get(name), query.getlist(name)
        if field is None:
            raise Refusal(f"{name[:64]}: there is no such parameter", 422)
        if field == ATTRIBUTES:
            request[field] = dict(_attribute(each) for each in values)
        elif is_list(model, field):
            request[field] = values
        elif len(values) > 1:
            raise Refusal(f"{name}: it can be given once", 422)
        else:
            request[field] = values[0]
    try:
        return orjson.dumps(request)
    except TypeError as error:  # half a surrogate pair
        raise Refusal("a parameter is no text", 422) from error


def _attribute(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals:
        raise Refusal("attribute: give it as name=value", 422)
    return name, value


async def asked_in_body(request: Request) -> bytes:
    """The body, which is JSON; Refusal says why it is not taken (408, 413, 415)."""
    _check_kind(request.headers)
    _check_size(_length(request.headers))
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            async for chunk in request.stream():
                body += chunk
                _check_size(len(body))
    except ClientDisconnect as error:
        raise Gone from error
    except TimeoutError as error:
        raise Refusal(f"the body was not whole after {BODY_WITHIN_S:g} s", 408) from error
    return bytes(body)


def _check_kind(headers: Headers) -> None:
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != JSON:
        raise Refusal(f"Content-Type: the body must be {JSON}", 415)
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refusal("Content-Encoding: the body must be plain", 415)


def _check_size(size: int) -> None:
    if size > BODY_MAX_BYTES:
        raise Refusal(f"the body has more than {BODY_MAX_BYTES} bytes", 413)


def _length(headers: Headers) -> int:
    said = headers.get("content-length", "0")
    return int(said) if said.isascii() and said.isdigit() else 0


def with_key(request: Any, headers: Headers) -> Any:
    """A submission, with the id of its task from the header that says so; Refusal (422) if that is
    none, or if the request names another task."""
    keys = headers.getlist(KEY_HEADER)
    if not keys:
        return request
    if len(keys) > 1:
        raise Refusal(f"{KEY_HEADER}: there are {len(keys)} of them", 422)
    [key] = keys
    try:
        task = UUID(key.strip())
    except ValueError as error:
        raise Refusal(f"{KEY_HEADER}: it is the task's id, a UUID", 422) from error
    if request.task not in (None, task):
        raise Refusal(f"{KEY_HEADER}: the request names another task", 422)
    return request.model_copy(update={"task": task})


def with_origin(request: Any, headers: Headers) -> Any:
    """A submission, with the span in which it was made from W3C's header, unless it says itself."""
    origin = headers.get(ORIGIN_HEADER, "")
    if request.traceparent or remote(origin) is None:
        return request
    return request.model_copy(update={"traceparent": origin})
