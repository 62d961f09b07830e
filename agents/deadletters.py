"""Dead letters: refused messages, kept in HW_DEAD with the reason, for people to look at."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import orjson

BODY_MAX_BYTES = 65_536  # of a refused message that is kept


def dead_letter(stream: str, subject: str, body: bytes, reason: str) -> bytes:
    """The record of a message of `stream` that was refused.

    Its beginning is in `body`, or in `body_base64` if it is not text.
    """
    kept = body[:BODY_MAX_BYTES]
    letter = {
        "stream": stream,
        "subject": subject,
        "reason": reason,
        "at": datetime.now(UTC),
        "size": len(body),
    }
    try:
        letter["body"] = kept.decode()
    except UnicodeDecodeError:
        letter["body_base64"] = base64.b64encode(kept).decode()
    return orjson.dumps(letter)
