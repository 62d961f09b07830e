"""The proxy passes on what it is given, and misbehaves as it is told."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager, suppress

import pytest
from harness.eventually import eventually
from harness.proxy import LOOPBACK, Proxy


@pytest.fixture
async def echo():
    """A server that sends back what it gets, in capitals, until its client has ended."""

    async def serve(reader, writer):
        try:
            while data := await reader.read(65_536):
                writer.write(data.upper())
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    async with await asyncio.start_server(serve, LOOPBACK, 0) as server:
        yield server.sockets[0].getsockname()[1]


@pytest.fixture
async def proxy(echo):
    proxy = Proxy(echo, random.Random(1))
    await proxy.start()
    yield proxy
    await proxy.stop()


@asynccontextmanager
async def connected(proxy):
    reader, writer = await asyncio.open_connection(LOOPBACK, proxy.port)
    yield reader, writer
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


@pytest.fixture
async def connection(proxy):
    async with connected(proxy) as connection:
        yield connection


async def said_and_heard(connection, said: bytes) -> bytes:
    reader, writer = connection
    writer.write(said)
    return await asyncio.wait_for(reader.readexactly(len(said)), 5)


async def test_it_passes_on_what_it_is_given(connection):
    body = random.Random(2).randbytes(300_000)
    assert await said_and_heard(connection, body) == body.upper()


async def test_a_url_keeps_all_but_its_port(proxy):
    by_way_of = proxy.url("nats://user:secret@127.0.0.1:4222")
    assert by_way_of == f"nats://user:secret@127.0.0.1:{proxy.port}"
    assert proxy.url("postgresql://u:p@127.0.0.1:5432/headway").endswith(f":{proxy.port}/headway")


async def test_a_cut_is_a_reset(proxy, connection):
    await said_and_heard(connection, b"there")
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        await connection[0].read()


async def test_while_it_refuses_nobody_gets_through(proxy):
    proxy.refusing = True
    async with connected(proxy) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    proxy.heal()
    async with connected(proxy) as connection:
        assert await said_and_heard(connection, b"in") == b"IN"


async def test_half_closed_towards_the_client_it_looks_ended_from_there(proxy, connection):
    await said_and_heard(connection, b"there")
    proxy.half_close("down")
    assert await asyncio.wait_for(connection[0].read(), 5) == b""


async def test_half_closed_towards_the_server_the_server_ends_it(proxy, connection):
    await said_and_heard(connection, b"there")
    proxy.half_close("up")
    assert await asyncio.wait_for(connection[0].read(), 5) == b""


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_what_is_held_arrives_once_it_heals(proxy, connection, direction):
    await said_and_heard(connection, b"there")
    proxy.hold(direction)
    connection[1].write(b"held")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection[0].read(1), 0.2)
    proxy.heal()
    assert await asyncio.wait_for(connection[0].readexactly(4), 5) == b"HELD"


async def test_delays_and_throttles_take_their_time(proxy, connection):
    proxy.delay_s = 0.1
    began_at = time.monotonic()
    await said_and_heard(connection, b"late")
    assert time.monotonic() - began_at >= 0.1  # at least half of it each way
    proxy.heal()
    proxy.bytes_per_s = 100_000
    began_at = time.monotonic()
    await said_and_heard(connection, b"x" * 20_000)
    assert time.monotonic() - began_at >= 0.2


async def test_a_server_that_is_away_is_a_reset():
    away = Proxy(1, random.Random(1))  # nothing listens on port 1
    await away.start()
    async with connected(away) as (reader, _):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    await away.stop()


async def test_no_connection_is_left_when_both_sides_have_ended(proxy, connection):
    await said_and_heard(connection, b"bye")
    connection[1].write_eof()
    assert await asyncio.wait_for(connection[0].read(), 5) == b""
    await eventually(lambda: not proxy._connections)


async def test_while_it_is_held_no_connection_comes_about(proxy):
    proxy.hold("down")
    async with connected(proxy) as (left, leaving), connected(proxy) as (stays, staying):
        staying.write(b"held")
        leaving.close()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(stays.read(1), 0.2)
        proxy.heal()
        assert await asyncio.wait_for(stays.readexactly(4), 5) == b"HELD"
        with suppress(ConnectionError):  # a reset, or its own close
            assert await left.read() == b""
