"""The agent `hotels` of the travel demo, on nats-py alone: books a room, and cancels it.

`python -m headway.demo.languages.hotels` works until SIGTERM.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from headway.demo.languages.bare import serve
from headway.demo.languages.bare_attempt import Given
from headway.demo.languages.bare_words import Empty, InvalidInput, Later, Rejected

BOOKINGS_VARIABLE = "HEADWAY_DEMO_BOOKINGS"
CALL_TIMEOUT_S = 5.0
BEAT_S = 0.05
CONFLICT = 409


async def book(given: Given) -> Any:
    place = _members(given).get("to")
    if not isinstance(place, str):
        raise InvalidInput("to: a text is wanted")
    if place == "Atlantis":
        raise Rejected("all hotels of Atlantis are under water")
    body = {"kind": "hotel", "trip": given.command["task"]}
    try:
        answer = await asyncio.to_thread(_call, "PUT", given.operation, body)
    except urllib.error.HTTPError as error:
        if error.code == CONFLICT:
            raise Rejected("this room was cancelled before it was booked") from None
        raise
    return {"room": answer["number"], "after": given.data["results"]["flight"]["flight"]}


async def cancel(given: Given) -> Any:
    answer = await asyncio.to_thread(_call, "DELETE", given.action_operation, None)
    return None if answer["cancelled"] else Empty()


async def echo(given: Given) -> Any:
    return {
        "input": given.input,
        "operation": given.operation,
        "attempt": given.command["attempt"],
        "results": given.data.get("results", {}),
    }


async def double(given: Given) -> Any:
    match _members(given):
        case {"number": int(number), **others} if not others and not isinstance(number, bool):
            return {"number": 2 * number}
    raise InvalidInput("number: an integer, and nothing else, is wanted")


async def end(given: Given) -> Any:
    ending = _members(given)
    match ending.get("how"):
        case "reject":
            raise Rejected(ending["reason"])
        case "retry":
            raise Later(ending["after_ms"])
    raise RuntimeError(ending["reason"])


async def large(given: Given) -> Any:
    return {"text": "x" * _members(given)["bytes"]}


async def work(given: Given) -> Any:
    loop = asyncio.get_running_loop()
    until = loop.time() + _members(given)["ms"] / 1_000
    while not given.stop.is_set() and (left_s := until - loop.time()) > 0:
        await given.heartbeat({"left_ms": round(left_s * 1_000)})
        with suppress(TimeoutError):
            await asyncio.wait_for(given.stop.wait(), min(BEAT_S, left_s))
    return {"stopped": given.stop.is_set()}


async def undo(given: Given) -> Any:
    unknown = bool(given.data.get("outcome_unknown"))
    if unknown and not _members(given)["effect"]:
        return Empty()
    return {
        "result": given.data.get("result"),
        "outcome_unknown": unknown,
        "operation": given.operation,
        "action_operation": given.action_operation,
    }


HANDLERS: dict[str, tuple[str, Callable[[Given], Awaitable[Any]]]] = {
    "book": ("action", book),
    "cancel": ("compensation", cancel),
    "conform-echo": ("action", echo),
    "conform-double": ("action", double),
    "conform-end": ("action", end),
    "conform-large": ("action", large),
    "conform-work": ("action", work),
    "conform-undo": ("compensation", undo),
}


def _members(given: Given) -> dict[str, Any]:
    """The members of the input; InvalidInput if it is no object."""
    if not isinstance(given.input, dict):
        raise InvalidInput("an object is wanted")
    return given.input


def _call(method: str, operation: str, body: dict[str, Any] | None) -> Any:
    """Ask the bookings, in a thread."""
    url = f"{os.environ[BOOKINGS_VARIABLE]}/{operation}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - the demo's own
    with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:  # noqa: S310
        return json.loads(answer.read())


if __name__ == "__main__":
    asyncio.run(serve("hotels", HANDLERS))
