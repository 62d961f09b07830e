"""The crew: the service comes back on its port with its ledger; agents are known by presence."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import cast
from uuid import uuid4

from harness.eventually import eventually
from headway.agents import Client
from headway.agents.catalogue_views import AgentList, AgentView
from headway.coordinator.logfile import LogFile
from headway.coordinator.ports import free_port
from headway.coordinator.supervisor import Supervised
from headway.demo.calls import Call, ask, is_listening
from headway.demo.crew import AgentChild, DownstreamChild
from headway.demo.orders import Order, write_orders
from headway.demo.trouble import Trouble


async def test_a_killed_service_is_back_on_its_port_and_remembers(
    tmp_path: Path, make_order: Callable[..., Order]
) -> None:
    order = make_order()
    write_orders(tmp_path / "orders.jsonl", [order])
    child = DownstreamChild(tmp_path, LogFile(tmp_path / "log"), seed=1, port=free_port())
    supervised = Supervised(child)
    await supervised.start()
    try:
        call = Call(uuid4(), "inventory.reserve", order, trouble=Trouble())
        first = await ask(child.address, call)
        os.kill(supervised.pid, signal.SIGKILL)
        await eventually(lambda: supervised.restarts == 1)
        await eventually(lambda: is_listening(child.address))
        again = await ask(child.address, call)
    finally:
        await supervised.stop()
    assert (first.outcome, again.outcome) == ("applied", "duplicate")
    assert first.number == again.number


class Roll:
    """Stands in for the client: an agent is there from the second question on."""

    def __init__(self) -> None:
        self.asked = 0

    async def agents(self) -> AgentList:
        self.asked += 1
        names = ["mail"] if self.asked > 1 else []
        views = [AgentView(agent=name, instances=[], queued=0, in_flight=0) for name in names]
        return AgentList(agents=views)


async def test_an_agent_is_ready_when_a_coordinator_knows_of_it(tmp_path: Path) -> None:
    roll = Roll()
    child = AgentChild("mail", LogFile(tmp_path / "log"), {}, cast(Client, roll))
    await child.wait_ready()
    assert roll.asked == 2


def test_an_agent_gets_its_addresses_in_its_environment_and_not_on_its_command_line(
    tmp_path: Path,
) -> None:
    env = {"HEADWAY_NATS_URL": "nats://user:secret@127.0.0.1"}
    launch = AgentChild("mail", LogFile(tmp_path / "log"), env, cast(Client, Roll())).launch()
    assert launch.argv[-1] == "headway.demo.agents:mail"
    assert "secret" not in " ".join(launch.argv)
    assert launch.env == env
