"""Arguments that carry more than one word: JSON, KEY=VALUE pairs, files of tasks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import typer
from headway.agents.manifest import Manifest
from headway.agents.messages import describe
from headway.cli.failures import BadInput
from pydantic import ValidationError

STANDARD_INPUT = "-"


def json_from(text: str | None, what: str) -> Any:
    """The JSON value that `text` is, or that standard input holds if it is `-`."""
    if text is None:
        return None
    body = sys.stdin.read() if text == STANDARD_INPUT else text
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{what} is not JSON: {error}") from None


def task_id(text: str) -> UUID:
    """The id of a task."""
    try:
        return UUID(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no task's id, which is a UUID; `headway list` shows those of tasks"
        ) from None


def in_utc(moment: datetime | None) -> datetime | None:
    """A moment in local time, unless it says otherwise; None stays None."""
    try:
        return None if moment is None else moment.astimezone(UTC)
    except (OverflowError, ValueError):
        raise BadInput(f"{moment}: in UTC it must be in the years 1 to 9999") from None


def json_in(path: Path) -> Any:
    """The JSON value that a file holds."""
    try:
        return orjson.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{path} is not JSON: {error}") from None


def manifest_from(text: str | None) -> Manifest | None:
    """The manifest that `text` is, or that the file of this name holds."""
    if text is None:
        return None
    inline = text.lstrip().startswith("{")
    given = json_from(text, "the manifest") if inline else json_in(Path(text))
    try:
        return Manifest.model_validate(given)
    except ValidationError as error:
        raise BadInput(f"not a manifest: {describe(error)}") from None


def attributes_from(pairs: Sequence[str] | None) -> dict[str, str]:
    """A mapping from KEY=VALUE arguments."""
    attributes = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise BadInput(f"an attribute is written KEY=VALUE, not {pair!r}")
        attributes[key] = value
    return attributes


def inputs_from(path: Path) -> list[Any]:
    """The inputs that a file of JSON lines holds; empty lines are skipped.

    The whole file is read before anything is sent, so that a bad line leaves nothing half done.
    """
    return list(_numbered(path))


def _numbered(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _line(path, number, line)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None


def _line(path: Path, number: int, line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BadInput(f"{path}:{number} is not JSON: {error}; nothing was submitted") from None
