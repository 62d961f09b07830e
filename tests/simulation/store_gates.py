"""Statements of gates, as `gates.sql` has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_journals import PHASES
from simulation.store_tables import (
    EntryRow,
    GateEventRow,
    GateRow,
    JournalRow,
    Place,
    Tables,
    reads,
    writes,
)
from simulation.store_values import Row, moment

SEED_BYTES = 32
_WANTED = {"action": ("running", "scheduled"), "compensation": ("compensating", "compensating")}


@reads
def signing_key(tables: Tables) -> list[Row]:
    return [] if tables.signing_key is None else [Row(seed=tables.signing_key)]


@writes
def keep_signing_key(tables: Tables, seed: bytes, at: int) -> list[Row]:
    v.bigint(at)
    if len(seed) != SEED_BYTES:
        raise StoreRefused("CheckViolationError: signing_keys_seed_check")
    if tables.signing_key is None:
        tables.signing_key = seed
    return []


@reads
def gate_and_call(
    tables: Tables, task: UUID, step: str, phase: str, key: str, invocation: UUID
) -> list[Row]:
    v.uuid(task, invocation)
    v.text(step, phase, key)
    head = tables.journals.get((task, step, phase))
    if head is None:
        return []
    call = _intent(tables, (task, step, phase), head, key)
    gate = tables.gates.get((task, invocation))
    return [
        Row(
            epoch=head.epoch,
            agent=head.agent,
            tool=call and call.tool,
            arguments_digest=call and orjson.loads(call.meta).get("arguments_digest"),
            gate_tool=gate and gate.tool,
            gate_arguments_digest=gate and gate.arguments_digest,
            status=gate and gate.status,
            decided_by=gate and gate.decided_by,
            reason=gate and gate.reason,
        )
    ]


@writes
def await_approval(tables: Tables, task: UUID, invocation: UUID, *more: Any) -> list[Row]:
    *call, at, who, data = more
    gate = _gate(tables, task, invocation, call, at)
    v.text(who)
    v.stored_json(data)
    if (task, invocation) not in tables.gates:
        tables.gates[task, invocation] = gate
    elif (gate := tables.gates[task, invocation]).status != "open":
        return []
    gate.status, gate.since = "waiting", at
    return [Row(id=_note(tables, task, gate.step, "requested", at, who, gate.tool, "", data))]


@writes
def issue_token(tables: Tables, task: UUID, invocation: UUID, *more: Any) -> list[Row]:
    *call, token, at, who, data = more
    gate = _gate(tables, task, invocation, call, at)
    v.uuid(token)
    v.text(who)
    v.stored_json(data)
    gate = tables.gates.setdefault((task, invocation), gate)
    if gate.status not in ("open", "approved"):
        return []
    gate.token = token
    noted = _note(tables, task, gate.step, "issued", at, who, gate.tool, "", data, token)
    return [Row(id=noted)]


@writes
def redeem_token(
    tables: Tables,
    task: UUID,
    version: int,
    invocation: UUID,
    token: UUID,
    use: UUID,
    at: int,
    data: bytes,
) -> list[Row]:
    v.uuid(task, invocation, token, use)
    v.integer(version)
    v.bigint(at)
    v.stored_json(data)
    gate = tables.gates.get((task, invocation))
    stands = task in tables.tasks and tables.tasks[task].version == version
    if gate is None or not stands or gate.token != token:
        return []
    if not _is_unsettled(tables, task, gate) or _redeemed(tables, task, token) is not None:
        return []
    _note(tables, task, gate.step, "redeemed", at, "", gate.tool, "", data, token, use)
    return [Row(at=moment(at))]


@reads
def token_use(tables: Tables, task: UUID, invocation: UUID, token: UUID) -> list[Row]:
    v.uuid(task, invocation, token)
    gate = tables.gates.get((task, invocation))
    if gate is None:
        return []
    used = _redeemed(tables, task, token)
    return [
        Row(
            newest=None if gate.token is None else gate.token == token,
            unsettled=_is_unsettled(tables, task, gate),
            use=used and used.use,
            at=used and moment(used.at),
        )
    ]


@writes
def note_refusal(
    tables: Tables,
    task: UUID,
    step: str,
    at: int,
    who: str,
    tool: str,
    reason: str,
    token: UUID | None,
    data: bytes,
) -> list[Row]:
    v.uuid(task, token)
    v.text(step, who, tool, reason)
    v.bigint(at)
    v.stored_json(data)
    _note(tables, task, step, "refused", at, who, tool, reason, data, token)
    return []


@reads
def gate(tables: Tables, task: UUID, invocation: UUID) -> list[Row]:
    v.uuid(task, invocation)
    found = tables.gates.get((task, invocation))
    return [] if found is None else [_shown(task, invocation, found)]


@writes
def decide_gate(
    tables: Tables,
    task: UUID,
    invocation: UUID,
    status: str,
    by: str,
    reason: str,
    at: int,
    data: bytes,
) -> list[Row]:
    v.uuid(task, invocation)
    v.text(status, by, reason)
    v.bigint(at)
    v.stored_json(data)
    gate = tables.gates.get((task, invocation))
    if gate is None or gate.status != "waiting":
        return []
    if status not in ("approved", "rejected"):
        raise StoreRefused("CheckViolationError: gates_check")
    gate.status, gate.decided_by, gate.reason, gate.decided_at = status, by, reason, at
    _note(tables, task, gate.step, status, at, by, gate.tool, reason, data)
    return [_shown(task, invocation, gate)]


@reads
def waiting_gates(
    tables: Tables,
    saga: str | None,
    limit: int,
    max_bytes: int,
    owner: str | None,
    task: UUID | None,
) -> list[Row]:
    v.text(saga, owner)
    v.uuid(task)
    v.bigint(limit)
    v.integer(max_bytes)
    found = [
        (gate.since, *key)
        for key, gate in tables.gates.items()
        if gate.status == "waiting"
        and saga in (None, tables.tasks[key[0]].saga)
        and owner in (None, tables.tasks[key[0]].owner)
        and task in (None, key[0])
        and _is_wanted(tables, key[0], gate)
    ]
    return [_waiting(tables, *key, max_bytes) for _, *key in sorted(found)[:limit]]


def _waiting(tables: Tables, task: UUID, invocation: UUID, max_bytes: int) -> Row:
    gate = tables.gates[task, invocation]
    place = task, gate.step, gate.phase
    head = tables.journals.get(place)
    call = None if head is None else _intent(tables, place, head, gate.key)
    return Row(
        task_id=task,
        invocation=invocation,
        step=gate.step,
        phase=gate.phase,
        key=gate.key,
        tool=gate.tool,
        arguments_digest=gate.arguments_digest,
        since=moment(gate.since),
        saga=tables.tasks[task].saga,
        arguments=None if call is None or call.bytes > max_bytes else call.data,
    )


def _gate(tables: Tables, task: UUID, invocation: UUID, call: list[Any], at: int) -> GateRow:
    """A gate that is to be made; refused as PostgreSQL would."""
    v.uuid(task, invocation)
    v.text(*call)
    v.bigint(at)
    made = GateRow(*call, status="open", since=at)
    if made.phase not in PHASES:
        raise StoreRefused("CheckViolationError: gates_phase_check")
    if task not in tables.tasks:
        raise StoreRefused("ForeignKeyViolationError: there is no such task")
    return made


def _note(tables: Tables, task: UUID, *columns: Any) -> int:
    """An event of a gate, at the end of all; its id."""
    token_and_use = [*columns[7:], None, None][:2]
    number = len(tables.gate_events) + 1
    *told, data = columns[:7]
    tables.gate_events.append(GateEventRow(number, task, *told, *token_and_use, data))
    return number


def _redeemed(tables: Tables, task: UUID, token: UUID) -> GateEventRow | None:
    for event in tables.gate_events:
        if event.kind == "redeemed" and (event.task, event.token) == (task, token):
            return event
    return None


def _is_unsettled(tables: Tables, task: UUID, gate: GateRow) -> bool:
    head = tables.journals.get((task, gate.step, gate.phase))
    return head is not None and gate.key in orjson.loads(head.unsettled)


def _intent(tables: Tables, place: Place, head: JournalRow, key: str) -> EntryRow | None:
    """The unsettled call of this key, as it was begun."""
    call = orjson.loads(head.unsettled).get(key)
    for entry in tables.entries.get(place, ()):
        if call is not None and entry.seq == call["seq"]:
            return entry
    return None


def _is_wanted(tables: Tables, task: UUID, gate: GateRow) -> bool:
    row = tables.tasks[task]
    status, of_step = _WANTED[gate.phase]
    step = orjson.loads(row.state).get("steps", {}).get(gate.step, {})
    return row.status == status and step.get("status") == of_step


def _shown(task: UUID, invocation: UUID, gate: GateRow) -> Row:
    return Row(
        task_id=task,
        invocation=invocation,
        step=gate.step,
        phase=gate.phase,
        key=gate.key,
        tool=gate.tool,
        arguments_digest=gate.arguments_digest,
        status=gate.status,
        since=moment(gate.since),
        decided_at=moment(gate.decided_at),
        decided_by=gate.decided_by,
        reason=gate.reason,
    )
