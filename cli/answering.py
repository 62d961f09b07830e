"""Asking coordinators for their health, often enough at once to find one that does not answer.

Each request goes to one of those that listen, and a frozen coordinator goes on listening.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from headway.agents.api import call
from headway.agents.client import Client
from headway.agents.connection import Connection
from headway.agents.errors import Unavailable
from headway.agents.reading import Health
from headway.agents.subjects import api_subject
from headway.agents.wire import Unanswered
from headway.cli.findings import Finding, clock, note, ok
from nats.aio.msg import Msg

ASKED = (
    32  # requests at once: of five coordinators, one that is frozen gets none in 1 of 1,000 polls
)
SILENT_S = 1.5  # without an answer
PING = "$SRV.PING.headway"  # each coordinator answers, as any micro service
PING_S = 0.5
LOOK_AFTER_IT = "the others do its work meanwhile; if it stays so, end that process and start one"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a coordinator said, and when it was asked and had answered (Unix seconds)."""

    health: Health
    asked_at: float
    answered_at: float


@dataclass(frozen=True, slots=True)
class Poll:
    """The first answer, how many coordinators answer, and whether some request got no answer."""

    answer: Answer
    answering: int
    silent: bool

    def findings(self) -> Iterable[Finding]:
        answer = self.answer
        yield ok("coordinator", f"headway {answer.health.version} answers")
        told = answer.health.now.timestamp()
        yield clock("the coordinator", answer.asked_at, told, answer.answered_at)
        if self.silent:
            found = f"one of {self.answering + 1} coordinators is silent: frozen, or cut off"
            yield note("silent coordinator", found, LOOK_AFTER_IT)


async def poll(client: Client) -> Poll:
    """Ask until one answers; Unavailable if none does within the client's timeout."""
    return await client.insist("health", partial(_once, client.connection))


async def _once(connection: Connection) -> Poll:
    """Unavailable if no request is answered: with a coordinator's reason, if one gave any."""
    told = await asyncio.gather(*(_ask(connection) for _ in range(ASKED)))
    answers = [one for one in told if isinstance(one, Answer)]
    unanswered = [one for one in told if isinstance(one, Unanswered)]
    if not answers:
        reasons = [one for one in told if isinstance(one, Unavailable)]
        raise next((one for one in reasons if one not in unanswered), reasons[0])
    answering = await _answering(connection) if unanswered else 0
    return Poll(answers[0], answering, bool(unanswered))


async def _ask(connection: Connection) -> Answer | Unavailable:
    asked_at = time.time()
    try:
        body = await call(connection, api_subject("health"), b"{}", SILENT_S, repeatable=False)
    except Unavailable as error:
        return error
    return Answer(Health.model_validate_json(body), asked_at, time.time())


async def _answering(connection: Connection) -> int:
    """How many coordinators there are that answer."""
    heard: list[Msg] = []

    async def hear(message: Msg) -> None:
        heard.append(message)

    inbox = connection.wire.new_inbox()
    listening = await connection.nc.subscribe(inbox, cb=hear)
    await connection.nc.publish(PING, reply=inbox)
    await asyncio.sleep(PING_S)
    await listening.unsubscribe()
    return len(heard)
