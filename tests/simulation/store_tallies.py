"""Statements that keep how the whole system does; nobody reads it here."""

from __future__ import annotations

from uuid import UUID

from simulation import store_values as v
from simulation.store_tables import Tables, writes
from simulation.store_values import Row


@writes
def keep_tallies(
    _tables: Tables, coordinator: UUID, slices: list[int], *counts: list[int] | list[str] | int
) -> list[Row]:
    v.uuid(coordinator)
    v.bigint(*slices)
    assert all(isinstance(each, int) or len(each) == len(slices) for each in counts)
    return []
