"""Joins the calls of an attempt to the coordinators: its journal, and leave for sensitive tools."""

from __future__ import annotations

from collections.abc import Callable

from headway.agents import gates
from headway.agents.about import About
from headway.agents.connection import Connection
from headway.agents.entries import JournalOpen
from headway.agents.gates import GateRequest
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
        ask = gates.token_for if tool.redeems else gates.pass_gate
        return await ask(connection, request, waiting=waiting)

    return Calls(about, journal, Trial(in_thread, leave, journal.make_sure))
