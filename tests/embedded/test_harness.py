"""The servers that all tests stand on."""

from __future__ import annotations

import asyncio

import asyncpg
import nats
import nats.errors
import pytest
from harness.eventually import eventually
from harness.services import RunningNats, RunningPostgres
from nats.aio.client import Client
from nats.js.errors import NotFoundError


async def test_each_test_gets_an_empty_database(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert await connection.fetchval(tables) == 0
    await connection.execute("CREATE TABLE left_behind ()")
    await connection.close()


async def test_the_database_of_another_test_is_gone(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    assert await connection.fetchval("SELECT to_regclass('left_behind')") is None
    await connection.close()


async def test_a_killed_postgres_comes_back_with_its_rows(postgres_server: RunningPostgres) -> None:
    connection = await asyncpg.connect(postgres_server.url)
    await connection.execute("CREATE TABLE kept AS SELECT 1 AS value")
    await postgres_server.kill()
    connection.terminate()
    await postgres_server.start()
    again = await asyncpg.connect(postgres_server.url)
    assert await again.fetchval("SELECT value FROM kept") == 1
    await again.close()


async def test_a_nats_client_reconnects_to_a_killed_server(nats_server: RunningNats) -> None:
    async def quiet(_: Exception) -> None:
        return

    client = await nats.connect(nats_server.url, reconnect_time_wait=0.05, error_cb=quiet)
    await client.jetstream().add_stream(name="KEPT", subjects=["kept"])
    await nats_server.kill()
    await eventually(lambda: not client.is_connected)
    await nats_server.start()
    await eventually(lambda: client.is_connected)
    assert (await client.jetstream().stream_info("KEPT")).config.name == "KEPT"
    await client.close()


async def test_a_wiped_store_has_no_streams(nats_server: RunningNats) -> None:
    client = await nats.connect(nats_server.url)
    await client.jetstream().add_stream(name="GONE", subjects=["gone"])
    await client.close()
    await nats_server.wipe_store()
    client = await nats.connect(nats_server.url)
    with pytest.raises(NotFoundError):
        await client.jetstream().stream_info("GONE")
    await client.close()


async def test_nats_wants_the_password(nats_url: str) -> None:
    async def quiet(_: Exception) -> None:
        return

    client = Client()
    with pytest.raises(nats.errors.Error, match="Authorization"):
        await client.connect(
            nats_url.replace("only-for-tests", "guessed"), allow_reconnect=False, error_cb=quiet
        )
    await client.close()


async def test_eventually_takes_coroutines_and_assertions() -> None:
    seen: list[int] = []

    async def third_time() -> bool:
        await asyncio.sleep(0)
        seen.append(1)
        assert len(seen) > 1, "not yet"
        return len(seen) == 3

    assert await eventually(third_time)


async def test_eventually_fails_with_what_it_last_saw() -> None:
    with pytest.raises(AssertionError, match="the sun did not come true within 0 s; last: ''"):
        await eventually(lambda: "", within_s=0, what="the sun")
