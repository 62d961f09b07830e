"""Statements of the audit log, as the views `audit_of_*` have it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from simulation import store_values as v
from simulation.store_tables import Tables, reads
from simulation.store_values import Row, moment

ACTS = frozenset(
    {
        *("RecoveryStarted", "TaskResumed", "StepSettled", "StepApproved", "StepRejected"),
        *("SignalReceived", "TaskHeld", "TaskMoved"),
    }
)
Entry = tuple[int, UUID, str, dict[str, Any]]


@reads
def audit(
    tables: Tables,
    since: datetime,
    until: datetime,
    after_at: datetime,
    after_task: UUID,
    after_id: str,
    limit: int,
) -> list[Row]:
    v.uuid(after_task)
    v.text(after_id)
    v.bigint(limit)
    first = v.ms(after_at), after_task, after_id
    found = [
        each for each in _all(tables) if v.ms(since) <= each[0] < v.ms(until) and each[:3] > first
    ]
    found.sort(key=lambda each: each[:3])
    return [
        Row(at=moment(at), task_id=task, id=id_, **rest) for at, task, id_, rest in found[:limit]
    ]


@reads
def audit_of_task(tables: Tables, *arguments: Any) -> list[Row]:
    *asked, limit, task = arguments
    rows = audit(tables, *asked, v.BIGINT_MAX)
    return [row for row in rows if row["task_id"] == task][:limit]


def _all(tables: Tables) -> Iterator[Entry]:
    yield from _of_history(tables)
    yield from _of_journals(tables)
    yield from _of_gates(tables)
    for number, act in enumerate(tables.acts, 1):
        told = {"kind": act.kind, "who": act.who, "what": act.what, "reason": act.reason}
        yield act.at, UUID(int=0), f"act/{number:019}", {"step": "", **told, "data": act.data}


def _of_history(tables: Tables) -> Iterator[Entry]:
    for task, events in tables.history.items():
        for event in events:
            data = orjson.loads(event.data)
            of_a_step = data.get("by", "") == "" and data.get("step") is not None
            if event.type in ACTS and not (event.type == "RecoveryStarted" and of_a_step):
                named = [v.text_of(data, name) for name in ("name", "kind", "status")]
                if "target" in data:
                    named.append(f"version {v.text_of(data, 'target')}")
                rest = {
                    "step": v.text_of(data, "step") or "",
                    "kind": event.type,
                    "who": v.text_of(data, "by") or "",
                    "what": next((each for each in named if each is not None), ""),
                    "reason": v.text_of(data, "reason") or "",
                    "data": event.data,
                }
                yield event.at, task, f"history/{event.version:010}", rest


def _of_journals(tables: Tables) -> Iterator[Entry]:
    for (task, step, phase), entries in tables.entries.items():
        for entry in entries:
            if entry.kind == "checkpoint":
                continue
            place = {"phase": phase, "seq": entry.seq, "epoch": entry.epoch, "key": entry.key}
            rest = {
                "step": step,
                "kind": entry.kind,
                "who": entry.by or entry.agent,
                "what": entry.tool or entry.key,
                "reason": entry.reason,
                "data": orjson.dumps(place | orjson.loads(entry.meta)),
            }
            yield entry.at, task, f"journal/{step}/{phase}/{entry.seq:010}", rest


def _of_gates(tables: Tables) -> Iterator[Entry]:
    for event in tables.gate_events:
        rest = {
            "step": event.step,
            "kind": f"gate-{event.kind}",
            "who": event.who,
            "what": event.tool,
            "reason": event.reason,
            "data": event.data,
        }
        yield event.at, event.task, f"gate/{event.id:019}", rest
