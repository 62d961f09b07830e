"""Identities: task ids (UUIDv7, made by the submitter) and what is derived from them.

Derived ids are UUIDv5, so that every process and every retry derives the same ones.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid

ACTION = "action"
COMPENSATION = "compensation"

_NAMESPACE = uuid.UUID("6c0a6799-fe64-5d4a-ae62-3f9d806ea12c")


def new_task_id() -> uuid.UUID:
    """A fresh UUIDv7: 48 bits of milliseconds, then 74 random bits (RFC 9562, section 5.7)."""
    return _uuid7(time.time_ns() // 1_000_000, os.urandom(10))


def task_id_from_name(saga: str, name: str) -> uuid.UUID:
    """The task id of a submission that named itself by something other than a UUID."""
    return uuid.uuid5(_NAMESPACE, f"{saga}/{name}")


def task_id_from_sequence(stream_created: str, sequence: int, stored_at_ms: int) -> uuid.UUID:
    """The task id of a submission without one: the same each time the message is delivered."""
    digest = hashlib.sha256(f"{stream_created}/{sequence}".encode()).digest()
    return _uuid7(stored_at_ms, digest[:10])


def operation_id(task: uuid.UUID, step: str, phase: str) -> uuid.UUID:
    """UUIDv5 of (task, step, phase): one for all attempts; what a downstream dedupes on."""
    return uuid.uuid5(task, f"{step}/{phase}")


def invocation_id(operation: uuid.UUID, key: str) -> uuid.UUID:
    """UUIDv5 of an operation and a call's key: one for all runs of that call."""
    return uuid.uuid5(operation, key)


def _uuid7(at_ms: int, randomness: bytes) -> uuid.UUID:
    value = bytearray(at_ms.to_bytes(6, "big") + randomness)
    value[6] = (value[6] & 0x0F) | 0x70  # version 7
    value[8] = (value[8] & 0x3F) | 0x80  # RFC 9562 variant
    return uuid.UUID(bytes=bytes(value))
