"""What an attempt calls tools for: its operation, and the tools that it may call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from headway.agents.entries import NewEntry, Operation
from headway.agents.errors import DeclarationError
from headway.agents.identity import invocation_id, operation_id
from headway.agents.signatures import Function
from headway.agents.tools import Call, Tool, declared


@dataclass(slots=True)
class About:
    """`tools` are those of the action, None for any; `deadline_at` is in seconds since 1970;
    `anew`: the task's last output was not accepted."""

    operation: Operation
    attempt: int
    tools: Mapping[str, Tool] | None
    deadline_at: float | None = None
    anew: bool = False

    def tool(self, function: Function) -> Tool:
        """How `function` was declared; DeclarationError if it may not be called here."""
        tool = declared(function)
        if self.tools is not None and self.tools.get(tool.name) is not tool:
            raise DeclarationError(
                f"tool {tool.name!r} is not one of this action's; "
                f"write tools=[…, {tool.function.__name__}] at its decorator"
            )
        return tool

    def call(self, intent: NewEntry, runs: int) -> Call:
        """The invocation of an intent, for run number `runs`."""
        of = self.operation
        due = self.deadline_at
        return Call(
            id=self.invocation(intent.key),
            key=intent.key,
            tool=intent.tool,
            task=of.task,
            attempt=runs,
            arguments_digest=intent.arguments_digest,
            deadline=None if due is None else datetime.fromtimestamp(due, UTC),
        )

    def invocation(self, key: str) -> UUID:
        of = self.operation
        return invocation_id(operation_id(of.task, of.step, of.phase), key)
