"""Between the rows of `sql/gates.sql` and values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import asyncpg
import orjson
from headway.agents.gates import Gate, GateRequest, GateView
from headway.agents.views import WaitingView
from headway.coordinator.gating import Call, Kept

CONTEXT_CHARS = 16  # of a digest, in lists

_OF_REQUEST = {"phase", "attempt", "epoch", "key", "invocation", "arguments_digest"}
_OF_VIEW = {"phase", "key", "invocation", "arguments_digest"}


def call_of(rows: Sequence[asyncpg.Record]) -> Call | None:
    """What the journal has of a call, from `gate_and_call`."""
    if not rows:
        return None
    return Call(rows[0]["epoch"], rows[0]["tool"], rows[0]["arguments_digest"])


def kept_of(rows: Sequence[asyncpg.Record]) -> Kept | None:
    """A call's gate, from `gate_and_call`."""
    if not rows or rows[0]["status"] is None:
        return None
    row = rows[0]
    tool, digest = row["gate_tool"], row["gate_arguments_digest"]
    return Kept(tool, digest, row["status"], row["decided_by"], row["reason"])


def view_of(row: asyncpg.Record) -> GateView:
    """A gate as people see it."""
    return GateView(
        task=row["task_id"],
        step=row["step"],
        phase=row["phase"],
        invocation=row["invocation"],
        key=row["key"],
        tool=row["tool"],
        arguments_digest=row["arguments_digest"],
        status=row["status"],
        since=row["since"],
        by=row["decided_by"],
        reason=row["reason"],
        decided_at=row["decided_at"],
    )


def waiting_of(row: asyncpg.Record) -> WaitingView:
    """A call in the list of what waits for a person; with its arguments, unless they are large."""
    tool, arguments = row["tool"], row["arguments"]
    return WaitingView(
        task=row["task_id"],
        saga=row["saga"],
        kind="gate",
        step=row["step"],
        phase=row["phase"],
        reason=f"a call of tool {tool!r} waits for a person's approval",
        since=row["since"],
        actions=["approve", "reject"],
        context=row["arguments_digest"][:CONTEXT_CHARS],
        invocation=row["invocation"],
        key=row["key"],
        tool=tool,
        details=None if arguments is None else orjson.loads(arguments),
    )


def columns_of(request: GateRequest) -> tuple[Any, ...]:
    """The first parameters of the statements that may make a gate."""
    return (
        request.task,
        request.invocation,
        request.step,
        request.phase,
        request.key,
        request.tool,
        request.arguments_digest,
    )


def data_of_request(request: GateRequest, **more: Any) -> bytes:
    """What the audit log has of a request, beside its columns."""
    return orjson.dumps({**request.model_dump(mode="json", include=_OF_REQUEST), **more})


def data_of_view(view: GateView) -> bytes:
    """What the audit log has of a decision, beside its columns."""
    return orjson.dumps(view.model_dump(mode="json", include=_OF_VIEW))


def data_of_gate(gate: Gate, **more: Any) -> bytes:
    """What the audit log has of a token, beside its columns."""
    return orjson.dumps(
        {
            "phase": gate.phase,
            "attempt": gate.attempt,
            "epoch": gate.epoch,
            "version": gate.version,
            "invocation": gate.invocation,
            "arguments_digest": gate.arguments_digest,
            **more,
        }
    )
