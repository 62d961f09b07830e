"""Payloads that travel by reference."""

from __future__ import annotations

import asyncio

import pytest
from headway.agents import payloads
from headway.agents.connection import Connection
from headway.agents.errors import Unavailable
from headway.agents.payloads import PayloadLost
from headway.agents.subjects import PAYLOADS_BUCKET

TASK = "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3"
BODY = bytes(range(256)) * 4096


@pytest.fixture
async def bucket(connection: Connection) -> None:
    await connection.nc.jetstream().create_object_store(PAYLOADS_BUCKET)


@pytest.mark.parametrize("body", [b"", b"x", BODY, BODY[: 128 * 1024], BODY + b"1"])
async def test_bytes_come_back_as_they_were_put(
    connection: Connection, bucket: None, body: bytes
) -> None:
    reference, digest = await payloads.put(connection.nc, TASK, body)
    assert reference == f"{TASK}.{digest}"
    assert await payloads.get(connection.nc, reference, digest) == body


async def test_putting_twice_stores_once(connection: Connection, bucket: None) -> None:
    first = await payloads.put(connection.nc, TASK, BODY)
    stored = await connection.nc.jetstream().stream_info(f"OBJ_{PAYLOADS_BUCKET}")
    assert await payloads.put(connection.nc, TASK, BODY) == first
    after = await connection.nc.jetstream().stream_info(f"OBJ_{PAYLOADS_BUCKET}")
    assert after.state.messages == stored.state.messages


async def test_a_missing_payload_is_lost(connection: Connection, bucket: None) -> None:
    with pytest.raises(PayloadLost, match="not in the store"):
        await payloads.get(connection.nc, f"{TASK}.{'0' * 64}", "0" * 64)


async def test_a_payload_with_another_digest_is_lost(connection: Connection, bucket: None) -> None:
    reference, _ = await payloads.put(connection.nc, TASK, BODY)
    with pytest.raises(PayloadLost, match="digest differs"):
        await payloads.get(connection.nc, reference, "0" * 64)


async def test_a_payload_with_a_missing_part_is_lost(connection: Connection, bucket: None) -> None:
    reference, digest = await payloads.put(connection.nc, TASK, BODY)
    await connection.nc.jetstream().delete_msg(f"OBJ_{PAYLOADS_BUCKET}", 3)
    with pytest.raises(PayloadLost):
        await payloads.get(connection.nc, reference, digest)


async def test_a_store_that_is_not_there_is_unavailable(connection: Connection) -> None:
    with pytest.raises(Unavailable):
        await payloads.put(connection.nc, TASK, BODY)
    with pytest.raises(Unavailable):
        await payloads.get(connection.nc, "a.b", "0" * 64)


async def test_reading_leaves_no_task_behind(connection: Connection, bucket: None) -> None:
    reference, digest = await payloads.put(connection.nc, TASK, BODY)
    before = len(asyncio.all_tasks())
    for _ in range(3):
        await payloads.get(connection.nc, reference, digest)
    assert len(asyncio.all_tasks()) == before
