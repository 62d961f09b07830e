"""Connections to PostgreSQL that come back by themselves, and nothing of asyncpg beyond here.

The engine's connections pin generic plans with sequential scans, hash and merge joins off: a
generic plan made while a table is empty would otherwise scan it for ever. JSON travels as bytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
from headway.coordinator.errors import StoreRefused, StoreUnavailable
from headway.coordinator.migrate import migrate
from headway.coordinator.queries import QUERIES

CONNECT_TIMEOUT_S = 5.0
COMMAND_TIMEOUT_S = 30.0

_PINNED_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

# What is wrong with the rows themselves; everything else is a server or a network in trouble.
_REFUSED = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.exceptions.DataError,
)
_UNAVAILABLE = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.exceptions.InternalClientError,
    OSError,
    TimeoutError,
)


class Database:
    """A few connections, each used by one caller at a time, opened when first needed."""

    def __init__(self, url: str, *, size: int, pinned_plans: bool) -> None:
        self._url = url
        self._settings = dict(_PINNED_PLANS) if pinned_plans else {}
        self._idle: list[_Connection] = [_Connection() for _ in range(size)]
        self._free = asyncio.Semaphore(size)

    async def migrate(self) -> int:
        """Bring the schema up to date; returns how many migrations were applied."""
        async with self._connection() as connection:
            return await migrate(connection.raw)

    async def fetch(self, name: str, *arguments: Any) -> list[asyncpg.Record]:
        """Run the named statement; StoreUnavailable or StoreRefused when it cannot be."""
        async with self._connection() as connection:
            return await connection.fetch(name, arguments)

    async def close(self) -> None:
        for connection in self._idle:
            await connection.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        async with self._free:
            connection = self._idle.pop()
            try:
                await connection.open(self._url, self._settings)
                yield connection
            except _REFUSED as error:
                raise StoreRefused(f"{type(error).__name__}: {_brief(error)}") from error
            except _UNAVAILABLE as error:
                await connection.close()
                raise StoreUnavailable(f"{type(error).__name__}: {_brief(error)}") from error
            except asyncio.CancelledError:
                await connection.close()
                raise
            finally:
                self._idle.append(connection)


def _brief(error: BaseException) -> str:
    """The first line of an error: PostgreSQL puts values into the lines after it."""
    return str(error).partition("\n")[0]


class _Connection:
    """One connection and its prepared statements."""

    def __init__(self) -> None:
        self._raw: asyncpg.Connection[asyncpg.Record] | None = None
        self._prepared: dict[str, asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]] = {}

    @property
    def raw(self) -> asyncpg.Connection[asyncpg.Record]:
        assert self._raw is not None
        return self._raw

    async def open(self, url: str, settings: dict[str, str]) -> None:
        if self._raw is not None and not self._raw.is_closed():
            return
        self._prepared.clear()
        self._raw = await asyncpg.connect(
            url,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            statement_cache_size=0,
            server_settings={"application_name": "headway", "timezone": "UTC", **settings},
        )
        await self._raw.set_type_codec(
            "json",
            schema="pg_catalog",
            encoder=_as_is,
            decoder=_as_is,
            format="binary",
        )

    async def fetch(self, name: str, arguments: Sequence[Any]) -> list[asyncpg.Record]:
        statement = self._prepared.get(name)
        if statement is None:
            # Named: asyncpg prepares an unnamed statement anew for each execution.
            statement = self._prepared[name] = await self.raw.prepare(QUERIES[name], name=name)
        return await statement.fetch(*arguments)

    async def close(self) -> None:
        raw, self._raw = self._raw, None
        self._prepared.clear()
        if raw is not None:
            with suppress(*_UNAVAILABLE):
                await raw.close(timeout=1.0)


def _as_is(value: bytes) -> bytes:
    return value
