"""An agent whose key no server lets in: it is told what to do, at its start and later."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from command_shell import Shell
from harness.eventually import eventually
from harness.rights import OWNER, granted
from harness.services import RunningNats, nats_in
from headway.agents import Agent, credentials
from headway.agents.connection import connect
from headway.agents.errors import NotLetIn
from headway.agents.nkeys import new_seed
from headway.agents.runner import serve

REMEDY = (
    "nats: 'Authorization Violation': this key of agent 'shop' is not let in: was it revoked? See "
    "`headway agents keys`, and `headway agents grant shop`, on a machine with the database"
)


async def test_an_agent_that_is_refused_at_its_start_ends_with_what_to_do(
    nats_server: RunningNats, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text("from headway.agents import Agent\nshop = Agent('shop')\n")
    credentials.write(tmp_path / "shop.creds", "shop", new_seed())
    url = f"nats://{nats_server.url.rpartition('@')[2]}"
    shell = Shell(tmp_path, {"HEADWAY_NATS_URL": url, "HEADWAY_CREDS": "shop.creds"})
    ended = await asyncio.to_thread(shell.run, "agent", "shop:shop")
    assert ended.code == 3, ended
    assert f"headway: {REMEDY}" in ended.err
    assert "Traceback" not in ended.err


async def test_of_several_agents_none_works_if_one_is_refused(tmp_path: Path) -> None:
    (known, user), (unknown, _) = granted("mail"), granted("shop")
    nats = nats_in(tmp_path / "nats", [user])
    await nats.start()
    try:
        agents = [Agent("mail"), Agent("shop")]
        with pytest.raises(NotLetIn) as refused:
            await asyncio.wait_for(serve(agents, nats.url, credentials=[known, unknown]), 20)
        assert str(refused.value) == REMEDY
    finally:
        await nats.kill()


async def test_a_worker_whose_key_is_taken_away_says_what_to_do_and_waits_to_be_let_in_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shop, user = granted("shop")
    nats = nats_in(tmp_path / "nats", [user])
    await nats.start()
    try:
        async with await connect(nats.url, name="shop", credentials=shop, refused_s=0) as worker:
            with caplog.at_level(logging.WARNING, "headway.agents.connection"):
                nats.server.admit([OWNER], nats.pid)
                said = f"NATS: {REMEDY}"
                await eventually(lambda: said in [one.getMessage() for one in caplog.records], 10)
                nats.server.admit([OWNER, user], nats.pid)
                await eventually(lambda: worker.nc.is_connected, 10)
                await eventually(lambda: caplog.messages[-1] == "NATS: connected again", 10)
    finally:
        await nats.kill()


async def test_a_server_that_is_not_there_yet_is_waited_for_by_whom_it_will_let_in(
    tmp_path: Path,
) -> None:
    shop, user = granted("shop")
    nats = nats_in(tmp_path / "nats", [user])
    await nats.start()
    await nats.kill()
    connecting = asyncio.create_task(
        connect(nats.url, name="shop", credentials=shop, wait=True, refused_s=0)
    )
    try:
        await asyncio.sleep(0)
        await nats.start()
        await (await asyncio.wait_for(connecting, 10)).close()
    finally:
        await nats.kill()


async def test_a_password_that_is_not_let_in_is_told_as_such(nats_server: RunningNats) -> None:
    url = f"nats://headway:mistyped@{nats_server.url.rpartition('@')[2]}"
    with pytest.raises(NotLetIn) as refused:
        await connect(url, name="test", wait=True, refused_s=0.2)
    assert str(refused.value) == (
        "nats: 'Authorization Violation': is the user and password, or the token, in the NATS URL "
        "right? agents: --creds"
    )
