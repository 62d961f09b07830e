"""Whether a call of a sensitive tool may be made, and if not, why. Pure: decides on what was read.

Always holds: what a token is given for is all in the task's state at one version, in its manifest
and in the journal; so it is good while the version is that one and the intent is not settled.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from headway.agents.entries import SUPERSEDED, TOOL_NOT_ALLOWED
from headway.agents.gates import (
    CLOSED,
    CODES,
    DECIDED,
    OTHER_ARGUMENTS,
    OTHER_TOOL,
    REDEEMED,
    STALE,
    TOKEN_LIFETIME_S,
    Gate,
    GateRequest,
    GateView,
)
from headway.agents.identity import invocation_id, operation_id
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal
from headway.sagas.task import Phase, StepStatus, Task, TaskStatus

OPEN = "open"  # nobody needs to approve
WAITING = "waiting"
APPROVED = "approved"
REJECTED = "rejected"

_UNDER_WAY = {
    Phase.ACTION: (TaskStatus.RUNNING, StepStatus.SCHEDULED),
    Phase.COMPENSATION: (TaskStatus.COMPENSATING, StepStatus.COMPENSATING),
}


class Call(NamedTuple):
    """A call's intent in the journal of its operation, of which this is the epoch; `tool` is None
    if there is none, or if it is settled."""

    epoch: int
    tool: str | None
    arguments_digest: str | None


class Kept(NamedTuple):
    """A call's gate as it is stored."""

    tool: str
    arguments_digest: str
    status: str
    by: str
    reason: str


class Use(NamedTuple):
    """What is known of a token besides what it says. `by` and `at`: if it was redeemed."""

    newest: bool  # of those given for this call
    unsettled: bool  # the intent that it was given for
    by: UUID | None
    at: datetime | None


NO_USE = Use(newest=False, unsettled=False, by=None, at=None)
"""Of a token whose call has no gate any more."""


def refused(kind: str, reason: str) -> Refusal:
    """A refusal of one of the kinds that gates have."""
    return Refusal(reason, CODES[kind], kind)


def unwanted(task: Task, step: str, phase: Phase) -> str:
    """Why the task wants no call of this step's phase now; "" if it does."""
    status, step_status = _UNDER_WAY[phase]
    if task.status is not status:
        return f"the task is {task.status}"
    state = task.steps.get(step)
    if state is None:
        return f"there is no step {step!r}"
    if state.status is not step_status:
        return f"step {step!r} is {state.status}"
    return ""


def answer(
    request: GateRequest,
    task: Task,
    manifest: Manifest | None,
    call: Call | None,
    kept: Kept | None,
) -> str:
    """OPEN or APPROVED if a token may be given, else WAITING or REJECTED.

    Refusal if this very call is not wanted now: by the task, its manifest and the journal.
    """
    _check_wanted(request, task)
    _check_tool(request.tool, manifest)
    _check_call(request, call)
    if kept is None:
        return WAITING if request.requires_approval else OPEN
    _check_same(request, kept.tool, kept.arguments_digest)
    if kept.status == OPEN and request.requires_approval:
        return WAITING
    return kept.status


def check_decision(task: Task, view: GateView) -> None:
    """Refusal unless this call waits for a person, and the task still wants it."""
    if view.status == OPEN:
        raise refused(DECIDED, f"the call of {view.tool!r} needs nobody's approval")
    if view.decided_at is not None:
        when = _moment(view.decided_at)
        reason = f"the call of {view.tool!r} was {view.status} before, by {view.by} at {when}"
        raise refused(DECIDED, reason)
    if why := unwanted(task, view.step, Phase(view.phase)):
        raise refused(CLOSED, f"the task wants no call of step {view.step!r} now: {why}")


def gate(request: GateRequest, agent: str, task: Task, token_id: UUID, now_ms: int) -> Gate:
    """What a token given now says."""
    issued_at = now_ms // 1000
    return Gate(
        request.task,
        request.step,
        request.phase,
        agent,
        request.attempt,
        request.epoch,
        task.version,
        request.tool,
        request.arguments_digest,
        request.invocation,
        token_id,
        issued_at,
        issued_at + TOKEN_LIFETIME_S,
    )


def not_redeemable(gate: Gate, task: Task | None, use: Use) -> Refusal:
    """Why a token that is well signed and not too old could not be redeemed."""
    if use.at is not None:
        return refused(REDEEMED, f"the gate token was redeemed before, at {_moment(use.at)}")
    if task is None:
        return refused(CLOSED, f"there is no task {gate.task}")
    if why := unwanted(task, gate.step, Phase(gate.phase)):
        return refused(CLOSED, f"the task wants no call of step {gate.step!r} now: {why}")
    if task.version != gate.version:
        return refused(
            STALE,
            f"the gate token is for version {gate.version} of the task, which is at version "
            f"{task.version} now; ask for a new one",
        )
    if not use.newest:
        return refused(STALE, "a newer gate token was given for this call; only that one is good")
    return refused(CLOSED, f"the call of {gate.tool!r} is settled in the journal")


def _check_wanted(request: GateRequest, task: Task) -> None:
    step, held = request.step, task.beside.hold
    why = unwanted(task, step, Phase(request.phase))
    if not why and held is not None:
        why = f"the task is held: {held.reason}"
    if why:
        raise refused(CLOSED, f"the task wants no call of step {step!r} now: {why}")
    state = task.steps[step]
    asked, current = (request.attempt, request.epoch), (state.attempt, state.epoch)
    if not state.outstanding or asked != current:
        reason = (
            f"attempt {request.attempt} (epoch {request.epoch}) of step {step!r} is not the one "
            "that the task waits for"
        )
        raise Refusal(reason, 409, SUPERSEDED)


def _check_tool(tool: str, manifest: Manifest | None) -> None:
    if manifest is not None and manifest.tools is not None and tool not in manifest.tools:
        reason = (
            f"tool {tool!r} is not one of the {len(manifest.tools)} that the task's manifest allows"
        )
        raise Refusal(reason, 403, TOOL_NOT_ALLOWED)


def _check_call(request: GateRequest, call: Call | None) -> None:
    operation = operation_id(request.task, request.step, request.phase)
    if request.invocation != invocation_id(operation, request.key):
        raise Refusal(f"invocation: not the one of call {request.key!r} of this operation", 422)
    if call is not None and request.journal_epoch != call.epoch:
        reason = f"the journal was opened again: its epoch is {call.epoch}"
        raise Refusal(reason, 409, SUPERSEDED)
    if call is None or call.tool is None or call.arguments_digest is None:
        raise refused(CLOSED, f"the journal has no unsettled intent of call {request.key!r}")
    _check_same(request, call.tool, call.arguments_digest)


def _check_same(request: GateRequest, tool: str, arguments_digest: str) -> None:
    """Refusal if the call is not the one that these were noted of."""
    if request.tool != tool:
        reason = f"call {request.key!r} is of tool {tool!r}, not of {request.tool!r}"
        raise refused(OTHER_TOOL, reason)
    if request.arguments_digest != arguments_digest:
        reason = f"call {request.key!r} of {tool!r} has other arguments than those it began with"
        raise refused(OTHER_ARGUMENTS, reason)


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
