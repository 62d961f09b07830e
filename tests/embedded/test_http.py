"""`headway up` and HTTP: a socket for all coordinators, a port for life, the console's token."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import psutil
import pytest
from harness.eventually import eventually
from headway.coordinator.datadir import DataDirectory
from headway.coordinator.embedded import Embedded
from headway.coordinator.http_socket import CannotListen

HIDING = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == {part!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Hidden())
"""
HEADWAY = (sys.executable, "-P", "-m", "headway.cli.main")


async def test_the_address_outlives_every_coordinator(data: Path) -> None:
    async with Embedded(data, coordinators=2) as embedded:
        connections = embedded.connections
        shown = {"Authorization": f"Bearer {connections.console_token}"}

        async def answer() -> bool:
            """On a connection of its own, which either coordinator may take."""
            async with httpx.AsyncClient(base_url=connections.http_url, timeout=10) as client:
                return (await client.get("/api/agents", headers=shown)).status_code == 200

        pids = {embedded.processes[f"coordinator-{number}"].pid for number in (1, 2)}
        for pid in sorted(pids):
            os.kill(pid, 9)
        assert await eventually(answer, 30)  # it waited in the queue, and was not refused
        port = int(connections.http_url.rpartition(":")[2])
        listening = [
            each
            for each in psutil.Process().net_connections()
            if each.status == psutil.CONN_LISTEN and each.laddr.port == port
        ]
        assert [each.laddr.ip for each in listening] == ["127.0.0.1"]
        arguments = " ".join(
            " ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)
        )
        assert connections.console_token not in arguments


async def test_port_and_token_are_kept_for_life(data: Path) -> None:
    seen = []
    for _ in range(2):
        async with Embedded(data, coordinators=0) as embedded:
            seen.append((embedded.connections.http_url, embedded.connections.console_token))
    assert seen[0] == seen[1]
    assert seen[0][1].startswith("hw_console_")
    assert (data / "secrets.json").stat().st_mode & 0o077 == 0
    port = int(seen[0][0].rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)):
        async with Embedded(data, coordinators=0) as embedded:
            moved = embedded.connections.http_url
    assert moved != seen[0][0]
    assert json.loads((data / "ports.json").read_text())["http"] == int(moved.rpartition(":")[2])


async def test_an_address_that_was_given_is_that_one_or_none(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen, match="in use"):
            await Embedded(data, coordinators=0, http=address).start()
    async with Embedded(data, coordinators=0, http=address) as embedded:
        assert embedded.connections.http_url == f"http://{address}"


async def test_the_command_console_tells_the_way_in(data: Path) -> None:
    def console(*options: str) -> subprocess.CompletedProcess[str]:
        command = [*HEADWAY, "console", "--data", str(data), *options]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)

    refused = console()
    assert refused.returncode == 4
    assert refused.stderr.strip() == (
        f"headway: no `headway up` runs in {data}: start one there, or name where one keeps its "
        "data with --data or HEADWAY_DATA"
    )
    async with Embedded(data, coordinators=0) as embedded:
        url, token = embedded.connections.http_url, embedded.connections.console_token
        assert console().stdout == f"{url}/#token={token}\n"
        assert json.loads(console("--json").stdout) == {"url": url, "token": token}


def test_an_old_data_directory_gets_a_token(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path / "data")
    made = directory.secrets()
    stored = json.loads((tmp_path / "data/secrets.json").read_text())
    del stored["console_token"]
    (tmp_path / "data/secrets.json").write_text(json.dumps(stored))
    again = directory.secrets()
    assert again.nats_password == made.nats_password
    assert again.console_token.startswith("hw_console_")
    assert again.console_token != made.console_token
    directory.release()


@pytest.mark.parametrize("part", ["fastapi", "uvicorn"])
def test_a_coordinator_without_its_parts_says_what_to_install(tmp_path: Path, part: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(HIDING.format(part=part))
    ended = subprocess.run(
        [*HEADWAY, "coordinator", "--nats-url", "nats://127.0.0.1:1"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.strip() == (
        f"headway: `headway coordinator` needs {part}, which is not installed here: "
        "pip install 'headway[all]'"
    )
