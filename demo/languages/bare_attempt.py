"""One attempt of an agent on bare nats-py: its handler's call, and the one event that ends it.

Always holds: the command is acked only after the stream confirmed that event, or when a claim said
that nobody wants one; of two ends, the first counts.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from headway.demo.languages.bare_wire import BareWire
from headway.demo.languages.bare_words import PayloadLost, failure, operation_id, outcome
from nats.aio.msg import Msg

BEGIN_WITHIN_S = 1.0
BEATS_PER_TIMEOUT = 3
PROGRESS_EVERY_S = 1.0
HAND_BACK_S = 1.0


@dataclass(frozen=True, slots=True)
class Given:
    """What a handler is given. `stop` is set when its work is not wanted any more."""

    command: dict[str, Any]
    data: dict[str, Any]
    operation: str
    action_operation: str
    stop: asyncio.Event
    heartbeat: Callable[[Any], Awaitable[None]]

    @property
    def input(self) -> Any:
        return self.data.get("input")


Handlers = Mapping[str, tuple[str, Callable[[Given], Awaitable[Any]]]]
"""By the name of the action: its phase, and what carries it out."""


class Attempt:
    """Carries out one command; `work` is done when all is over."""

    work: asyncio.Task[None]

    def __init__(
        self, wire: BareWire, handlers: Handlers, msg: Msg, action: str, command: dict[str, Any]
    ) -> None:
        self.msg = msg
        self.command = command
        self._wire = wire
        self._handler = handlers.get(action)
        self._action = action
        self._epoch: int = command["epoch"]
        self._stop = asyncio.Event()
        self._reported = False
        self._beats = 0
        self._beaten_at = 0.0

    def start(self, *, claim: bool, first: bool) -> None:
        self.work = asyncio.create_task(self._run(claim, first))

    async def adopt(self, msg: Msg) -> None:
        """The same command was delivered again: answer the newer delivery."""
        self.msg = msg
        await self.keep()

    async def keep(self) -> None:
        """Tell the server that the command is worked on."""
        if not self.work.done():
            await self._answer(b"+WPI")

    def stop(self, attempt: int) -> None:
        """The action is not wanted any more, up to this attempt."""
        if self.command["phase"] == "action" and self.command["attempt"] <= attempt:
            self._stop.set()

    async def hand_back(self) -> None:
        """Stop, and give the command to another instance."""
        if self._reported:
            await self.work
            return
        self._reported = True
        self.work.cancel()
        try:
            async with asyncio.timeout(HAND_BACK_S):
                await self._wire.store(self._subject, self._event("handedback"))
        except TimeoutError:
            pass
        await self._answer(b"-NAK")

    async def _run(self, claim: bool, first: bool) -> None:
        began = time.monotonic()
        if claim and not await self._claim(first):
            return
        command = self.command
        if self._handler is None or self._handler[0] != command["phase"]:
            text = f"no {command['phase']} named {self._action!r} in this process"
            error = {"type": "UnknownAction", "message": text, "noeffect": True}
            await self._end("failed", {"error": error})
            return
        try:
            data = command.get("data") or json.loads(await self._fetch())
        except (PayloadLost, ValueError) as lost:
            await self._end("failed", {"error": failure(PayloadLost(str(lost)))})
            return
        if data.get("sealed"):
            text = "the task is encrypted, and this agent has no keys"
            error = {"type": "Undecryptable", "message": text, "noeffect": True, "hold": True}
            await self._end("failed", {"error": error})
            return
        if command.get("reportstart"):
            await self._wire.store(self._subject, self._event("started"))
        slow = time.monotonic() - began > BEGIN_WITHIN_S
        if not slow or claim or await self._claim(False):
            await self._handle(self._handler[1], data)

    async def _handle(self, run: Callable[[Given], Awaitable[Any]], data: dict[str, Any]) -> None:
        command = self.command
        operations = operation_id(command), operation_id(command, "action")
        given = Given(command, data, *operations, self._stop, self._beat)
        limit_s = command.get("starttoclosems", 0) / 1_000 or None
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                result = outcome(command["phase"], await run(given))
        except Exception as error:
            result = {"error": failure(error)}
        if limit.expired():
            await self._end("timedout")
        else:
            await self._end("failed" if "error" in result else "completed", result)

    async def _end(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Report how it ended, and ack when that is stored."""
        if self._reported:
            return
        self._reported = True
        event = await self._wire.fitting(self._event(kind, data))
        await self._wire.store(self._subject, event)
        await self._answer(b"+ACK")

    async def _claim(self, first: bool) -> bool:
        same = {key: self.command[key] for key in ("task", "step", "phase", "attempt", "epoch")}
        delivery = self.msg.metadata.num_delivered
        reply = await self._wire.claim(
            same | {"delivery": delivery, "worker": self._wire.worker, "first": first}
        )
        if reply["granted"]:
            self._epoch = reply.get("epoch", self._epoch)
        elif not reply.get("elsewhere"):
            await self._answer(b"+ACK")
        return bool(reply["granted"])

    async def _beat(self, progress: Any) -> None:
        timeout_s = self.command.get("heartbeatms", 0) / 1_000
        every_s = timeout_s / BEATS_PER_TIMEOUT or PROGRESS_EVERY_S
        if self._reported or time.monotonic() - self._beaten_at < every_s:
            return
        self._beaten_at = time.monotonic()
        self._beats += 1
        event = self._event("heartbeat", {"progress": progress})
        await self._wire.say(self._subject, event | {"id": f"{event['id']}.{self._beats}"})

    async def _answer(self, word: bytes) -> None:
        await self._wire.nc.publish(self.msg.reply, word)

    async def _fetch(self) -> bytes:
        return await self._wire.get_payload(self.command["dataref"], self.command["datadigest"])

    @property
    def _subject(self) -> str:
        return f"hw.events.{self._wire.agent}.{self.command['task']}"

    def _event(self, kind: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
        event = {
            "specversion": "1.0",
            "id": f"{self.command['id']}.{self._epoch}.{kind}",
            "type": f"headway.attempt.{kind}",
            "source": f"/headway/agents/{self._wire.agent}/{self._wire.worker}",
            **{key: self.command[key] for key in ("task", "step", "phase", "attempt")},
            "epoch": self._epoch,
        }
        return event if data is None else event | {"data": data}
