"""Asking a coordinator whether a command may be run that was, perhaps, answered already."""

from __future__ import annotations

import asyncio
import logging
from uuid import UUID

from headway.agents import api
from headway.agents.connection import Connection
from headway.agents.errors import InvalidInput, Refused, Unavailable
from headway.agents.messages import Command
from headway.agents.views import ClaimReply, ClaimRequest
from pydantic import ValidationError

CLAIM_TIMEOUT_S = 2.0
AGAIN_FIRST_S = 0.1
AGAIN_MAX_S = 1.0

_log = logging.getLogger("headway.agents.claims")


async def claim(
    connection: Connection,
    command: Command,
    task: UUID,
    *,
    delivered: int,
    agent: str,
    worker: str,
) -> ClaimReply:
    """Ask until a coordinator answers, however long that takes."""
    request = ClaimRequest(
        task=task,
        step=command.step,
        phase=command.phase,
        attempt=command.attempt,
        epoch=command.epoch,
        delivery=delivered,
        agent=agent,
        worker=worker,
    )
    body = request.model_dump_json().encode()
    pause_s = AGAIN_FIRST_S
    while True:
        try:
            answer = await api.call(connection, "claim", body, CLAIM_TIMEOUT_S)
            return ClaimReply.model_validate_json(answer)
        except (Refused, InvalidInput) as error:
            return ClaimReply(granted=False, reason=str(error))
        except (Unavailable, ValidationError) as error:
            _log.debug("%s: no answer to a claim yet: %s", command.id, error)
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, AGAIN_MAX_S)
