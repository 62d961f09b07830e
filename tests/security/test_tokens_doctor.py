"""The doctor where tokens are needed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from command_shell import Shell
from harness.eventually import eventually
from harness.system import System
from headway.coordinator.app import Coordinator
from headway.coordinator.tokens import KNOWN_FOR_S, NEEDED


async def test_the_doctor_shows_its_token_and_without_one_says_what_it_did_not_see(
    system: System, running: list[Coordinator], tmp_path: Path
) -> None:
    servers = {"HEADWAY_NATS_URL": system.nats.url}
    made = await asyncio.to_thread(
        Shell(tmp_path, {"HEADWAY_POSTGRES_URL": system.postgres_url}).run,
        *("tokens", "create", "doctor", "--role", "view"),
    )

    async def agents(token: dict[str, str]) -> list[dict[str, str]]:
        ended = await asyncio.to_thread(Shell(tmp_path, servers | token).run, "doctor", "--json")
        assert ended.code == 0, ended
        return [one for one in ended.json["findings"] if one["check"] == "agents"]

    async def unseen() -> bool:
        [told] = await agents({})
        assert (told["state"], told["found"]) == ("note", f"not looked at: {NEEDED}")
        assert told["remedy"] == "set HEADWAY_TOKEN; role view is enough"
        return True

    await eventually(unseen, KNOWN_FOR_S + 5)
    assert await agents({"HEADWAY_TOKEN": made.out}) == []
