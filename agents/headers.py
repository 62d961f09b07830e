"""Raw blocks of NATS headers: from `NATS/1.0` to the empty line."""

from __future__ import annotations

from collections.abc import Mapping


def parse_headers(block: bytes) -> dict[str, str]:
    """A block as a mapping; names in lower case, the first of each counts."""
    found: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found


def header_block(headers: Mapping[str, str]) -> bytes:
    """Headers as they travel; b"" without any. None may have control characters in it."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"NATS/1.0\r\n{lines}\r\n".encode() if lines else b""
