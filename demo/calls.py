"""How an agent talks to the downstream service: one JSON line there, one back, a connection each.

A call names its operation by the id that all attempts of a step share; a compensation names the
operation of the action that it undoes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from headway.agents.errors import InvalidInput
from headway.agents.messages import describe
from headway.demo.orders import Order
from headway.demo.trouble import Trouble
from pydantic import TypeAdapter, ValidationError

ADDRESS_VARIABLE = "HEADWAY_DEMO_DOWNSTREAM"  # environment: host:port of the service
LINE_MAX_BYTES = 65_536

Outcome = Literal[
    "applied",  # the effect was applied now
    "read",  # a look at the books, which changes nothing
    "refused",  # a business reason, and no effect
    "duplicate",  # done before: the answer is the one given then
    "undone",  # the effect was reversed now
    "empty",  # nothing to undo; the action is barred from now on
    "fenced",  # the action came after its compensation, and was refused
    "failed",  # a fault before anything was applied
]


@dataclass(frozen=True, slots=True)
class Call:
    """A request to carry out `action` for `order`, or to undo it.

    `trouble` tells the service how to treat this call; without it, the service's seed decides.
    """

    operation: UUID
    action: str
    order: Order
    attempt: int = 1
    undo: bool = False
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`number` is the receipt's; `kind` and `reason` say why not."""

    outcome: Outcome
    number: int | None = None
    kind: str = ""
    reason: str = ""


_CALL = TypeAdapter(Call)
_ANSWER = TypeAdapter(Answer)


def encode(message: Call | Answer) -> bytes:
    """The message as one line."""
    adapter = _CALL if isinstance(message, Call) else _ANSWER
    return adapter.dump_json(message) + b"\n"  # type: ignore[arg-type]


def decode_call(line: bytes) -> Call:
    """Parse a call; InvalidInput names the field that does not fit."""
    try:
        return _CALL.validate_json(line)
    except ValidationError as error:
        raise InvalidInput(f"not a call: {describe(error)}") from error


async def ask(address: str, call: Call) -> Answer:
    """Call the service at `address` (host:port); ConnectionError when it does not answer."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=LINE_MAX_BYTES)
    try:
        writer.write(encode(call))
        line = await reader.readline()
    finally:
        writer.close()
    if not line.endswith(b"\n"):
        raise ConnectionError(f"the service hung up without an answer to {call.action}")
    return _ANSWER.validate_json(line)


async def is_listening(address: str) -> bool:
    """Whether a service accepts connections at `address` (host:port)."""
    host, _, port = address.rpartition(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except ConnectionError:
        return False
    writer.close()
    await writer.wait_closed()
    return True
