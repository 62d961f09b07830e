"""A coordinator that is served on HTTP, and raw connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from harness.system import System
from headway.coordinator.app import Coordinator

CONSOLE_TOKEN = "hw_console_0123456789abcdef"


@dataclass(frozen=True)
class Served:
    """`tokens` by role."""

    system: System
    coordinator: Coordinator
    tokens: dict[str, str]

    @property
    def address(self) -> str:
        return self.coordinator._http.address

    def shown(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.tokens[role]}"}

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection on which anything may be sent."""
        place = urlsplit(self.address)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def raw_answer(self, request: bytes) -> bytes:
        """What comes back until the connection ends, or 10 s have gone."""
        async with self.raw() as (reader, writer):
            writer.write(request)
            answer = b""
            try:
                async with asyncio.timeout(10):
                    while chunk := await reader.read(65_536):
                        answer += chunk
            except (TimeoutError, ConnectionError):
                pass
            return answer


def detail_of(answer: httpx.Response) -> tuple[int, str]:
    """Status and words of a refusal, which is a problem object."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert set(problem) == {"type", "title", "detail", "status"}
    assert problem["status"] == answer.status_code
    return answer.status_code, problem["detail"]


async def submitted(client: httpx.AsyncClient, input: Any, **fields: Any) -> httpx.Response:
    """What a task for `linear` is answered with."""
    return await client.post("/api/submit", json={"saga": "linear", "input": input, **fields})
