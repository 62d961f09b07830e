"""Signed commands through a real coordinator: forged, moved and replayed ones run nothing."""

from __future__ import annotations

import orjson
from harness.eventually import eventually
from harness.system import System
from headway.agents import Connection
from headway.agents.command_key import UNSIGNED, WRONGLY_SIGNED
from headway.agents.command_signing import has_signature, is_signed
from headway.agents.subjects import COMMANDS, COMMANDS_STREAM
from headway.coordinator.app import Coordinator
from headway.coordinator.command_keys import derived


async def test_forged_moved_and_replayed_commands_run_nothing(
    system: System, running: list[Coordinator], owner: Connection
) -> None:
    heard: list[tuple[str, bytes]] = []
    await owner.wire.subscribe(
        COMMANDS, lambda subject, _r, _h, body: heard.append((subject, body))
    )
    async with system.working():
        view = await system.client.run("linear", {"number": 1}, timeout=20)
        assert view.status == "succeeded"
        await eventually(lambda: len(heard) == 3, 5)
        assert all(has_signature(body) for _, body in heard)
        calls = len(system.downstream.calls(view.task))
        subject, body = heard[0]
        command = orjson.loads(body)
        del command["sig"]
        await put(system, subject, orjson.dumps(command))
        moved = subject.replace(str(view.task), "01a228d3-8b1d-728f-a4a8-c99741d7b99b")
        await put(system, moved, body)
        await put(system, subject, body)  # the very one, again
        await eventually(lambda: nothing_queued(system), 10)
        all_letters = [each for each in await system.dead_letters() if "size" in each]
        letters = [each for each in all_letters if each["subject"] in (subject, moved)]
        assert [each["reason"] for each in letters] == [UNSIGNED, WRONGLY_SIGNED]
        again = await system.client.run("linear", {"number": 2}, timeout=20)
    assert again.status == "succeeded"
    assert len(system.downstream.calls(view.task)) == calls


async def test_each_agent_has_a_key_of_its_own_that_all_coordinators_derive(
    system: System, running: list[Coordinator], owner: Connection
) -> None:
    heard: list[tuple[str, bytes]] = []
    await owner.wire.subscribe(
        COMMANDS, lambda subject, _r, _h, body: heard.append((subject, body))
    )
    async with system.coordinating():
        for _ in range(8):
            await system.client.submit("linear", {"number": 1})
        await eventually(lambda: len(heard) == 8, 5)
    [row] = await system.fetch("SELECT secret FROM headway.command_secrets")
    mine, other = derived(row["secret"], "shop"), derived(row["secret"], "shop2")
    assert all(is_signed(mine, subject, body) for subject, body in heard)
    assert not any(is_signed(other, subject, body) for subject, body in heard)


async def put(system: System, subject: str, body: bytes) -> None:
    async def once() -> bool:
        [error] = await system.client.connection.wire.store_all([(subject, body)])
        return error is None

    await eventually(once, 10)
    await eventually(lambda: nothing_queued(system), 10)


async def nothing_queued(system: System) -> bool:
    jetstream = system.client.connection.nc.jetstream()
    return (await jetstream.stream_info(COMMANDS_STREAM)).state.messages == 0
