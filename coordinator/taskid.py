"""Task ids inside the coordinator: asyncpg's UUID, which is a `uuid.UUID` written in C.

It is read, hashed and printed about ten times faster than the standard library's, and equals it.
"""

from __future__ import annotations

import uuid

from asyncpg.pgproto import pgproto


def task_id(text: str) -> uuid.UUID:
    """Parse a task id; ValueError if it is none."""
    parsed: uuid.UUID = pgproto.UUID(text)
    return parsed
