"""JSON as it is taken and kept here: finite numbers of at most 64 bits, and a limit to nesting.

Other JSON cannot be handed on safely: NaN would quietly become null, and what one parser still
reads another one refuses.
"""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any

import orjson
from pydantic_core import to_json

DEPTH_MAX = 64  # arrays and objects within each other

# Possessive, and up to the end if it has none: no text makes it look at anything twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?+)*+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class NotPlain(ValueError):
    """A value or a text that is JSON elsewhere, or not at all; the text says why."""


def encode(value: Any, *, made_of: Any = None) -> bytes:
    """A value of JSON's types as JSON; NotPlain if it cannot be kept as it is.

    `made_of` is what pydantic made it of, which has already turned NaN into None.
    """
    try:
        body = orjson.dumps(value)
    except TypeError as error:
        raise NotPlain(str(error)) from error
    if b"null" in body and not is_finite(value if made_of is None else made_of):
        raise NotPlain("a number is not finite")
    check_depth(body)
    return body


def is_text(words: str) -> bool:
    """Whether these can be written as UTF-8: half a surrogate pair cannot."""
    try:
        words.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_depth(body: bytes, limit: int = DEPTH_MAX) -> None:
    """NotPlain if the JSON in `body` is nested more than `limit` deep."""
    if body.count(b"[") + body.count(b"{") > limit and _is_deeper(body, limit):
        raise NotPlain(f"nested more than {limit} deep")


def is_finite(value: Any) -> bool:
    """orjson writes NaN and infinities as null; pydantic can write what no JSON parser reads."""
    try:
        orjson.loads(to_json(value, inf_nan_mode="constants"))
    except orjson.JSONDecodeError:
        return False
    return True


def _is_deeper(body: bytes, limit: int) -> bool:
    """Whether brackets nest more than `limit` deep outside of strings; linear, whatever it is."""
    brackets = _STRING.sub(b"", body).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > limit
