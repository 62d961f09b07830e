"""Three NATS servers with the very configuration that docker-compose.yml gives them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from harness.eventually import eventually
from headway.agents.connection import connect
from headway.agents.subjects import TASKS_STREAM, task_subject
from headway.coordinator import streams
from headway.coordinator.binaries import nats_server_program
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.jetstream import ask
from headway.coordinator.ports import free_port

pytestmark = pytest.mark.timed

COMPOSE = yaml.safe_load((Path(__file__).parent.parent / "docker-compose.yml").read_text())
NODES = ("nats-1", "nats-2", "nats-3")
PASSWORD = "only-for-tests"


class Cluster:
    """The nodes as processes on loopback; `url` names them all."""

    def __init__(self, directory: Path) -> None:
        ports = iter(_ports(3 * len(NODES)))
        clients = {node: next(ports) for node in NODES}
        routes = {node: next(ports) for node in NODES}
        self.url = f"nats://headway:{PASSWORD}@" + ",".join(
            f"127.0.0.1:{clients[node]}" for node in NODES
        )
        self.processes = {}
        for node in NODES:
            config = _configuration(routes)
            config = config.replace("0.0.0.0:4222", f"127.0.0.1:{clients[node]}")
            config = config.replace("0.0.0.0:8222", f"127.0.0.1:{next(ports)}")
            config = config.replace("0.0.0.0:6222", f"127.0.0.1:{routes[node]}")
            file = directory / f"{node}.conf"
            file.write_text(config.replace('"/data"', f'"{directory / node}"'))
            self.processes[node] = _start(node, file)


def _configuration(routes: dict[str, int]) -> str:
    """What compose would write, with our password and with ports in the place of hosts."""
    content: str = COMPOSE["configs"]["nats"]["content"]
    filled = re.sub(r"\$\{\w+[^}]*\}", PASSWORD, content)
    for node, port in routes.items():
        filled = filled.replace(f"@{node}:6222", f"@127.0.0.1:{port}")
    return filled


def _start(node: str, file: Path) -> subprocess.Popen[bytes]:
    arguments = [
        argument.replace("/etc/nats/headway.conf", str(file))
        for argument in COMPOSE["services"][node]["command"]
    ]
    with file.with_suffix(".log").open("wb") as log:
        return subprocess.Popen([nats_server_program(None), *arguments], stderr=log)


def _ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port(taken=frozenset(ports)))
    return ports


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    for process in cluster.processes.values():
        process.kill()
        process.wait()


async def test_every_stream_has_three_copies_and_outlives_a_node(cluster: Cluster) -> None:
    async with await connect(cluster.url, name="test", wait=True) as connection:

        async def declared() -> bool:
            try:
                for stream in streams.streams(len(NODES)):
                    await ask(connection.wire, f"STREAM.CREATE.{stream['name']}", stream)
            except CoordinatorError:  # no leader has been elected yet
                return False
            return True

        await eventually(declared, 30, what="the streams of the cluster")
        held = await ask(connection.wire, f"STREAM.INFO.{TASKS_STREAM}")
        assert {held["cluster"]["leader"], *(r["name"] for r in held["cluster"]["replicas"])} == {
            *NODES
        }

        cluster.processes[held["cluster"]["leader"]].kill()

        async def stored() -> bool:
            return await connection.wire.store_all([(task_subject("order"), b"{}")]) == [None]

        await eventually(stored, 30, what="a task stored without the leader")
