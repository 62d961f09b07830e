"""Dead letters: refused messages, kept in HW_DEAD with the reason, for people to look at.

Always holds: a letter fits into its stream, whatever the message was; no token is in it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

BODY_MAX_BYTES = 65_536  # of a refused message that is kept
TEXT_MAX_BYTES = 2 * BODY_MAX_BYTES  # as a JSON string; what has more is kept in base64
HEADERS_MAX_BYTES = 16_384  # of a refused message's headers; more of them are not kept
REASON_MAX_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Refused:
    """A message of `stream` that was refused.

    Attributes:
        headers: without the ones that show who asks.
        name: what a submission is known by if it does not name itself.
        owner: whom its token named.
    """

    stream: str
    subject: str
    body: bytes
    reason: str
    headers: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    owner: str = ""


def letter(refused: Refused) -> bytes:
    """The record of a refused message.

    The beginning of its body is in `body`, or in `body_base64` if that is not text. Headers that
    are too large to be kept are null.
    """
    kept = refused.body[:BODY_MAX_BYTES]
    written: dict[str, Any] = {
        "stream": refused.stream,
        "subject": refused.subject,
        "reason": refused.reason[:REASON_MAX_CHARS],
        "at": datetime.now(UTC),
        "size": len(refused.body),
        **_headers(refused.headers),
    }
    written |= {"name": refused.name} if refused.name else {}
    written |= {"owner": refused.owner} if refused.owner else {}
    try:
        text = orjson.Fragment(_text(kept))
    except ValueError:
        written["body_base64"] = base64.b64encode(kept).decode()
    else:
        written["body"] = text
    return orjson.dumps(written)


def _headers(headers: Mapping[str, str]) -> dict[str, Any]:
    if not headers:
        return {}
    fits = len(orjson.dumps(dict(headers))) <= HEADERS_MAX_BYTES
    return {"headers": dict(headers) if fits else None}


def _text(kept: bytes) -> bytes:
    """As a JSON string; ValueError if it is no text, or one that is much longer as that."""
    text = orjson.dumps(kept.decode())
    if len(text) > TEXT_MAX_BYTES:
        raise ValueError(f"{len(text)} bytes")
    return text
