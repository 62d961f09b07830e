"""Where in a delivery something stands: in its body, its query or its headers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.coordinator.errors import Refusal

POINTER, QUERY, HEADER, NAME = "pointer", "query", "header", "name"

_WORD = re.compile(r"[!-~]{1,200}")
_POINTER = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Content:
    """What a delivery brings. Names of headers are in lower case."""

    body: Any
    query: Mapping[str, str]
    headers: Mapping[str, str]


def check_place(place: str, what: str, *, named: bool = False) -> None:
    """Refusal (422) if this is no place; `named`: it may be the name itself."""
    kind, _, where = place.partition(":")
    if kind == POINTER:
        check_pointer(where, what)
    elif kind not in (QUERY, HEADER, *([NAME] if named else [])) or not _WORD.fullmatch(where):
        fixed = ", name:paid" if named else ""
        raise Refusal(
            f"{what}: written pointer:/data/{what}, query:{what}, header:X-{what.title()}{fixed}; "
            f"not {place!r}",
            422,
        )


def check_pointer(pointer: str, what: str) -> None:
    """Refusal (422) if this is no JSON pointer."""
    if _POINTER.fullmatch(pointer) is None:
        raise Refusal(f"{what}: {pointer!r} is no JSON pointer (RFC 6901)", 422)


def text_at(place: str, what: str, content: Content) -> str:
    """The text at a place; Refusal (422) if there is none."""
    kind, _, where = place.partition(":")
    match kind:
        case "name":
            return where
        case "query":
            found: Any = content.query.get(where)
        case "header":
            found = content.headers.get(where.lower())
        case _:
            found = value_at(where, what, content.body)
    if not isinstance(found, str) or not found:
        raise Refusal(f"{what}: there is no text at {place} of this delivery", 422)
    return found


def value_at(pointer: str, what: str, body: Any) -> Any:
    """What a JSON pointer points to; Refusal (422) if that is nothing."""
    found = body
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and _INDEX.fullmatch(key) and int(key) < len(found):
            found = found[int(key)]
        else:
            raise Refusal(f"{what}: there is nothing at {pointer} of this body", 422)
    return found
