"""Connections to PostgreSQL that come back by themselves, and nothing of asyncpg beyond here.

The engine's connections pin generic plans with sequential scans, hash and merge joins off: a
generic plan made while a table is empty would otherwise scan it for ever. JSON travels as bytes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import asyncpg
from headway.coordinator.errors import StoreRefused, StoreUnavailable
from headway.coordinator.migrate import migrate
from headway.coordinator.postgres_addresses import addresses, place
from headway.coordinator.queries import QUERIES

CONNECT_TIMEOUT_S = 5.0
ADDRESS_TIMEOUT_S = 2.0  # where there are several: one that is silent must not hide the next
DEAD_PEER_S = 5  # after which a server whose machine no longer answers counts as gone
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
        self._servers = _Servers(url)
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
                await connection.open(self._servers, self._settings)
                yield connection
            except _REFUSED as error:
                raise StoreRefused(f"{type(error).__name__}: {_brief(error)}") from error
            except (StoreUnavailable, asyncio.CancelledError):
                await connection.close()
                raise
            except _UNAVAILABLE as error:
                await connection.close()
                raise StoreUnavailable(f"{type(error).__name__}: {_brief(error)}") from error
            finally:
                self._idle.append(connection)


@asynccontextmanager
async def migrated(url: str) -> AsyncIterator[Database]:
    """The database at `url`, brought up to date first, on one connection."""
    database = Database(url, size=1, pinned_plans=False)
    try:
        await database.migrate()
        yield database
    finally:
        await database.close()


def _brief(error: BaseException) -> str:
    """The first line of an error: PostgreSQL puts values into the lines after it."""
    return str(error).partition("\n")[0]


class _Servers:
    """The addresses of PostgreSQL; the one that was writable last is tried first."""

    def __init__(self, url: str) -> None:
        self._urls = addresses(url)
        self._timeout_s = CONNECT_TIMEOUT_S if len(self._urls) == 1 else ADDRESS_TIMEOUT_S
        self._first = 0

    async def connect(self, settings: dict[str, str]) -> asyncpg.Connection[asyncpg.Record]:
        """A connection that takes writes. With one address its own error comes through, with
        several StoreUnavailable tells what is wrong with each."""
        wrong: list[str] = []
        for number in range(len(self._urls)):
            at = (self._first + number) % len(self._urls)
            try:
                connection = await self._connect(self._urls[at], settings)
            except _UNAVAILABLE as error:
                if len(self._urls) == 1:
                    raise
                why = _brief(error) or type(error).__name__
                wrong.append(f"{place(self._urls[at])}: {why}")
            else:
                self._first = at
                return connection
        raise StoreUnavailable(f"no address of PostgreSQL takes writes: {'; '.join(wrong)}")

    async def _connect(
        self, url: str, settings: dict[str, str]
    ) -> asyncpg.Connection[asyncpg.Record]:
        connection = await asyncpg.connect(
            url,
            timeout=self._timeout_s,
            command_timeout=COMMAND_TIMEOUT_S,
            statement_cache_size=0,
            server_settings={"application_name": "headway", "timezone": "UTC", **settings},
        )
        _notice_dead_peer(connection)
        return connection


def _notice_dead_peer(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """End the connection when the other machine is silent for DEAD_PEER_S, whatever was asked; a
    slow statement is another matter. As far as this system can."""
    peer = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", DEAD_PEER_S // 2),
        ("TCP_KEEPINTVL", 1),
        ("TCP_KEEPCNT", DEAD_PEER_S // 2),
        ("TCP_USER_TIMEOUT", DEAD_PEER_S * 1_000),
    ):
        if hasattr(socket, option) and peer.family != socket.AF_UNIX:
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


class _Connection:
    """One connection and its prepared statements."""

    def __init__(self) -> None:
        self._raw: asyncpg.Connection[asyncpg.Record] | None = None
        self._prepared: dict[str, asyncpg.prepared_stmt.PreparedStatement[asyncpg.Record]] = {}

    @property
    def raw(self) -> asyncpg.Connection[asyncpg.Record]:
        assert self._raw is not None
        return self._raw

    async def open(self, servers: _Servers, settings: dict[str, str]) -> None:
        if self._raw is not None and not self._raw.is_closed():
            return
        self._prepared.clear()
        self._raw = await servers.connect(settings)
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
