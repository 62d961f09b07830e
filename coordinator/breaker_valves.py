"""What JetStream does about breakers: consumers that deliver nothing, or one at a time.

Always holds: a consumer is paused for longer than its breaker is open, but not for ever if all
coordinators are gone, unless a person paused it. What an agent has in hand when it is to be probed
(it may wait for a person) does not stand in a probe's way.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from headway.agents import subjects
from headway.agents.wire import Wire
from headway.coordinator import streams
from headway.coordinator.breaker import Breaker
from headway.coordinator.jetstream import JetStreamError, ask

_LOG = logging.getLogger(__name__)

KEPT_PAUSED_S = 60.0  # longer than the breaker is open, should nobody resume it
BY_A_PERSON_S = 10 * 365 * 86_400.0
NEVER = "0001-01-01T00:00:00Z"  # paused until then is not paused


class Valves:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._in_hand: dict[str, tuple[int, int]] = {}  # of a probed agent: its version, commands

    async def set(self, breaker: Breaker, now_ms: int) -> None:
        """Have the agent's consumer deliver as its breaker says."""
        place = f"{subjects.COMMANDS_STREAM}.{breaker.agent}"
        until = {"pause_until": _until(breaker, now_ms)}
        try:
            if breaker.state == "probing":
                await self._count(breaker, place)
            request = streams.agent_consumer(breaker.agent)
            request["config"] |= self.config(breaker, now_ms)
            if breaker.delivers:
                created = f"CONSUMER.CREATE.{place}.{request['config']['filter_subject']}"
                await ask(self._wire, created, request)
            await ask(self._wire, f"CONSUMER.PAUSE.{place}", until)
        except JetStreamError as error:  # its consumer is still to be made
            _LOG.info("agent %s: %s", breaker.agent, error)

    def config(self, breaker: Breaker, now_ms: int) -> dict[str, Any]:
        """What is unusual about the agent's consumer."""
        if not breaker.delivers:
            return {"pause_until": _until(breaker, now_ms)}
        if breaker.state != "probing":
            return {}
        version, in_hand = self._in_hand.get(breaker.agent, (0, 0))
        return {"max_ack_pending": 1 + (in_hand if version == breaker.version else 0)}

    async def _count(self, breaker: Breaker, place: str) -> None:
        """What the agent has in hand when the probing begins; looked up once."""
        if self._in_hand.get(breaker.agent, (0, 0))[0] != breaker.version:
            info = await ask(self._wire, f"CONSUMER.INFO.{place}")
            self._in_hand[breaker.agent] = breaker.version, info["num_ack_pending"]


def _until(breaker: Breaker, now_ms: int) -> str:
    if breaker.delivers:
        return NEVER
    left_s = BY_A_PERSON_S
    if breaker.until_ms is not None:
        left_s = (breaker.until_ms - now_ms) / 1_000 + KEPT_PAUSED_S
    until = datetime.fromtimestamp(now_ms / 1_000, UTC) + timedelta(seconds=left_s)
    return until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
