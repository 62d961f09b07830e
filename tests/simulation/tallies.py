"""A document that all agents write: no write is lost, and none counts twice."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
from headway.agents.identity import operation_id
from simulation.crew import TALLIES
from simulation.downstream import Downstream
from simulation.store_tables import Tables


def wrong_tallies(tables: Tables, downstream: Downstream) -> Iterator[str]:
    """What does not hold of it, once nothing moves any more."""
    versions = tables.documents.get((TALLIES, "all"), [])
    written: list[str] = orjson.loads(versions[-1].body) if versions else []
    if len(set(written)) != len(written):
        yield f"a write to {TALLIES} counted twice: {sorted(written)}"
    for task in tables.tasks.values():
        for row in downstream.rows.values():
            if row.task == task.id and task.saga == "tallies" and row.applied:
                operation = str(operation_id(task.id, row.step, "action"))
                if operation not in written:
                    yield f"the write of {row.step} of {task.id} to {TALLIES} is lost"
