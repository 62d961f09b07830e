"""`/healthz`: this process goes round its loop. `/readyz`: it can serve, or what it lacks.

Anybody may ask, and however many do, PostgreSQL and NATS are asked once in LOOK_EVERY_S.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping

from headway.coordinator.http_requests import JSON
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

LOOK_EVERY_S = 1.0
LOOK_WITHIN_S = 2.0

Look = Callable[[], Awaitable[object]]
"""Finds out whether something is there; raises whatever it likes, or lasts, if not."""


class Alive(BaseModel):
    """The answer of `/healthz`."""

    alive: bool = True


class Readiness(BaseModel):
    """The answer of `/readyz`: with status 503 while something is `missing`."""

    ready: bool
    missing: list[str]


class Probes:
    """`starting` is what is missing before the first look can be taken."""

    def __init__(self, starting: str) -> None:
        self._looks: Mapping[str, Look] = {}
        self._missing = [starting]
        self._looked_at = float("-inf")
        self._looking = asyncio.Lock()

    def routes(self) -> list[Route]:
        return [Route("/healthz", self._alive), Route("/readyz", self._ready)]

    def look_at(self, looks: Mapping[str, Look]) -> None:
        """From now on it counts whether each of these is there, by name."""
        self._looks, self._looked_at = looks, float("-inf")

    def leave(self) -> None:
        """From now on this coordinator is not to be asked for anything new."""
        self._looks, self._missing = {}, ["this coordinator: it is being stopped"]

    async def _alive(self, _request: Request) -> Response:
        return Response(Alive().model_dump_json(), media_type=JSON)

    async def _ready(self, _request: Request) -> Response:
        missing = await self._look()
        told = Readiness(ready=not missing, missing=missing)
        return Response(told.model_dump_json(), 503 if missing else 200, media_type=JSON)

    async def _look(self) -> list[str]:
        async with self._looking:
            looks = self._looks
            if looks and time.monotonic() - self._looked_at >= LOOK_EVERY_S:
                there = await asyncio.gather(*(_is_there(look) for look in looks.values()))
                if self._looks is looks:
                    self._missing = [
                        name for name, is_there in zip(looks, there, strict=True) if not is_there
                    ]
                    self._looked_at = time.monotonic()
            return list(self._missing)


async def _is_there(look: Look) -> bool:
    try:
        async with asyncio.timeout(LOOK_WITHIN_S):
            await look()
    except Exception:  # whatever it is, it is not there
        return False
    return True
