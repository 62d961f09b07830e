"""The named statements of `sql/queries.sql`. Python holds no SQL."""

from __future__ import annotations

import re
from importlib import resources

_BLOCK = re.compile(r"^-- name: (?P<name>\w+)\n(?P<body>.*?)(?=^-- name: |\Z)", re.M | re.S)


def _load() -> dict[str, str]:
    text = resources.files("headway.coordinator.sql").joinpath("queries.sql").read_text("utf-8")
    found: dict[str, str] = {}
    for block in _BLOCK.finditer(text):
        name = block["name"]
        if name in found:
            raise ValueError(f"two statements are named {name!r} in queries.sql")
        found[name] = block["body"].strip().rstrip(";")
    return found


QUERIES: dict[str, str] = _load()
