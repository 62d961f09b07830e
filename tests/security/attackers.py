"""Somebody who has an agent's credentials, and does with them what no worker would."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

import nats.errors
import orjson
from headway.agents import payloads
from headway.agents.api import ERROR_CODE
from headway.agents.connection import Connection, connect
from headway.agents.credentials import Credentials
from headway.agents.subjects import PAYLOADS_STREAM, agent_subject, payloads_by
from nats.aio.msg import Msg

_REFUSED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.I)
SETTLE_S = 5.0


class Attacker:
    """`refused` has the subjects that the server refused, in order."""

    def __init__(self, connection: Connection, agent: str) -> None:
        self.connection = connection
        self.nc = connection.nc
        self.agent = agent
        self.refused: list[str] = []

    async def publish(
        self, subject: str, body: bytes = b"{}", *, reply: str = "", **headers: str
    ) -> None:
        """Publish, and wait until the server has dealt with it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.nc.publish(subject, body, reply=reply, headers=named or None)
        await self.nc.flush(SETTLE_S)

    async def listen(self, subject: str) -> list[Msg]:
        """What comes there from now on, if anything does."""
        heard: list[Msg] = []

        async def hear(message: Msg) -> None:
            heard.append(message)

        await self.nc.subscribe(subject, cb=hear)
        await self.nc.flush(SETTLE_S)
        return heard

    async def ask(self, operation: str, body: dict[str, object] | bytes) -> tuple[int, str]:
        """The code and the reason with which a question of our own agent is answered."""
        data = body if isinstance(body, bytes) else orjson.dumps(body, default=str)
        subject = agent_subject(self.agent, operation)
        answer = await self.nc.request(subject, data, timeout=SETTLE_S)
        code = int((answer.headers or {}).get(ERROR_CODE, "200"))
        return code, orjson.loads(answer.data).get("detail", answer.data.decode())

    async def store(self, subject: str, body: bytes, **headers: str) -> dict[str, object]:
        """JetStream's answer to a publication; {} if there is none."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with suppress(nats.errors.Error, TimeoutError):
            answer = await self.nc.request(subject, body, timeout=1.0, headers=named or None)
            found: dict[str, object] = orjson.loads(answer.data or b"{}")
            return found
        return {}

    async def have_sent(self, subject: str, body: bytes) -> None:
        """Have the server itself send just these bytes there."""
        reference, _ = await payloads.put(
            self.connection.wire, payloads_by(self.agent), str(uuid4()), body
        )
        get = f"$JS.API.DIRECT.GET.{PAYLOADS_STREAM}.{reference}.0"
        await self.publish(get, b"", reply=subject)


@asynccontextmanager
async def attacking(url: str, credentials: Credentials | None) -> AsyncIterator[Attacker]:
    """Somebody with these credentials, or as the URL says, on the server at `url`."""
    async with await connect(url, name="attacker", credentials=credentials) as connection:
        attacker = Attacker(connection, credentials.agent if credentials else "")
        handler = logging.Handler()
        handler.emit = lambda record: attacker.refused.extend(  # type: ignore[method-assign]
            subject for _, subject in _REFUSED.findall(record.getMessage())
        )
        logger = logging.getLogger("headway.agents.connection")
        logger.addHandler(handler)
        try:
            yield attacker
            await asyncio.sleep(0)
        finally:
            logger.removeHandler(handler)
