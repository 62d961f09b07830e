"""Statements of limits, as long as nothing is limited: no simulated run declares any."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from simulation import store_values as v
from simulation.store_tables import Tables, reads
from simulation.store_values import Row


@reads
def limits(_tables: Tables) -> list[Row]:
    return []


@reads
def admissions_exist(_tables: Tables) -> list[Row]:
    return [Row(exist=False)]


@reads
def waiting_commands(
    _tables: Tables, tasks: Sequence[UUID], steps: Sequence[str], subjects: Sequence[str]
) -> list[Row]:
    v.uuid(*tasks)
    v.text(*steps, *subjects)
    return []


@reads
def breakers(_tables: Tables) -> list[Row]:
    return []


@reads
def waiting_by_agent(_tables: Tables) -> list[Row]:
    return []
