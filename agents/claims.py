"""Asking a coordinator whether a command may be run that was, perhaps, answered already, and when:
something may limit how many begin.

Always holds: nothing begins before its turn; a turn that was slept through (a frozen process, a
busy one) is not used, but asked for again.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from uuid import UUID

from headway.agents import api
from headway.agents.connection import Connection
from headway.agents.errors import InvalidInput, Refused, Unavailable
from headway.agents.messages import Command, describe
from headway.agents.patience import patiently
from headway.agents.subjects import agent_subject
from headway.agents.views import ClaimReply, ClaimRequest
from pydantic import ValidationError

CLAIM_TIMEOUT_S = 2.0
LATE_MAX_S = 0.2  # after its turn an attempt may begin; later, it asks for another one
TURNS_MAX = 8  # where answers always take longer than that, it begins all the same


async def claim(
    connection: Connection,
    command: Command,
    task: UUID,
    *,
    delivered: int,
    agent: str,
    worker: str,
    first: bool,
) -> ClaimReply:
    """Ask until a coordinator answers, however long that takes, and wait for the turn. `first`: the
    command is new, so that only its turn is asked for."""
    request = ClaimRequest(
        task=task,
        step=command.step,
        phase=command.phase,
        attempt=command.attempt,
        epoch=command.epoch,
        delivery=delivered,
        worker=worker,
        first=first,
    )
    subject = agent_subject(agent, "claim")
    body = request.model_dump_json().encode()

    async def once() -> ClaimReply:
        try:
            answer = await api.call(connection, subject, body, CLAIM_TIMEOUT_S)
            return ClaimReply.model_validate_json(answer, extra="ignore")
        except (Refused, InvalidInput) as error:
            return ClaimReply(granted=False, reason=str(error))
        except ValidationError as error:
            raise Unavailable(f"not an answer to a claim: {describe(error)}") from error

    what = f"claim of {command.id}"
    for left in itertools.count(TURNS_MAX, -1):
        asked_at = time.monotonic()
        reply = await patiently(once, what, pause=connection.wire.again.pause)
        wait_s = (reply.start_in_ms or reply.again_in_ms) / 1_000
        if wait_s:
            await asyncio.sleep(wait_s)
        late_s = time.monotonic() - asked_at - wait_s
        too_late = reply.paced and late_s > LATE_MAX_S and left > 0
        if not reply.granted or not (reply.again_in_ms or too_late):
            break
    return reply
