"""An agent's key for its commands: asked for when a worker starts, and again if it seems changed.

Always holds: until the key is known, no command counts as signed. A signature that does not fit
makes the worker ask for the key at most once in ASK_AGAIN_S seconds, however many there are.
"""

from __future__ import annotations

import base64
import binascii
import time

from headway.agents import api
from headway.agents.command_signing import KEY_BYTES, has_signature, is_signed
from headway.agents.connection import Connection
from headway.agents.errors import HeadwayError, Unavailable
from headway.agents.messages import describe
from headway.agents.patience import patiently
from headway.agents.pull import Delivery
from headway.agents.subjects import agent_subject
from pydantic import BaseModel, ValidationError

ASK_TIMEOUT_S = 2.0
ASK_AGAIN_S = 10.0

UNSIGNED = "not signed: commands come from a coordinator, which signs them"
WRONGLY_SIGNED = "the signature does not fit: no coordinator wrote this for this subject"


class CommandKey(BaseModel):
    """`key` is 32 bytes in base64. `paced`: something limits the agent; see `pace`."""

    key: str
    paced: bool = False


class AgentKey:
    """The key of one agent, as one worker knows it."""

    def __init__(self, connection: Connection, agent: str) -> None:
        self._connection = connection
        self._agent = agent
        self._key = b""
        self.paced = False  # something limits the agent, as the last answer said
        self._asked_at = 0.0

    async def learn(self) -> None:
        """Ask until a coordinator answers, however long that takes."""
        pause = self._connection.wire.again.pause
        await patiently(self._ask, f"key of agent {self._agent}", pause=pause)

    async def learn_again(self) -> bool:
        """Ask once; whether there was an answer."""
        try:
            await self._ask()
        except HeadwayError:
            return False
        return True

    def may_have_changed(self, delivery: Delivery) -> bool:
        """Whether to ask again because of a command that has another signature."""
        waited_s = time.monotonic() - self._asked_at
        return has_signature(delivery.body) and waited_s >= ASK_AGAIN_S

    def complaint(self, delivery: Delivery) -> str:
        """What is wrong with a command's signature; "" if nothing is."""
        if self._key and is_signed(self._key, delivery.subject, delivery.body):
            return ""
        return WRONGLY_SIGNED if has_signature(delivery.body) else UNSIGNED

    async def _ask(self) -> None:
        self._asked_at = time.monotonic()
        subject = agent_subject(self._agent, "key")
        answer = await api.call(self._connection, subject, b"", ASK_TIMEOUT_S)
        self._key, self.paced = _told(answer)


def _told(answer: bytes) -> tuple[bytes, bool]:
    try:
        told = CommandKey.model_validate_json(answer, extra="ignore")
        key = base64.b64decode(told.key, validate=True)
    except ValidationError as error:
        raise Unavailable(f"not an answer to a question for a key: {describe(error)}") from error
    except binascii.Error as error:
        raise Unavailable(f"not a key: {error}") from error
    if len(key) != KEY_BYTES:
        raise Unavailable(f"not a key: it has {len(key)} bytes, not {KEY_BYTES}")
    return key, told.paced
