"""`headway tokens`: straight on the database; and every other command with HEADWAY_TOKEN."""

from __future__ import annotations

import asyncio
from pathlib import Path

from command_shell import Ended, Shell
from harness.eventually import eventually
from harness.system import System
from headway.coordinator.app import Coordinator
from headway.coordinator.tokens import KNOWN_FOR_S, NEEDED


async def test_tokens_are_made_shown_once_used_listed_and_revoked(
    system: System, running: list[Coordinator], tmp_path: Path
) -> None:
    keeper = Shell(tmp_path, {"HEADWAY_POSTGRES_URL": system.postgres_url})

    async def keep(*words: str) -> Ended:
        return await asyncio.to_thread(keeper.run_here, "tokens", *words)

    made = await keep("create", "ada", "--role", "submit")
    token = made.out.strip()
    assert made.code == 0
    assert token.startswith("hw_")
    assert token not in made.err
    assert made.err == "ada may now show it as HEADWAY_TOKEN; it is not shown again\n"

    again = await keep("create", "ada", "--role", "view")
    assert (again.code, again.out) == (3, "")
    assert "token 'ada' exists; revoke it first, or take another name" in again.err
    without = Shell(tmp_path, {"HEADWAY_NATS_URL": system.nats.url})

    async def refused() -> bool:
        ended = await asyncio.to_thread(without.run_here, "list")
        assert (ended.code, ended.err) == (3, f"headway: {NEEDED}\n")
        return True

    await eventually(refused, KNOWN_FOR_S + 1)
    shown = Shell(tmp_path, {"HEADWAY_NATS_URL": system.nats.url, "HEADWAY_TOKEN": f"{token}\n"})
    submitted = await asyncio.to_thread(shown.run_here, "submit", "linear", "{}", "--json")
    assert submitted.code == 0, submitted.err
    status = await asyncio.to_thread(shown.run_here, "status", submitted.json["task"])
    assert "owner: ada" in status.out
    who = await asyncio.to_thread(shown.run_here, "whoami")
    assert who.out.startswith("ada, role submit\nmay ask for: agents, audit, cancel, ")
    assert " submit, submit.many" in who.out
    assert "retry" not in who.out.split(", ")
    listed = await keep("list", "--json")
    assert token.split("_", 2)[2] not in listed.out
    assert [(line["name"], line["role"]) for line in listed.lines] == [("ada", "submit")]

    revoked = await keep("revoke", "ada")
    assert (revoked.code, revoked.out) == (0, "")
    assert revoked.err.startswith("revoked ada\nno token is left: anybody may ask for anything")


async def test_a_token_that_is_none_is_refused_without_repeating_it(
    system: System, tmp_path: Path
) -> None:
    odd = Shell(tmp_path, {"HEADWAY_NATS_URL": system.nats.url, "HEADWAY_TOKEN": "x secret"})
    ended = await asyncio.to_thread(odd.run_here, "list")
    assert (ended.code, ended.err) == (
        2,
        "headway: the token is not one: `headway tokens create` gives hw_<id>_<secret>\n",
    )
