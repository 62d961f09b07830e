"""An agent with its own key has no say in who of another is there, nor in what is signalled."""

from __future__ import annotations

import asyncio

import orjson
import pytest
import pytest_asyncio
from harness.system import System
from headway.agents.connection import Connection
from headway.agents.subjects import ASK_AGAIN, answers_to, roll_subject, traces_for
from headway.coordinator.rollcall import Holdings, RollCall
from security.attackers import Attacker

pytestmark = pytest.mark.usefixtures("running")

ROLL, ASKER = roll_subject("shop"), "asker"


@pytest_asyncio.fixture(loop_scope="module")
async def roll_call(owner: Connection, monkeypatch: pytest.MonkeyPatch) -> RollCall:
    monkeypatch.setattr("headway.coordinator.rollcall.ANSWER_WITHIN_S", 1.0)
    roll_call = RollCall(owner.wire, ASKER)
    await roll_call.begin()
    await owner.wire.flush()
    return roll_call


def asked(roll_call: RollCall, roll: str) -> asyncio.Task[Holdings | None]:
    """A question whose own trace does not come, as when the server is slow: number 1."""
    roll_call._wire.publish = lambda *_, **__: None  # type: ignore[method-assign]
    return asyncio.create_task(roll_call.holdings(roll))


async def test_no_worker_is_missing_by_a_trace_that_the_server_is_made_to_send(
    owner: Connection, mallory: Attacker, roll_call: RollCall
) -> None:
    question = asked(roll_call, ROLL)
    nobody = orjson.dumps({"server": {"id": "N"}, "events": []})
    await mallory.have_sent(f"{traces_for(ASKER)}.1", nobody)
    await mallory.publish(f"hw.events.mallory.{'0' * 8}", b"{}", reply=f"{traces_for(ASKER)}.1")
    assert await question is None


async def test_no_agent_answers_for_anothers_workers(
    owner: Connection, mallory: Attacker, roll_call: RollCall
) -> None:
    listener = await owner.nc.subscribe(ROLL, queue="w")
    await owner.wire.flush()
    answer = orjson.dumps({"name": "w", "held": []})
    question = asyncio.create_task(roll_call.holdings(ROLL))
    await asyncio.sleep(0)
    await mallory.have_sent(answers_to(ASKER, ROLL, 1), answer)
    await mallory.publish(answers_to(ASKER, roll_subject("mallory"), 1), answer)
    holdings = await question
    await listener.unsubscribe()
    assert holdings is not None
    assert holdings.silent == ["w"]
    assert holdings.held == set()


async def test_nobody_is_made_to_ask_again_by_an_answer_that_went_astray(
    system: System, owner: Connection, mallory: Attacker
) -> None:
    pause = asyncio.create_task(owner.wire.again.pause(0.5))
    heard = await owner.nc.subscribe(ASK_AGAIN)
    await owner.wire.flush()
    await mallory.have_sent(ASK_AGAIN, b"x")
    await heard.next_msg(timeout=2)
    await asyncio.sleep(0)
    assert not pause.done()
    await system.client.connection.nc.publish(ASK_AGAIN, b"")
    async with asyncio.timeout(0.3):
        await pause
    await heard.unsubscribe()
