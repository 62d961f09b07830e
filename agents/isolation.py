"""Leaving a NATS server that is cut off from the others of its cluster.

Such a server goes on serving its clients, and nothing that they ask of JetStream is decided any
more, while the rest of the cluster works without them. Its clients cannot tell this from an
election by what they hear; so before they leave, another server must have proved to be better.

What always holds: a server that stands alone, and one whose cluster is as far as it can be, is
never left.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import orjson
from headway.agents.connection import Connection
from headway.agents.errors import Unavailable

LOOK_INTERVAL_S = 1.0
ANSWER_TIMEOUT_S = 1.0
BAD_LOOKS = 2  # in a row, after which another server is looked at
COPY_SILENT_S = 3.0  # a leader hears each copy every second

NOT_FOUND = 404

_NANOSECONDS = 1_000_000_000
_log = logging.getLogger("headway.agents.isolation")


def hears_majority(info: dict[str, Any]) -> bool:
    """Whether what JetStream says of a stream or consumer comes from a leader whom most of its
    copies obey. True for one without copies."""
    cluster = info.get("cluster") or {}
    copies = cluster.get("replicas") or []
    if not copies:
        return True
    if not cluster.get("leader"):
        return False
    heard = sum(is_heard(copy) for copy in copies)
    return 2 * (heard + 1) > len(copies) + 1


def is_heard(copy: dict[str, Any]) -> bool:
    """Whether a leader has heard this copy lately; `active` is 0 for one that it never heard."""
    silent_ns: int = copy.get("active", 0)
    never = silent_ns == 0 and not copy.get("current")
    return not never and silent_ns < COPY_SILENT_S * _NANOSECONDS


class Isolation:
    """Watches one connection by asking `$JS.API.<question>`: a STREAM.INFO or CONSUMER.INFO."""

    def __init__(self, connection: Connection, question: str) -> None:
        self._connection = connection
        self._question = question

    async def run(self) -> None:
        """Look for ever, and move the connection when that helps."""
        bad = 0
        while True:
            await asyncio.sleep(LOOK_INTERVAL_S)
            may_leave = self._connection.wire.connected and self._connection.others
            bad = bad + 1 if may_leave and not await serves(self._connection, self._question) else 0
            if bad >= BAD_LOOKS and await self._leave():
                bad = 0

    async def _leave(self) -> bool:
        """Move to a server that serves, if there is one."""
        for server in self._connection.others:
            try:
                async with await self._connection.beside(server) as there:
                    better = await serves(there, self._question)
            except Unavailable:
                continue
            if better:
                _log.warning("JetStream does not work here, but does at %s: going there", server)
                await self._connection.move(server)
                return True
        return False


async def serves(connection: Connection, question: str) -> bool:
    """Whether JetStream answers `$JS.API.<question>` there, and is obeyed. That the stream or
    consumer is not made yet is an answer, too."""
    try:
        message = await connection.wire.ask(f"$JS.API.{question}", b"", ANSWER_TIMEOUT_S)
    except Unavailable:
        return False
    info = orjson.loads(message.data)
    error = info.get("error")
    return hears_majority(info) if error is None else bool(error["code"] == NOT_FOUND)
