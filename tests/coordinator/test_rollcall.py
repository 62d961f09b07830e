"""Who listens, as nats-server tells it, and what they hold; against real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
from harness.eventually import eventually
from harness.services import RunningNats
from headway.agents import Connection, connect
from headway.agents.alive import Alive
from headway.agents.subjects import roll_subject
from headway.coordinator.rollcall import ANSWER_WITHIN_S, RollCall

ROLL = roll_subject("ag")


@pytest.fixture
async def connection(nats_url: str) -> AsyncIterator[Connection]:
    async with await connect(nats_url, name="asker") as connection:
        yield connection


@pytest.fixture
async def roll_call(connection: Connection) -> RollCall:
    roll_call = RollCall(connection.wire, "asker")
    await roll_call.begin()
    return roll_call


async def member(url: str, name: str, *held: str) -> Connection:
    connection = await connect(url, name=name)
    await Alive(connection.wire, ROLL, name, lambda: list(held)).begin()
    await connection.wire.flush()
    return connection


async def there(roll_call: RollCall) -> list[str]:
    look = await roll_call.look(ROLL)
    assert look is not None
    return sorted(look.members)


async def test_who_listens_is_there_until_its_connection_is_closed(
    roll_call: RollCall, nats_url: str
) -> None:
    assert await there(roll_call) == []
    async with await member(nats_url, "a"):
        other = await member(nats_url, "b")
        assert await there(roll_call) == ["a", "b"]
        look = await roll_call.look(ROLL)
        assert look is not None
        assert set(look.members.values()) == set(look.servers) == {other.wire.server}
        assert look.began <= look.ended
        await other.close()
        await eventually(lambda: only(roll_call, "a"), 2)
    await eventually(lambda: only(roll_call), 2)


async def only(roll_call: RollCall, *names: str) -> bool:
    return await there(roll_call) == list(names)


async def test_the_members_get_nothing_of_a_look(roll_call: RollCall, nats_url: str) -> None:
    heard: list[str] = []
    async with await member(nats_url, "a") as listening:
        await listening.wire.subscribe(ROLL, lambda subject, *_: heard.append(subject))
        await listening.wire.flush()
        assert await there(roll_call) == ["a"]
        await listening.wire.flush()
        assert heard == []
        assert await roll_call.holdings(ROLL) is not None
        await eventually(lambda: heard == [ROLL])


async def test_what_members_hold_is_known_when_all_have_answered(
    roll_call: RollCall, nats_url: str
) -> None:
    holdings = await roll_call.holdings(ROLL)
    assert holdings is not None
    assert (holdings.held, holdings.silent) == (set(), [])
    async with await member(nats_url, "a", "one", "two"), await member(nats_url, "b", "three"):
        holdings = await roll_call.holdings(ROLL)
    assert holdings is not None
    assert (holdings.held, holdings.silent) == ({"one", "two", "three"}, [])


async def test_one_that_listens_and_does_not_answer_is_silent(
    roll_call: RollCall, nats_url: str
) -> None:
    async with await member(nats_url, "a", "one"), await connect(nats_url, name="x") as frozen:
        await frozen.wire.subscribe(ROLL, lambda *_: None, queue="frozen")
        await frozen.wire.flush()
        began = asyncio.get_running_loop().time()
        holdings = await roll_call.holdings(ROLL)
        took_s = asyncio.get_running_loop().time() - began
    assert holdings is not None
    assert holdings.silent == ["frozen"]
    assert ANSWER_WITHIN_S <= took_s < ANSWER_WITHIN_S + 1


@pytest.mark.parametrize(
    "junk", [b"", b"[]", b'{"name": 1}', b'{"name": "a"}', b'{"name": "a", "held": 7}', b"\xff"]
)
async def test_junk_is_no_answer(roll_call: RollCall, nats_url: str, junk: bytes) -> None:
    async with await connect(nats_url, name="x") as other:
        wire = other.wire
        await wire.subscribe(ROLL, lambda _s, r, _h, _b: wire.publish(r, junk), queue="a")
        await wire.flush()
        holdings = await roll_call.holdings(ROLL)
    assert holdings is not None
    assert holdings.silent == ["a"]


async def test_nobody_can_answer_for_another_by_another_name(
    roll_call: RollCall, nats_url: str
) -> None:
    async with await connect(nats_url, name="x") as other:
        wire = other.wire
        lie = orjson.dumps({"name": "b", "held": []})
        await wire.subscribe(ROLL, lambda _s, r, _h, _b: wire.publish(r, lie), queue="a")
        await wire.flush()
        holdings = await roll_call.holdings(ROLL)
    assert holdings is not None
    assert holdings.silent == ["a"]


async def test_without_a_server_nothing_is_known(
    roll_call: RollCall, connection: Connection, nats_server: RunningNats
) -> None:
    await nats_server.kill()
    await eventually(lambda: not connection.wire.connected)
    assert await roll_call.look(ROLL) is None
    assert await roll_call.holdings(ROLL) is None
    await nats_server.start()
    await eventually(lambda: connection.wire.connected)
    assert await there(roll_call) == []
