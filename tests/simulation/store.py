"""The store of the simulation: the real `Store` and `Registry` over tables in memory.

Only the connections to PostgreSQL are replaced: a named statement runs as a function over the
tables, whole and at one moment. It awaits nothing by itself but its line, once before and once
after: a line delays, fails or crashes there. What fails before has not happened; what fails after
has. A statement that is not known here breaks the run: it is never passed over.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, Protocol

from headway.coordinator.database import Database
from headway.coordinator.queries import QUERIES
from headway.coordinator.store import ENGINE_CONNECTIONS, SERVICE_CONNECTIONS, Store
from simulation import (  # noqa: F401 - each names its statements
    store_audit,
    store_documents,
    store_gates,
    store_journals,
    store_limits,
    store_peers,
    store_tallies,
    store_tasks,
    store_tokens,
)
from simulation.store_tables import READS, STATEMENTS, Tables

_PARAMETERS = {
    name: max((int(number) for number in re.findall(r"\$(\d+)", body)), default=0)
    for name, body in QUERIES.items()
}


class UnknownStatement(BaseException):
    """The simulated store cannot run this; no `except Exception` may hide that."""


class Line(Protocol):
    """The way to the store and back. Either may raise StoreUnavailable, or never return."""

    async def before(self, statement: str) -> None: ...
    async def after(self, statement: str) -> None: ...


class DirectLine:
    """A line on which nothing ever happens."""

    async def before(self, statement: str) -> None:
        """Let the statement run."""

    async def after(self, statement: str) -> None:
        """Let the answer through."""


class SimulatedDatabase(Database):
    """Connections to the tables; as many statements at a time as the real one has connections."""

    def __init__(self, tables: Tables, line: Line, size: int) -> None:
        self._tables = tables
        self._line = line
        self._free = asyncio.Semaphore(size)

    async def migrate(self) -> int:
        await self._line.before("migrate")
        await self._line.after("migrate")
        return 0

    async def fetch(self, name: str, *arguments: Any) -> list[Any]:
        """Run the named statement; StoreRefused when it refuses its arguments."""
        check_known(name, arguments)
        async with self._free:
            await self._line.before(name)
            rows = STATEMENTS[name](self._tables, *arguments)
            if name not in READS:
                self._tables.on_change(name)
            await self._line.after(name)
        return rows

    async def close(self) -> None:
        """Nothing is held."""


class SimulatedStore(Store):
    """A process's store. Stores over the same tables see what each other commits."""

    def __init__(self, tables: Tables, line: Line | None = None) -> None:
        super().__init__("simulated")
        line = line or DirectLine()
        self._engine = SimulatedDatabase(tables, line, ENGINE_CONNECTIONS)
        self._service = SimulatedDatabase(tables, line, SERVICE_CONNECTIONS)
        self.sagas = type(self.sagas)(self._engine)


def check_known(name: str, arguments: tuple[Any, ...]) -> None:
    """UnknownStatement if it is not simulated, or does not take so many arguments."""
    if name not in STATEMENTS or name not in QUERIES:
        raise UnknownStatement(f"the simulated store does not know the statement {name!r}")
    if len(arguments) != _PARAMETERS[name]:
        raise UnknownStatement(
            f"{name!r} takes {_PARAMETERS[name]} arguments, not {len(arguments)}"
        )
