"""What is refused by a request's head alone, whatever it asks for. Pure."""

from __future__ import annotations

from headway.agents.views import Problem
from headway.coordinator.http_connections import HEAD_MAX_BYTES
from headway.coordinator.problems import problem
from starlette.types import Scope


def complaint(scope: Scope) -> Problem | None:
    """Why a request is not looked at; None: it is."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in headers)
    if size > HEAD_MAX_BYTES:
        return problem(431, f"the address and the headers have more than {HEAD_MAX_BYTES} bytes")
    names = [name for name, _ in headers]
    if b"content-length" in names and b"transfer-encoding" in names:
        return problem(400, "a body has a length or an encoding for its transfer, not both")
    return None
