"""The named statements of `sql/*.sql`. Python holds no SQL."""

from __future__ import annotations

import re
from importlib import resources

_BLOCK = re.compile(r"^-- name: (?P<name>\w+)\n(?P<body>.*?)(?=^-- name: |\Z)", re.M | re.S)


def _load() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in resources.files("headway.coordinator.sql").iterdir():
        if not file.name.endswith(".sql"):
            continue
        for block in _BLOCK.finditer(file.read_text("utf-8")):
            name = block["name"]
            if name in found:
                raise ValueError(f"two statements are named {name!r}; one is in {file.name}")
            found[name] = block["body"].strip().rstrip(";")
    return found


QUERIES: dict[str, str] = _load()
