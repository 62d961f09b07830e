"""A coordinator that is served on HTTP, and raw connections to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

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
