"""From what anybody publishes on `hw.tasks.<saga>` to a new task. Pure; refuses what is not one.

Taken are plain JSON (the whole body is the input), CloudEvents in structured mode (one JSON
object with `specversion` and `data`) and in binary mode (`ce-*` headers). The attribute `priority`,
or the header `ce-priority`, is the task's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from headway.agents.identity import task_id_from_name, task_id_from_sequence
from headway.agents.manifest import Manifest
from headway.agents.messages import INPUT_MAX_BYTES
from headway.agents.plainjson import DEPTH_MAX, NotPlain, check_depth
from headway.agents.subjects import TOKEN, parse_task_subject
from headway.agents.views import PRIORITY
from headway.coordinator.errors import Refusal
from headway.coordinator.records import NewTask, trace_of
from headway.coordinator.taskid import task_id

ID_HEADER = "ce-id"
_ID_HEADERS = (ID_HEADER, "nats-msg-id")
_PRIORITIES = tuple("0123456789")
_TRACE_HEADER = "traceparent"  # as W3C's Trace Context names it; of a CloudEvent, an extension
_PRIORITY_HEADER = "ce-priority"  # taken without the other headers of a CloudEvent, too


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a published submission was stored: what a nameless one gets its id from."""

    stream_created: str
    sequence: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Published:
    """A submission as published. Its input is `data`, which reads as `content`, or the object `ref`
    with this digest."""

    saga: str
    name: str
    data: bytes | None
    content: Any = None
    ref: str = ""
    digest: str = ""
    priority: int = PRIORITY
    traceparent: str = ""


def parse(subject: str, headers: dict[str, str], body: bytes) -> Published:
    """Understand a published submission; Refusal says what does not fit."""
    try:
        saga = parse_task_subject(subject)
    except ValueError as error:
        raise Refusal(str(error)) from error
    if TOKEN.fullmatch(saga) is None:
        raise Refusal("the saga's name in the subject is not one")
    name = name_in(headers)
    content = read_json(body)
    if "ce-specversion" not in headers and _is_structured(content):
        return _structured(saga, name, content, headers.get(_TRACE_HEADER, ""))
    priority = _priority(headers.get(_PRIORITY_HEADER, PRIORITY))
    traceparent = headers.get(_TRACE_HEADER, "")
    return Published(saga, name, body, content, priority=priority, traceparent=traceparent)


def new_task(published: Published, data: bytes, stored: Stored, owner: str = "") -> NewTask:
    """The task that a published submission asks for; the same one each time it is delivered."""
    task = named_id(published) or nameless_id(stored)
    content = read_json(data) if published.data is None else published.content
    return NewTask(
        task,
        published.saga,
        data,
        digest(published.saga, content),
        owner=owner,
        priority=published.priority,
        trace=trace_of(published.traceparent),
    )


def name_in(headers: Mapping[str, str]) -> str:
    """What a submission's headers name it; "" if they do not."""
    return next((headers[key] for key in _ID_HEADERS if headers.get(key)), "")


def named_id(published: Published) -> UUID | None:
    """The id of the task that a submission named itself."""
    return _task_id(published.saga, published.name) if published.name else None


def nameless_id(stored: Stored) -> UUID:
    """The id of the task of a submission that did not."""
    return task_id_from_sequence(stored.stream_created, stored.sequence, stored.at_ms)


def digest(saga: str, content: Any, manifest: Manifest | None = None) -> bytes:
    """What tells two submissions of one id apart: SHA-256 over the saga, the input and the manifest
    as JSON, in a form in which neither white space nor the order of keys matters."""
    canonical = orjson.dumps(content, option=orjson.OPT_SORT_KEYS)
    bounds = b"" if manifest is None else b"\0" + manifest.model_dump_json().encode()
    return hashlib.sha256(saga.encode() + b"\0" + canonical + bounds).digest()


def read_json(body: bytes) -> Any:
    """The value of an input; Refusal if it is too large or not JSON."""
    if len(body) > INPUT_MAX_BYTES:
        raise Refusal(
            f"the input has {len(body)} bytes; the limit is {INPUT_MAX_BYTES} (1 MiB): "
            "store it elsewhere and submit a reference",
            413,
        )
    try:
        check_depth(body, DEPTH_MAX + 1)  # a CloudEvent is one more around the input
        return orjson.loads(body)
    except NotPlain as error:
        raise Refusal(f"the input is {error}", 422) from error
    except orjson.JSONDecodeError as error:
        raise Refusal(f"the body is not JSON: {error.msg} at byte {error.pos}", 422) from error


def _is_structured(content: Any) -> bool:
    return isinstance(content, dict) and "specversion" in content and "type" in content


def _structured(saga: str, name: str, content: dict[str, Any], trace: str) -> Published:
    if content["specversion"] != "1.0":
        raise Refusal("specversion: only CloudEvents 1.0 is taken", 422)
    given = content.get("id", "")
    if not isinstance(given, str):
        raise Refusal("id: must be a string", 422)
    ref, ref_digest = content.get("dataref", ""), content.get("datadigest", "")
    if not isinstance(ref, str) or not isinstance(ref_digest, str):
        raise Refusal("dataref, datadigest: must be strings", 422)
    priority = _priority(content.get("priority", PRIORITY))
    trace = str(content.get("traceparent") or trace)
    if ref:
        return Published(saga, name or given, None, None, ref, ref_digest, priority, trace)
    data = content.get("data")
    body = orjson.dumps(data)
    return Published(saga, name or given, body, data, priority=priority, traceparent=trace)


def _priority(given: Any) -> int:
    """Of a CloudEvent's extension or header, which may be a number or its digit."""
    if isinstance(given, bool) or str(given) not in _PRIORITIES:
        raise Refusal("priority: must be a whole number from 0 to 9", 422)
    return int(given)


def _task_id(saga: str, name: str) -> UUID:
    try:
        return task_id(name)
    except ValueError:
        return task_id_from_name(saga, name)
