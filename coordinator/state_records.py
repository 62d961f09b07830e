"""One structured record for each change of a task's state and each entry of a journal. Pure.

Digests and sizes only: no input, result, argument or error text is ever in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson
from headway.agents import telemetry as t
from headway.agents import tracing
from headway.agents.identity import invocation_id, operation_id
from headway.coordinator import journal_rows
from headway.coordinator.decisions import Decision
from headway.sagas import events as e
from headway.sagas.codec import event_type
from headway.sagas.task import PARKED

INFO, WARN = 9, 13  # severities, as OTLP numbers them
SEVERITIES = {INFO: "INFO", WARN: "WARN"}

_TROUBLE = {e.AttemptFailed, e.AttemptTimedOut, e.RecoveryStarted, e.TaskHeld}


Pairs = tuple[tuple[str, Any], ...]


class Record(NamedTuple):
    """`at` is ms since 1970; the ids tell to which span it belongs. `attributes` come again on many
    records, `own` on this one only."""

    at: int
    severity: int
    body: str
    attributes: Pairs
    own: Pairs
    trace_id: bytes
    span_id: bytes


def record_of(decision: Decision) -> Record | None:
    """What a committed decision changed; None if it changed nothing."""
    change, definition = decision.change, decision.definition
    if change is None or definition is None:
        return None
    was = None if decision.before is None else decision.before.task.status
    status = change.task.status
    trouble = status in PARKED or any(type(event) in _TROUBLE for event in change.events)
    told = f"task {status}" if was is not status else f"task goes on, {status}"
    return Record(
        change.at,
        WARN if trouble else INFO,
        told,
        (
            (t.SAGA, definition.name),
            (t.STATUS, status.value),
            (t.VERSION, change.task.version),
            (t.EVENTS, ", ".join([_event(event) for event in change.events])),
        ),
        ((t.TASK, str(change.id)),),
        change.id.bytes,
        tracing.root_span(change.id),
    )


def _event(event: e.Event) -> str:
    """A type, and of which step; how an attempt failed by its type."""
    told = event_type(event)
    step = getattr(event, "step", "")
    if step:
        told = f"{told} {step}"
    if isinstance(event, e.AttemptFailed):
        told = f"{told} {event.error.type}"
    elif isinstance(event, e.AttemptTimedOut):
        told = f"{told} {event.timeout}"
    return told


def records_of(change: journal_rows.Change, at: int) -> Iterator[Record]:
    """What was appended to a journal at `at` (ms)."""
    place = change.place
    operation = operation_id(place.task, place.step, place.phase)
    attempt = tracing.attempt_span(place.task, place.step, place.phase, change.after.attempt)
    for seq, row in enumerate(change.rows, change.before.seq + 1):
        meta = orjson.loads(row.meta)
        shared = {
            t.STEP: place.step,
            t.PHASE: place.phase,
            t.ATTEMPT: change.after.attempt,
            t.AGENT: change.after.agent,
            t.ENTRY: row.kind,
            t.GEN_AI_TOOL: row.tool,
        }
        own = {
            t.TASK: str(place.task),
            t.SEQ: seq,
            t.BYTES: len(row.data or b""),
            t.KEY: row.key,
            t.BY: row.by,
            t.DIGEST: meta.get("arguments_digest", ""),
            t.RESULT_DIGEST: meta.get("datadigest", ""),
        }
        span = tracing.invocation_span(invocation_id(operation, row.key)) if row.key else attempt
        yield Record(
            at,
            WARN if row.kind == "failure" else INFO,
            f"journal {row.kind}",
            _said(shared),
            _said(own),
            place.task.bytes,
            span,
        )


def _said(told: Mapping[str, Any]) -> Pairs:
    return tuple((name, value) for name, value in told.items() if value != "")


def line_of(record: Record) -> str:
    """A record as one line of JSON."""
    found = orjson.dumps(
        {
            "at": record.at,
            "severity": SEVERITIES[record.severity],
            "message": record.body,
            "trace_id": record.trace_id.hex(),
            "span_id": record.span_id.hex(),
            **dict(record.own),
            **dict(record.attributes),
        }
    )
    return found.decode()
