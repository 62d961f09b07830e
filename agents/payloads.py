"""Claim check: payloads too large to travel in a message, in the object bucket HW_PAYLOADS.

An object's name holds the digest of its bytes, so putting the same bytes twice is harmless,
and every read is checked. Written and read as any NATS object store would, but chunk by chunk
with requests: no consumer is made and nothing is left behind when a server goes away.
"""

from __future__ import annotations

import hashlib

import nats.errors
import nats.js.errors
from headway.agents.errors import HeadwayError, Unavailable
from headway.agents.subjects import PAYLOADS_BUCKET
from nats.aio.client import Client
from nats.js.api import ObjectInfo
from nats.js.client import JetStreamContext
from nats.js.object_store import ObjectStore

REQUEST_TIMEOUT_S = 5.0

_STREAM = f"OBJ_{PAYLOADS_BUCKET}"


class PayloadLost(HeadwayError):
    """The object that a message refers to is gone, or its bytes are not the ones sent."""


async def put(nc: Client, task: str, body: bytes) -> tuple[str, str]:
    """Store `body`; returns its reference and its digest (SHA-256, hex) for the message.

    Raises Unavailable when JetStream does not answer or the bucket is not there (yet).
    """
    digest = hashlib.sha256(body).hexdigest()
    reference = f"{task}.{digest}"
    jetstream = nc.jetstream(timeout=REQUEST_TIMEOUT_S)
    try:
        bucket = await jetstream.object_store(PAYLOADS_BUCKET)
        info = await _find(bucket, reference)
        if info is None or info.size != len(body):
            await bucket.put(reference, body)
    except (nats.errors.Error, TimeoutError) as error:
        raise Unavailable(f"the payload store {PAYLOADS_BUCKET} did not answer: {error}") from error
    return reference, digest


async def get(nc: Client, reference: str, digest: str) -> bytes:
    """The bytes stored as `reference`, checked against `digest`.

    Raises PayloadLost if they are not there or not the same, Unavailable as `put` does.
    """
    jetstream = nc.jetstream(timeout=REQUEST_TIMEOUT_S)
    try:
        bucket = await jetstream.object_store(PAYLOADS_BUCKET)
        info = await _find(bucket, reference)
        if info is None:
            raise PayloadLost(f"payload {reference} is not in the store")
        body = await _read(jetstream, info)
    except nats.js.errors.NotFoundError as error:
        raise Unavailable(f"the payload store {PAYLOADS_BUCKET} is not there: {error}") from error
    except (nats.errors.Error, TimeoutError) as error:
        raise Unavailable(f"the payload store {PAYLOADS_BUCKET} did not answer: {error}") from error
    if hashlib.sha256(body).hexdigest() != digest:
        raise PayloadLost(f"payload {reference} is not what was sent: its digest differs")
    return body


async def _find(bucket: ObjectStore, reference: str) -> ObjectInfo | None:
    try:
        return await bucket.get_info(reference)
    except (nats.js.errors.ObjectNotFoundError, nats.js.errors.BadObjectMetaError):
        return None


async def _read(jetstream: JetStreamContext, info: ObjectInfo) -> bytes:
    chunks: list[bytes] = []
    sequence = 0
    for _ in range(info.chunks or 0):
        try:
            message = await jetstream.get_msg(
                _STREAM, sequence + 1, subject=f"$O.{PAYLOADS_BUCKET}.C.{info.nuid}", next=True
            )
        except nats.js.errors.NotFoundError as error:
            raise PayloadLost(f"payload {info.name} has lost a part") from error
        chunks.append(message.data or b"")
        sequence = message.seq or 0
    return b"".join(chunks)
