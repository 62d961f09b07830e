"""Finding agents by name, and serving several on one connection."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness.services import RunningNats
from headway.agents.agent import Agent
from headway.agents.context import Context
from headway.agents.errors import DeclarationError
from headway.agents.runner import load, serve
from headway.agents.subjects import COMMANDS_STREAM, commands_of_agent
from nats.js.api import AckPolicy, ConsumerConfig


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_agent_is_found_from_the_current_directory(folder: Path) -> None:
    (folder / "stall").mkdir()
    (folder / "stall" / "pay.py").write_text(
        "from headway.agents import Agent\npayments = Agent('payments')\nother = 3\n"
    )
    assert load("stall.pay:payments").name == "payments"


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("stall", "is not MODULE:NAME"),
        ("stall:", "is not MODULE:NAME"),
        (":payments", "is not MODULE:NAME"),
        ("nowhere:payments", "there is no module 'nowhere'"),
        ("stall2.nowhere:payments", "there is no module 'stall2.nowhere'"),
        ("stall2", "'stall2' is a module, and what is meant is in it: say stall2:payments"),
        ("stall2.py:payments", "'stall2.py:payments' names a file, not a module: say stall2:pay"),
        ("stall2:missing", "has nothing named 'missing'; its agents are: payments"),
        ("stall2:other", "has a int, not an Agent, named 'other'"),
        ("empty:payments", "it has no agents"),
    ],
)
def test_a_name_that_leads_nowhere_says_which_part_is_wrong(
    folder: Path, target: str, complaint: str
) -> None:
    (folder / "stall2.py").write_text(
        "from headway.agents import Agent\npayments = Agent('payments')\nother = 3\n"
    )
    (folder / "empty.py").write_text("")
    with pytest.raises(DeclarationError, match=complaint):
        load(target)


def test_a_missing_import_of_the_module_itself_is_not_hidden(folder: Path) -> None:
    (folder / "broken.py").write_text("import not_installed_anywhere\n")
    with pytest.raises(DeclarationError) as raised:
        load("broken:payments")
    missing = "ModuleNotFoundError in broken.py, line 1: No module named 'not_installed_anywhere'"
    assert str(raised.value) == f"module 'broken' cannot be loaded: {missing}"


async def test_several_agents_are_served_until_told_to_stop(standin: Any, nats_url: str) -> None:
    await standin.connection.nc.jetstream().add_consumer(
        COMMANDS_STREAM,
        ConsumerConfig(
            durable_name="mail",
            ack_policy=AckPolicy.EXPLICIT,
            filter_subject=commands_of_agent("mail"),
        ),
    )
    agents = [Agent("payments"), Agent("mail")]
    for agent in agents:

        @agent.action("do")
        async def do(ctx: Context) -> str:
            return ctx.agent

    stop = asyncio.Event()
    serving = asyncio.create_task(serve(agents, nats_url, stop=stop))
    commands = [await standin.command(agent.name, "do") for agent in agents]
    results = [(await standin.event(command, "completed")).data for command in commands]
    assert [data.result for data in results] == ["payments", "mail"]
    stop.set()
    await asyncio.wait_for(serving, 5)


async def test_told_to_stop_before_there_is_a_server_it_stops(nats_server: RunningNats) -> None:
    await nats_server.kill()
    stop = asyncio.Event()
    serving = asyncio.create_task(serve([Agent("payments")], nats_server.url, stop=stop))
    await asyncio.sleep(0)
    stop.set()
    await asyncio.wait_for(serving, 5)
