"""Joins the calls of an attempt to the coordinators: its journal, and leave for sensitive tools."""

from __future__ import annotations

from collections.abc import Callable

from headway.agents import gates
from headway.agents.about import About
from headway.agents.connection import Connection
from headway.agents.entries import JournalOpen
from headway.agents.gates import GateRefused, GateRequest
from headway.agents.invocations import Calls
from headway.agents.journal import Journal, Keeping
from headway.agents.tools import Call, Tool
from headway.agents.trial import InThread, Trial


def calls_of(
    keeping: Keeping,
    connection: Connection,
    about: About,
    opening: JournalOpen,
    in_thread: InThread,
    waiting: Callable[[], object],
) -> Calls:
    """The calls of the attempt that opens its journal with `opening`. `waiting` is called every
    few seconds while a person is waited for."""
    journal = Journal(keeping)

    async def leave(tool: Tool, call: Call) -> str:
        request = GateRequest(
            task=opening.task,
            step=opening.step,
            phase=opening.phase,
            attempt=opening.attempt,
            epoch=opening.epoch,
            journal_epoch=journal.epoch,
            invocation=call.id,
            key=call.key,
            tool=tool.name,
            arguments_digest=call.arguments_digest,
            requires_approval=tool.requires_approval,
        )
        return await _token(connection, request, redeem=not tool.redeems, waiting=waiting)

    return Calls(about, journal, Trial(in_thread, leave))


async def _token(
    connection: Connection,
    request: GateRequest,
    *,
    redeem: bool,
    waiting: Callable[[], object],
) -> str:
    """A token, already used up if that is not left to the tool; a new one where the task moved on
    before it was. Raises as `gates.pass_gate` does."""
    while True:
        token = await gates.token_for(connection, request, waiting=waiting)
        if not redeem:
            return token
        try:
            await gates.redeem(
                connection, token, tool=request.tool, arguments_digest=request.arguments_digest
            )
            return token
        except GateRefused as refused:
            if refused.kind not in (gates.STALE, gates.EXPIRED):
                raise
