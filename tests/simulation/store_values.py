"""Values as PostgreSQL takes and gives them: what it refuses is refused here with its own errors.

Times are kept in ms since 1970, as they come in; rows give them as PostgreSQL does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.errors import StoreRefused

INTEGER_MAX = 2**31 - 1
BIGINT_MAX = 2**63 - 1
UUID_DIGITS = 32
_BEGINNING = datetime.fromtimestamp(0, UTC)


class Row(Mapping[str, Any]):
    """A row of an answer: by column, by place, and, as asyncpg's are, iterated by value."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns

    def __getitem__(self, column: str | int) -> Any:
        if isinstance(column, int):
            return list(self._columns.values())[column]
        return self._columns[column]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns.values())

    def __len__(self) -> int:
        return len(self._columns)

    def keys(self) -> Any:
        return self._columns.keys()

    def values(self) -> Any:
        return self._columns.values()

    def items(self) -> Any:
        return self._columns.items()

    def __repr__(self) -> str:
        return f"<Row {self._columns}>"


def array(literal: str) -> list[Any]:
    """What an array literal of `literals` holds."""
    return [_element(each.strip()) for each in literal[1:-1].split(",") if each]


def _element(text: str) -> Any:
    if text in ("t", "f"):
        return text == "t"
    if len(text) == UUID_DIGITS:
        return UUID(text)
    if text == "NULL":
        return None
    return int(text) if text.lstrip("-").isdigit() else text


def moment(at: int | None) -> datetime | None:
    """A time, from ms since 1970."""
    return None if at is None else datetime.fromtimestamp(at / 1000, UTC)


def ms(at: datetime | None) -> int | None:
    """A time in ms since 1970; what is past the calendar's end counts as its end."""
    return None if at is None else round((at - _BEGINNING).total_seconds() * 1000)


def text(*values: str | None) -> None:
    """Refused: what PostgreSQL cannot keep as text."""
    for value in values:
        if value is None:
            continue
        if not isinstance(value, str):
            raise StoreRefused(f"DataError: expected str, got {type(value).__name__}")
        if "\0" in value:
            raise StoreRefused(
                'CharacterNotInRepertoireError: invalid byte sequence for encoding "UTF8": 0x00'
            )
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise StoreRefused("DataError: surrogates not allowed") from error


def integer(*values: int | None, most: int = INTEGER_MAX) -> None:
    """Refused: what is no integer, or too large for its column."""
    for value in values:
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise StoreRefused(f"DataError: an integer is required, got {type(value).__name__}")
        if not -most - 1 <= value <= most:
            raise StoreRefused("DataError: value out of range")


def bigint(*values: int | None) -> None:
    integer(*values, most=BIGINT_MAX)


def uuid(*values: UUID | None) -> None:
    """Refused: what is no UUID."""
    for value in values:
        if value is not None and not isinstance(value, UUID):
            raise StoreRefused(f"DataError: invalid UUID {type(value).__name__}")


def stored_json(*values: bytes | str | None) -> None:
    """Refused: what a column of type json refuses. It keeps the text as it comes."""
    for value in values:
        if value is None:
            continue
        try:
            orjson.loads(value)
        except orjson.JSONDecodeError:
            _read_leniently(value)


def _read_leniently(value: bytes | str) -> None:
    """As PostgreSQL reads, which takes half a surrogate pair where orjson does not."""
    try:
        json.loads(value, parse_constant=_no_constant)
    except ValueError as error:
        raise StoreRefused(
            "InvalidTextRepresentationError: invalid input syntax for type json"
        ) from error


def binary_json(value: str) -> Any:
    """The value of what a column of type jsonb takes; refused, what it refuses."""
    stored_json(value)
    found = json.loads(value)
    if _has_nul(found):
        raise StoreRefused("UntranslatableCharacterError: unsupported Unicode escape sequence")
    return found


def text_of(found: Mapping[str, Any], field: str) -> str | None:
    """The function of that name: the text of a field of a JSON object."""
    value = found.get(field)
    return None if value is None else str(value).replace("\0", "\ufffd")


def contains(whole: Mapping[str, str], part: Mapping[str, str]) -> bool:
    """The operator @> of jsonb, for objects of texts."""
    return all(name in whole and whole[name] == value for name, value in part.items())


def _has_nul(value: Any) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_has_nul(each) for pair in value.items() for each in pair)
        case list():
            return any(map(_has_nul, value))
    return False


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
