"""Claim check: payloads too large to travel in a message, in the stream HW_PAYLOADS.

A reference is a subject: `<space>.<task>.<digest>.<parts>`. The parts are kept under it, each with
one more token, its number from 0. Whoever may write in a space, and whoever may read there, is for
the server to enforce: an agent writes only its own, and reads only that and what is for it.

Always holds: what is stored never changes, for the stream takes one message a subject and deletes
none; putting the same bytes twice stores them once; every read is checked against the digest.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
from dataclasses import dataclass

from headway.agents.errors import HeadwayError, Unavailable
from headway.agents.subjects import PAYLOADS_STREAM
from headway.agents.wire import StoreError, Wire

REQUEST_TIMEOUT_S = 5.0
PART_BYTES = 262_144
ABSENT_FOR_S = 1.0  # a copy of the stream that answers may be so far behind
ABSENT_PAUSE_S = 0.05
SUBJECT_TAKEN = 10077  # JetStream's code: that part is there already

_REFERENCE = re.compile(
    r"(?P<space>hw\.payloads\.(?:(?:by|to)\.[\w-]{1,64}|people))"
    r"\.(?P<task>[\w-]{1,64})\.(?P<digest>[0-9a-f]{64})(?:-[0-9a-f]{8})?\.(?P<parts>[1-9]\d{0,8})",
    re.ASCII,
)


class PayloadLost(HeadwayError):
    """What a message refers to is gone, is no payload, or its bytes are not the ones sent."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a reference says of itself."""

    space: str
    task: str
    parts: int


async def put(wire: Wire, space: str, task: str, body: bytes) -> tuple[str, str]:
    """Store `body` in a space; returns its reference and its digest (SHA-256, hex).

    Raises Unavailable when JetStream does not answer or the stream is not there (yet).
    """
    digest = hashlib.sha256(body).hexdigest()
    reference = f"{space}.{task}.{digest}.{_parts(body)}"
    if await _store(wire, reference, body) and not await _is_stored(wire, reference, body):
        reference = f"{space}.{task}.{digest}-{secrets.token_hex(4)}.{_parts(body)}"
        await _store(wire, reference, body)
    return reference, digest


async def get(wire: Wire, reference: str, digest: str, *, max_bytes: int | None = None) -> bytes:
    """The bytes stored as `reference`, checked against `digest`.

    Raises PayloadLost if they are not there, not the same, or more than `max_bytes`; Unavailable as
    `put` does.
    """
    parts = read(reference).parts
    if max_bytes is not None and parts > -(-max_bytes // PART_BYTES):
        raise PayloadLost(f"payload {reference} has more than {max_bytes} bytes")
    body = b"".join([await _part(wire, f"{reference}.{number}") for number in range(parts)])
    if hashlib.sha256(body).hexdigest() != digest:
        raise PayloadLost(f"payload {reference} is not what was sent: its digest differs")
    return body


def read(reference: str) -> Reference:
    """What a reference says; PayloadLost if it is none."""
    found = _REFERENCE.fullmatch(reference)
    if found is None:
        raise PayloadLost(f"{reference!r} is not a reference to a payload")
    return Reference(found["space"], found["task"], int(found["parts"]))


def _parts(body: bytes) -> int:
    return max(1, -(-len(body) // PART_BYTES))


async def _store(wire: Wire, reference: str, body: bytes) -> bool:
    """Store all parts; whether some were there already."""
    parts = [
        (f"{reference}.{number}", body[number * PART_BYTES : (number + 1) * PART_BYTES])
        for number in range(_parts(body))
    ]
    try:
        outcomes = await wire.store_all(parts)
    except ConnectionError as error:
        raise _unavailable(error) from error
    for outcome in outcomes:
        if outcome is not None and outcome.code != SUBJECT_TAKEN:
            raise _unavailable(outcome)
    return any(outcomes)


async def _is_stored(wire: Wire, reference: str, body: bytes) -> bool:
    """Whether it is this payload that is there, and not what somebody else put in its place."""
    try:
        return await get(wire, reference, hashlib.sha256(body).hexdigest()) == body
    except PayloadLost:
        return False


async def _part(wire: Wire, subject: str) -> bytes:
    request = f"$JS.API.DIRECT.GET.{PAYLOADS_STREAM}.{subject}"
    deadline = asyncio.get_running_loop().time() + ABSENT_FOR_S
    while True:
        message = await wire.ask(request, b"", REQUEST_TIMEOUT_S)
        status = (message.headers or {}).get("Status", "")
        if not status:
            return message.data
        if status != "404":
            raise _unavailable(f"status {status}")
        if asyncio.get_running_loop().time() > deadline:
            raise PayloadLost(f"payload {subject} is not in the store")
        await asyncio.sleep(ABSENT_PAUSE_S)


def _unavailable(why: StoreError | ConnectionError | str) -> Unavailable:
    return Unavailable(f"the payload store {PAYLOADS_STREAM} did not answer: {why}")
