"""`headway up` as people run it: a process that is signalled, killed, and started again."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import nats
import psutil
import pytest
from harness.eventually import eventually
from harness.up import Up, alive
from headway.coordinator.connections import Connections, running_connections
from headway.coordinator.nats_server import JETSTREAM_INFO, wait_for_answer

BACK_WITHIN_S = 1.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("up") / "my data")
    yield up
    up.end()


async def test_both_servers_serve(running: Up) -> None:
    connection = await asyncpg.connect(running.connections.postgres_url)
    assert await connection.fetchval("SELECT current_database()") == "headway"
    await connection.close()
    client = await nats.connect(running.connections.nats_url)
    await client.jetstream().account_info()
    await client.close()


def test_everything_listens_on_loopback_only(running: Up) -> None:
    ours = set(json.loads((running.data / "ports.json").read_text()).values())
    pids = {process.pid for process in running.tree()}
    # Root in a container may see the sockets of other users, but not whose they are: then by port.
    listening = {
        (socket.laddr.ip, socket.laddr.port)
        for socket in psutil.net_connections()
        if socket.status == psutil.CONN_LISTEN and socket.laddr
        if socket.pid in pids or socket.laddr.port in ours
    }
    assert listening == {("127.0.0.1", port) for port in ours}


def test_no_process_shows_a_password_in_its_arguments(running: Up) -> None:
    secrets = (running.data / "secrets.json").read_text()
    passwords = [word for word in secrets.split('"') if len(word) == 48]
    assert len(passwords) == 4
    visible = psutil.process_iter(["cmdline"])
    shown = " ".join(" ".join(process.info["cmdline"] or []) for process in visible)
    assert str(running.data) in shown
    assert not [password for password in passwords if password in shown]


def test_only_the_owner_can_read_secrets_and_logs(running: Up) -> None:
    for name in ("secrets.json", "connections.json", "nats/nats.conf", "logs/nats.log"):
        assert (running.data / name).stat().st_mode & 0o077 == 0, name
    for name in ("nats", "postgres", "logs"):
        assert (running.data / name).stat().st_mode & 0o077 == 0, name


def test_servers_never_run_as_root(running: Up) -> None:
    servers = [each for each in running.tree() if each.name() in ("nats-server", "postgres")]
    assert len(servers) > 2
    assert all(each.uids().effective != 0 for each in servers)


@pytest.mark.timed
@pytest.mark.parametrize("name", ["nats-server", "postgres", "standin_coordinator"])
async def test_a_killed_process_is_back_within_a_second(running: Up, name: str) -> None:
    killed = await eventually(lambda: running.child(name))
    assert killed is not None
    killed.kill()
    await eventually(lambda: running.child(name) not in (None, killed), BACK_WITHIN_S)
    await eventually(lambda: _serves(running.connections), BACK_WITHIN_S)


def test_a_second_up_is_told_who_uses_the_data(running: Up) -> None:
    second = Up(running.data, wait=False)
    assert second.process.wait(10) == 1
    assert f"in use by process {running.process.pid}" in second.narration
    second.end()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_ends_all_in_order_and_leaves_nothing(data: Path, how: signal.Signals) -> None:
    up = Up(data)
    processes = up.tree()
    assert up.end(how) == 0
    assert alive(processes) == []
    stopped = [line.split()[1] for line in up.narration.splitlines() if "stopped" in line]
    assert stopped == ["coordinator-1", "nats", "postgres"]
    assert running_connections(data) is None


async def test_a_stop_while_starting_leaves_nothing(tmp_path: Path) -> None:
    up = Up(tmp_path / "new data", wait=False)
    await eventually(up.tree)
    processes = up.tree()
    assert up.end() == 0
    assert alive(processes) == []


async def test_a_killed_up_takes_everything_with_it(data: Path) -> None:
    up = Up(data)
    processes = up.tree()
    assert {"postgres", "nats-server"} < {process.name() for process in processes}
    assert up.end(signal.SIGKILL) == -signal.SIGKILL
    await eventually(lambda: not alive(processes), within_s=5)


async def test_a_first_start_killed_at_any_moment_can_be_repeated(tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    sys.stdout.write(f"seed {seed}\n")
    moments = random.Random(seed)
    processes: list[psutil.Process] = []
    for _ in range(4):
        up = Up(tmp_path / "new data", wait=False)
        await eventually(up.tree)
        await asyncio.sleep(moments.uniform(0, 0.8))
        processes = up.tree()
        up.end(signal.SIGKILL)
    last = Up(tmp_path / "new data")
    assert alive(processes) == []
    assert last.end() == 0


async def test_a_new_up_after_a_killed_one_has_its_data_and_urls(data: Path) -> None:
    up = Up(data)
    before = up.connections
    connection = await asyncpg.connect(before.postgres_url)
    await connection.execute("CREATE TABLE kept ()")
    connection.terminate()
    up.end(signal.SIGKILL)
    assert running_connections(data) is None
    again = Up(data)
    assert again.connections.nats_url == before.nats_url
    connection = await asyncpg.connect(before.postgres_url)
    assert await connection.fetchval("SELECT to_regclass('kept')::text") == "kept"
    await connection.close()
    again.end()


@pytest.mark.timed
async def test_an_open_transaction_does_not_hold_the_stop_up(data: Path) -> None:
    up = Up(data)
    connection = await asyncpg.connect(up.connections.postgres_url)
    await connection.execute("BEGIN")
    started = time.monotonic()
    assert up.end() == 0
    assert time.monotonic() - started < 5
    connection.terminate()


async def _serves(connections: Connections) -> bool:
    """Whether a client can use both servers now."""
    try:
        await (await asyncpg.connect(connections.postgres_url)).close()
        await wait_for_answer(connections.nats_url, JETSTREAM_INFO)
    except (OSError, asyncpg.PostgresError):
        return False
    return True
