"""Asking a coordinator whether a command may be run that was, perhaps, answered already."""

from __future__ import annotations

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
        worker=worker,
    )
    subject = agent_subject(agent, "claim")
    body = request.model_dump_json().encode()

    async def once() -> ClaimReply:
        try:
            answer = await api.call(connection, subject, body, CLAIM_TIMEOUT_S)
            return ClaimReply.model_validate_json(answer)
        except (Refused, InvalidInput) as error:
            return ClaimReply(granted=False, reason=str(error))
        except ValidationError as error:
            raise Unavailable(f"not an answer to a claim: {describe(error)}") from error

    return await patiently(once, f"claim of {command.id}")
