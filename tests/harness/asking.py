"""Asking the HTTP API as a program would, beside a browser that looks at the console."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

ANSWER_WITHIN_S = 20.0


@dataclass(frozen=True)
class Asking:
    """The API of a running system; a problem that it answers fails the test with its text."""

    http: httpx.AsyncClient

    async def read(self, operation: str, **parameters: Any) -> dict[str, Any]:
        return _good(await self.http.get(f"/api/{operation}", params=parameters))

    async def act(self, operation: str, **body: Any) -> dict[str, Any]:
        return _good(await self.http.post(f"/api/{operation}", json=body))

    async def submit(self, saga: str, given: Any, **options: Any) -> str:
        """Hand in a task; answers its id."""
        return str((await self.act("submit", saga=saga, input=given, **options))["task"])

    async def settled(self, saga: str, given: Any, **options: Any) -> str:
        """Hand in a task and wait until it is settled, 5 s at most; answers its id."""
        task = await self.submit(saga, given, **options)
        await self.read("get", task=task, wait_s=5)
        return task

    async def status(self, task: str) -> str:
        return str((await self.read("get", task=task))["status"])

    async def last(self, task: str, kind: str) -> dict[str, Any]:
        """What the last event of that type in a task's history says."""
        entries = (await self.read("history", task=task))["entries"]
        found = [entry["data"] for entry in entries if entry["type"] == kind]
        assert found, f"no {kind} in {[entry['type'] for entry in entries]}"
        return dict(found[-1])


@asynccontextmanager
async def asking(url: str, token: str) -> AsyncIterator[Asking]:
    """The API at `url` with that token, while the block lasts."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=ANSWER_WITHIN_S) as http:
        yield Asking(http)


def _good(answer: httpx.Response) -> dict[str, Any]:
    assert answer.is_success, answer.text
    return dict(answer.json())
