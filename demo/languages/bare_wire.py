"""What an agent on bare nats-py sends and asks for: again and again, until it is confirmed or
answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import nats.errors
from headway.demo.languages.bare_words import INLINE_MAX_BYTES, PayloadLost
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import APIError

ASK_TIMEOUT_S = 2.0
STORE_TIMEOUT_S = 5.0
PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 1.0
PART_BYTES = 262_144
PART_IS_THERE = 10077
ABSENT_FOR_S = 1.0
TURNS_MAX = 8
LATE_MAX_S = 0.2

T = TypeVar("T")


class NotYet(Exception):
    """A coordinator is there, and cannot answer now."""


class BareWire:
    """One connection of agent `agent`, whose instance is `worker`."""

    def __init__(self, nc: Client, agent: str, worker: str) -> None:
        self.nc = nc
        self.js = nc.jetstream()
        self.agent = agent
        self.worker = worker
        self._again = asyncio.Event()

    async def say(self, subject: str, value: Any) -> None:
        """As core NATS does: whoever listens gets it, if anybody."""
        if self.nc.is_connected:
            await self.nc.publish(subject, json.dumps(value).encode())

    async def store(self, subject: str, value: Any) -> None:
        """Have it stored, however long that takes."""
        body = json.dumps(value).encode()

        async def once() -> None:
            await self.js.publish(subject, body, timeout=STORE_TIMEOUT_S)

        await self._patiently(once)

    async def ask(self, operation: str, request: dict[str, Any]) -> Any:
        """The answer to a question, however long that takes."""
        subject, body = f"hw.agents.{self.agent}.{operation}", json.dumps(request).encode()

        async def once() -> Any:
            msg = await self.nc.request(subject, body, timeout=ASK_TIMEOUT_S)
            headers = msg.headers or {}
            code = int(headers.get("Nats-Service-Error-Code", 0))
            if not code:
                return json.loads(msg.data)
            reason = headers.get("Nats-Service-Error", "")
            if code < 500 and operation == "claim":
                return {"granted": False, "reason": reason}
            raise NotYet(reason)

        return await self._patiently(once)

    async def claim(self, request: dict[str, Any]) -> Any:
        """The answer to a claim, once it is one's turn."""
        for left in range(TURNS_MAX, -1_000_000, -1):
            asked = time.monotonic()
            reply = await self.ask("claim", request)
            wait_s = (reply.get("start_in_ms") or reply.get("again_in_ms") or 0) / 1_000
            if wait_s:
                await asyncio.sleep(wait_s)
            late_s = time.monotonic() - asked - wait_s
            too_late = reply.get("paced") and late_s > LATE_MAX_S and left > 0
            if not reply["granted"] or not (reply.get("again_in_ms") or too_late):
                return reply
        raise AssertionError("unreachable")

    async def fitting(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event, with its data in the payload store if it is too large."""
        if len(json.dumps(event).encode()) <= INLINE_MAX_BYTES:
            return event
        body = json.dumps(event["data"]).encode()
        digest = hashlib.sha256(body).hexdigest()
        count = max(1, -(-len(body) // PART_BYTES))
        reference = f"hw.payloads.by.{self.agent}.{event['task']}.{digest}.{count}"
        for number in range(count):
            part = body[number * PART_BYTES : (number + 1) * PART_BYTES]
            await self._put(f"{reference}.{number}", part)
        await self.get_payload(reference, digest)
        rest = {key: value for key, value in event.items() if key != "data"}
        return rest | {"dataref": reference, "datadigest": digest}

    async def get_payload(self, reference: str, digest: str) -> bytes:
        """The bytes of a reference; PayloadLost if they are not there, or not what was sent."""
        count = reference.rpartition(".")[2]
        if not reference.startswith("hw.payloads.") or not count.isdigit():
            raise PayloadLost("not a reference")
        body = b"".join([await self._get(f"{reference}.{number}") for number in range(int(count))])
        if hashlib.sha256(body).hexdigest() != digest:
            raise PayloadLost(f"{reference} is not what was sent")
        return body

    async def on_coordinator(self, msg: Msg) -> None:
        """A coordinator came, or was lost: whoever waits for an answer asks again."""
        if not msg.data and not msg.headers:
            self._again.set()

    async def _put(self, subject: str, part: bytes) -> None:
        async def once() -> None:
            try:
                await self.js.publish(subject, part, timeout=STORE_TIMEOUT_S)
            except APIError as error:
                if error.err_code != PART_IS_THERE:
                    raise

        await self._patiently(once)

    async def _get(self, subject: str) -> bytes:
        deadline = time.monotonic() + ABSENT_FOR_S

        async def once() -> bytes:
            request = f"$JS.API.DIRECT.GET.HW_PAYLOADS.{subject}"
            msg = await self.nc.request(request, b"", timeout=STORE_TIMEOUT_S)
            status = (msg.headers or {}).get("Status")
            if not status:
                return msg.data
            if status == "404" and time.monotonic() > deadline:
                raise PayloadLost(f"{subject} is not there")
            raise NotYet(status)

        return await self._patiently(once)

    async def _patiently(self, once: Callable[[], Awaitable[T]]) -> T:
        """Try again, with growing pauses, until it works; PayloadLost is final."""
        pause_s = PAUSE_FIRST_S
        while True:
            try:
                return await once()
            except (nats.errors.Error, NotYet, OSError, ValueError):
                if self.nc.is_closed:
                    raise
            self._again.clear()
            try:
                await asyncio.wait_for(self._again.wait(), pause_s)
            except TimeoutError:
                pause_s = min(2 * pause_s, PAUSE_MAX_S)
