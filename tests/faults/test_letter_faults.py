"""Dead letters whose coordinator is killed while it replays one."""

from __future__ import annotations

import asyncio

import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.agents.identity import new_task_id


@pytest.mark.parametrize("moment", ["replay", "replayed"])
async def test_a_letter_whose_coordinator_died_replaying_it_is_replayed_again_and_runs_once(
    system: System, moment: str
) -> None:
    """Whether or not its message had been published."""
    doomed, client = await system.coordinator("--die-at", moment), system.client
    task = new_task_id()
    named = {"Nats-Msg-Id": str(task)}
    await eventually(lambda: _ready(system), 30)
    await client.connection.nc.jetstream().publish("hw.tasks.linear", b"{}", headers=named)

    async def refused() -> int | None:
        page = await client.dead_letters()
        return page.letters[0].sequence if page.letters else None

    sequence = await eventually(refused, 20)
    await registered(client, linear())
    asked = asyncio.create_task(client.replay_letter(sequence, by="ann"))
    assert await doomed.ended() == -9
    asked.cancel()
    await asyncio.wait([asked])
    async with system.coordinating(2), system.working():

        async def listed() -> bool:
            fate = (await client.dead_letter(sequence)).fate
            assert fate is not None
            return (fate.fate, fate.by) == ("replaying", "ann")

        await eventually(listed, 20)
        receipts = await asyncio.gather(
            *(client.replay_letter(sequence, by=who) for who in ("bob", "cy"))
        )
        assert {(each.fate.fate, each.fate.by, each.task) for each in receipts} == {
            ("replayed", "ann", task)
        }
        assert (await client.result(task, timeout=20)).status == "succeeded"
        assert [each.task for each in (await client.list()).tasks] == [task]
    assert [call["step"] for call in system.downstream.calls(task)] == ["a", "b", "c"]


async def _ready(system: System) -> bool:
    return (await system.client.health()).status == "ok"
