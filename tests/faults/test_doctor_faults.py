"""The doctor while coordinators are frozen, and just after they died."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from command_shell import Ended, Shell
from harness.eventually import eventually
from harness.system import System


async def examined(system: System, folder: Path) -> Ended:
    urls = {"HEADWAY_NATS_URL": system.nats.url, "HEADWAY_POSTGRES_URL": system.postgres_url}
    return await asyncio.to_thread(Shell(folder, urls).run, "doctor", "--json")


async def test_one_frozen_coordinator_of_two_is_told_and_the_other_one_answers(
    system: System, tmp_path: Path
) -> None:
    frozen, other = [await system.coordinator() for _ in range(2)]
    for each in (frozen, other):
        await eventually(lambda each=each: " serves" in each.log.read_text(), 20, what="it serves")
    frozen.freeze()
    ended = await examined(system, tmp_path)
    frozen.thaw()
    assert ended.code == 0, ended
    told = {one["check"]: one for one in ended.json["findings"]}
    assert told["coordinator"]["state"] == "ok"
    silent = told["silent coordinator"]
    assert silent["state"] == "note"
    assert silent["found"] == "one of 2 coordinators is silent: frozen, or cut off"
    well = await examined(system, tmp_path)
    assert "silent" not in well.out


@pytest.mark.timed
async def test_just_after_all_coordinators_were_killed_none_is_said_to_be_at_work(
    system: System, tmp_path: Path
) -> None:
    coordinators = [await system.coordinator() for _ in range(2)]
    await system.client.health()
    await system.coordinators(2)
    for one in coordinators:
        await one.kill()
    ended = await examined(system, tmp_path)
    assert ended.code == 1
    told = {one["check"]: one for one in ended.json["findings"]}
    assert told["coordinator"]["state"] == "wrong"
    assert told["coordinators"] == {
        "check": "coordinators",
        "state": "note",
        "found": "2 wrote here in the last 5 s, though none answers",
        "remedy": "they ended just now, or are cut off from NATS: look again in 5 s",
    }
