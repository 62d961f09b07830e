"""JetStream's management API: requests and answers as JSON, errors as ours."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import nats.errors
import orjson
from headway.agents.wire import Wire
from headway.coordinator.errors import BusUnavailable, CoordinatorError

REQUEST_TIMEOUT_S = 5.0

STREAM_NAME_IN_USE = 10058
MESSAGE_NOT_FOUND = 10037
SEQUENCE_NOT_FOUND = 10043


class JetStreamError(CoordinatorError):
    """JetStream refused a request; `code` is its err_code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"JetStream: {text} (code {code})")
        self.code = code


async def ask(wire: Wire, operation: str, request: dict[str, Any] | None = None) -> Any:
    """The answer to `$JS.API.<operation>`; JetStreamError or BusUnavailable."""
    body = orjson.dumps(request) if request else b""
    try:
        message = await wire.request(f"$JS.API.{operation}", body, REQUEST_TIMEOUT_S)
    except (nats.errors.Error, TimeoutError, OSError) as error:
        raise BusUnavailable(
            f"JetStream does not answer {operation.split('.HW', maxsplit=1)[0]}"
        ) from error
    answer = orjson.loads(message.data)
    problem = answer.get("error")
    if problem is not None:
        raise JetStreamError(problem.get("err_code", problem["code"]), problem["description"])
    return answer


class Stored(NamedTuple):
    """A message as a stream has it."""

    sequence: int
    subject: str
    body: bytes
    headers: bytes
    at: datetime


async def last_message(wire: Wire, stream: str, subject: str) -> Stored | None:
    """The newest message on a subject; None if there is none."""
    return await _message(wire, stream, {"last_by_subj": subject})


async def next_message(wire: Wire, stream: str, subjects: str, first: int) -> Stored | None:
    """The first message from sequence `first` on whose subject matches; None if there is none."""
    return await _message(wire, stream, {"seq": first, "next_by_subj": subjects})


async def message_at(wire: Wire, stream: str, sequence: int) -> Stored | None:
    """The message of a sequence; None if there is none."""
    return await _message(wire, stream, {"seq": sequence})


async def oldest_at(wire: Wire, stream: str) -> datetime | None:
    """Since when the oldest message of a stream is there; None if it holds none."""
    state = (await ask(wire, f"STREAM.INFO.{stream}"))["state"]
    return datetime.fromisoformat(state["first_ts"]) if state["messages"] else None


async def _message(wire: Wire, stream: str, which: dict[str, Any]) -> Stored | None:
    try:
        message = (await ask(wire, f"STREAM.MSG.GET.{stream}", which))["message"]
    except JetStreamError as error:
        if error.code == MESSAGE_NOT_FOUND:
            return None
        raise
    return Stored(
        message["seq"],
        message["subject"],
        b64decode(message.get("data", "")),
        b64decode(message.get("hdrs", "")),
        datetime.fromisoformat(message["time"]),
    )


async def remove(
    wire: Wire, stream: str, subject: str, unwanted: Callable[[bytes], bool]
) -> int | None:
    """Remove the newest message on a subject, if its body is `unwanted`; returns its sequence, or
    None if there was none to remove.

    Not by a purge: nats-server 2.15.1 moves a consumer's ack floor over older messages that are
    still pending when a pending one is purged by subject, and never delivers those again.
    """
    newest = await last_message(wire, stream, subject)
    if newest is None or not unwanted(newest.body):
        return None
    try:
        request = {"seq": newest.sequence, "no_erase": True}
        await ask(wire, f"STREAM.MSG.DELETE.{stream}", request)
    except JetStreamError as error:
        if error.code in (MESSAGE_NOT_FOUND, SEQUENCE_NOT_FOUND):
            return None
        raise
    return newest.sequence
