"""Payloads that travel by reference."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from headway.agents import payloads
from headway.agents.connection import Connection
from headway.agents.errors import Unavailable
from headway.agents.payloads import PART_BYTES, PayloadLost
from headway.agents.subjects import PAYLOADS_STREAM, PEOPLES_PAYLOADS, payloads_by
from headway.agents.wire import Wire

TASK = "0192f0c1-2d3e-7a4b-8c5d-6e7f8091a2b3"
BODY = bytes(range(256)) * 4096
OURS = payloads_by("payments")

pytestmark = pytest.mark.usefixtures("payload_store")


@pytest.fixture
def wire(connection: Connection) -> Wire:
    return connection.wire


@pytest.mark.parametrize("body", [b"", b"x", BODY, BODY[:PART_BYTES], BODY + b"1"])
@pytest.mark.parametrize("space", [OURS, PEOPLES_PAYLOADS])
async def test_bytes_come_back_as_they_were_put(wire: Wire, body: bytes, space: str) -> None:
    reference, digest = await payloads.put(wire, space, TASK, body)
    parts = max(1, -(-len(body) // PART_BYTES))
    assert reference == f"{space}.{TASK}.{digest}.{parts}"
    assert payloads.read(reference) == payloads.Reference(space, TASK, parts)
    assert await payloads.get(wire, reference, digest) == body


async def test_putting_twice_stores_once(connection: Connection, wire: Wire) -> None:
    first = await payloads.put(wire, OURS, TASK, BODY)
    stored = await connection.nc.jetstream().stream_info(PAYLOADS_STREAM)
    assert await payloads.put(wire, OURS, TASK, BODY) == first
    after = await connection.nc.jetstream().stream_info(PAYLOADS_STREAM)
    assert after.state.messages == stored.state.messages


async def test_a_put_that_was_broken_off_is_completed(wire: Wire) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    part = (f"{OURS}.{TASK}.{digest}.4.1", BODY[PART_BYTES : 2 * PART_BYTES])
    assert await wire.store_all([part]) == [None]
    assert (await payloads.put(wire, OURS, TASK, BODY))[0] == f"{OURS}.{TASK}.{digest}.4"


async def test_what_somebody_put_in_a_payloads_place_does_not_keep_it_out(wire: Wire) -> None:
    digest = hashlib.sha256(BODY).hexdigest()
    assert await wire.store_all([(f"{OURS}.{TASK}.{digest}.4.2", b"junk")]) == [None]
    reference, _ = await payloads.put(wire, OURS, TASK, BODY)
    assert reference.startswith(f"{OURS}.{TASK}.{digest}-")
    assert await payloads.get(wire, reference, digest) == BODY


async def test_a_missing_payload_is_lost(wire: Wire) -> None:
    with pytest.raises(PayloadLost, match="not in the store"):
        await payloads.get(wire, f"{OURS}.{TASK}.{'0' * 64}.1", "0" * 64)


async def test_a_payload_with_another_digest_is_lost(wire: Wire) -> None:
    reference, _ = await payloads.put(wire, OURS, TASK, BODY)
    with pytest.raises(PayloadLost, match="digest differs"):
        await payloads.get(wire, reference, "0" * 64)


async def test_a_payload_with_a_missing_part_is_lost(connection: Connection, wire: Wire) -> None:
    reference, digest = await payloads.put(wire, OURS, TASK, BODY)
    await connection.nc.jetstream().delete_msg(PAYLOADS_STREAM, 3)
    with pytest.raises(PayloadLost):
        await payloads.get(wire, reference, digest)


async def test_no_more_is_read_than_the_reader_takes(wire: Wire) -> None:
    reference, digest = await payloads.put(wire, OURS, TASK, BODY)
    assert await payloads.get(wire, reference, digest, max_bytes=len(BODY)) == BODY
    with pytest.raises(PayloadLost, match=f"more than {2 * PART_BYTES} bytes"):
        await payloads.get(wire, reference, digest, max_bytes=2 * PART_BYTES)


@pytest.mark.parametrize(
    "reference",
    [
        "",
        "a.b",
        f"hw.commands.payments.{TASK}.{'0' * 64}.1",
        f"{OURS}.{TASK}.{'0' * 64}",
        f"{OURS}.{TASK}.{'0' * 64}.0",
        f"{OURS}.{TASK}.{'0' * 64}.1\n",
        f"{OURS}.*.{'0' * 64}.1",
        f"{OURS}.{TASK}.{'0' * 64}.1.>",
        f"{OURS}.{TASK}.{'0' * 64}.9999999999",
        f"hw.payloads.by.{TASK}.{'0' * 64}.1",
    ],
)
async def test_what_is_no_reference_is_never_asked_for(wire: Wire, reference: str) -> None:
    with pytest.raises(PayloadLost, match="is not a reference to a payload"):
        await payloads.get(wire, reference, "0" * 64)


async def test_a_store_that_is_not_there_is_unavailable(connection: Connection, wire: Wire) -> None:
    await connection.nc.jetstream().delete_stream(PAYLOADS_STREAM)
    with pytest.raises(Unavailable, match="did not answer"):
        await payloads.put(wire, OURS, TASK, BODY)
    with pytest.raises(Unavailable, match="nobody listens"):
        await payloads.get(wire, f"{OURS}.{TASK}.{'0' * 64}.1", "0" * 64)


async def test_reading_leaves_no_task_behind(wire: Wire) -> None:
    reference, digest = await payloads.put(wire, OURS, TASK, BODY)
    before = len(asyncio.all_tasks())
    for _ in range(3):
        await payloads.get(wire, reference, digest)
    assert len(asyncio.all_tasks()) == before
