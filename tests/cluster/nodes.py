"""Three NATS servers with the very configuration that docker-compose.yml gives them, on loopback.

What differs: ports in the place of hosts; routes that lead through `routes`, so that a node can be
cut off; and no route by hearsay (`--cluster_advertise` of a port where nobody listens), for it
would lead around them.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import yaml
from cluster.routes import Routes
from harness.eventually import eventually
from headway.agents.connection import Connection, connect
from headway.coordinator.binaries import nats_server_program
from headway.coordinator.errors import CoordinatorError
from headway.coordinator.jetstream import ask
from headway.coordinator.ports import free_port

COMPOSE = yaml.safe_load((Path(__file__).parents[2] / "docker-compose.yml").read_text())
NODES = ("nats-1", "nats-2", "nats-3")
PASSWORD = "only-for-tests"
NOWHERE = "127.0.0.1:1"
END_S = 20.0
READY_S = 40.0
WHOLE_S = 120.0  # once in eight partitions nats-server left a copy behind for 73 s, then caught up


class Cluster:
    """The nodes as processes; `url` names them all."""

    def __init__(self, directory: Path, rng: random.Random) -> None:
        self._directory = directory
        ports = iter(_ports(3 * len(NODES)))
        self.clients = {node: next(ports) for node in NODES}
        self._monitors = {node: next(ports) for node in NODES}
        self._listening = {node: next(ports) for node in NODES}
        self.routes = Routes(self._listening, rng)
        self.url = f"nats://headway:{PASSWORD}@" + ",".join(
            f"127.0.0.1:{self.clients[node]}" for node in NODES
        )
        self._processes: dict[str, asyncio.subprocess.Process] = {}

    def url_of(self, node: str) -> str:
        return f"nats://headway:{PASSWORD}@127.0.0.1:{self.clients[node]}"

    async def start(self) -> None:
        """Start all nodes and wait until JetStream has a leader."""
        await self.routes.start()
        for node in NODES:
            self._file(node).write_text(self._configuration(node))
            await self.start_node(node)
        async with await connect(self.url, name="test", wait=True) as connection:
            await eventually(lambda: _answers(connection), READY_S, what="a leader of JetStream")

    async def end(self) -> None:
        for node in NODES:
            await self.kill(node)
        await self.routes.stop()

    async def start_node(self, node: str) -> None:
        command = COMPOSE["services"][node]["command"]
        arguments = [
            part.replace("/etc/nats/headway.conf", str(self._file(node))) for part in command
        ]
        with self._file(node).with_suffix(".log").open("ab") as log:
            self._processes[node] = await asyncio.create_subprocess_exec(
                nats_server_program(None),
                *arguments,
                *("--cluster_advertise", NOWHERE),
                stderr=log,
            )

    async def kill(self, node: str) -> None:
        await self._end(node, signal.SIGKILL)

    async def stop(self, node: str) -> None:
        """As a rolling restart does: it hands its leaderships over, then ends."""
        await self._end(node, signal.SIGTERM)

    def delete_store(self, node: str) -> None:
        """All that a node that is down has stored."""
        shutil.rmtree(self._directory / node)

    async def leader(self, connection: Connection, stream: str) -> str:
        info = await ask(connection.wire, f"STREAM.INFO.{stream}")
        return str(info["cluster"]["leader"])

    async def meta_leader(self) -> str:
        """The node that leads JetStream itself, as the nodes' monitoring says."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._monitors[NODES[0]])
        writer.write(b"GET /jsz HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return str(json.loads(answer.partition(b"\r\n\r\n")[2])["meta_cluster"]["leader"])

    async def whole(self, connection: Connection) -> None:
        """Wait until each stream and consumer has all its copies, current."""
        await eventually(lambda: _whole(connection), WHOLE_S, what="every copy is current")

    async def _end(self, node: str, how: signal.Signals) -> None:
        process = self._processes.get(node)
        if process is not None and process.returncode is None:
            process.send_signal(how)
            await asyncio.wait_for(process.wait(), END_S)

    def _file(self, node: str) -> Path:
        return self._directory / f"{node}.conf"

    def _configuration(self, node: str) -> str:
        """What compose would write, with our password and with ports in the place of hosts."""
        content: str = COMPOSE["configs"]["nats"]["content"]
        filled = re.sub(r"\$\{\w+[^}]*\}", PASSWORD, content)
        for other in NODES:
            port = self._listening[node] if other == node else self.routes.port(node, other)
            filled = filled.replace(f"@{other}:6222", f"@127.0.0.1:{port}")
        for inside, port in (
            (4222, self.clients[node]),
            (8222, self._monitors[node]),
            (6222, self._listening[node]),
        ):
            filled = filled.replace(f"0.0.0.0:{inside}", f"127.0.0.1:{port}")
        return filled.replace('"/data"', f'"{self._directory / node}"')


async def _answers(connection: Connection) -> bool:
    try:
        await ask(connection.wire, "INFO")
        await ask(connection.wire, "STREAM.NAMES")
    except CoordinatorError:
        return False
    return True


async def _whole(connection: Connection) -> bool:
    try:
        found = await ask(connection.wire, "STREAM.LIST")
    except CoordinatorError:
        return False
    lacking = {
        one["config"]["name"]: one.get("cluster") for one in found["streams"] if not _complete(one)
    }
    assert lacking == {}, lacking
    return bool(found["streams"])


def _complete(info: dict[str, Any]) -> bool:
    copies = info.get("cluster", {}).get("replicas", [])
    return len(copies) == info["config"]["num_replicas"] - 1 and all(
        copy["current"] and not copy.get("offline") for copy in copies
    )


def _ports(count: int) -> list[int]:
    ports: list[int] = []
    while len(ports) < count:
        ports.append(free_port(taken=frozenset(ports)))
    return ports
