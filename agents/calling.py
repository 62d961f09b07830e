"""Joins the calls of an attempt to the coordinators: its journal, and leave for sensitive tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from headway.agents import gates
from headway.agents.about import About
from headway.agents.connection import Connection
from headway.agents.entries import JournalOpen
from headway.agents.gates import GateRequest
from headway.agents.invocations import Calls
from headway.agents.journal import Journal, Keeping
from headway.agents.tools import Call, Tool
from headway.agents.trial import InThread, Trial


class Waits(Protocol):
    """The waits of an attempt for a person's word."""

    def begin(self) -> Callable[[], None]:
        """What is to be called every few seconds while a person is waited for."""

    def over(self, wait: Callable[[], None], /) -> None:
        """Nobody is waited for any more."""


def calls_of(
    keeping: Keeping,
    connection: Connection,
    agent: str,
    about: About,
    opening: JournalOpen,
    in_thread: InThread,
    waits: Waits,
) -> Calls:
    """The calls of the attempt of `agent` that opens its journal with `opening`."""
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
        wait = waits.begin() if tool.requires_approval else None
        try:
            return await ask(connection, request, agent=agent, waiting=wait)
        finally:
            if wait is not None:
                waits.over(wait)

    return Calls(about, journal, Trial(in_thread, leave, journal.make_sure))
