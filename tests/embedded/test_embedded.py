"""`Embedded` inside a process, as the demo uses it, and the faults that it must explain."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest
from harness.eventually import eventually
from harness.services import RunningNats, nats_in, postgres_in
from harness.up import STANDIN, alive
from headway.coordinator.cores import cores
from headway.coordinator.datadir import DataDirectoryError
from headway.coordinator.embedded import Embedded, reset
from headway.coordinator.logfile import LogFile
from headway.coordinator.process import Launch, ServerError, start_process
from headway.coordinator.serveruser import server_user
from headway.coordinator.supervisor import Supervised

FAILS = (sys.executable, "-c", "import sys; print('no luck today'); sys.exit(3)")


@pytest.mark.timed
async def test_killed_servers_come_back_on_their_ports_with_their_data(data: Path) -> None:
    async with Embedded(data, coordinators=2, coordinator_command=STANDIN) as embedded:
        assert list(embedded.processes) == ["postgres", "nats", "coordinator-1", "coordinator-2"]
        connection = await asyncpg.connect(embedded.postgres_url)
        await connection.execute("CREATE TABLE kept ()")
        for process in embedded.processes.values():
            await _kill_and_see_it_back(process)
        await embedded.processes["postgres"].server.wait_ready()
        again = await asyncpg.connect(embedded.postgres_url)
        assert await again.fetchval("SELECT to_regclass('kept')::text") == "kept"
        await again.close()
        connection.terminate()


@pytest.mark.timed
async def test_a_real_coordinator_answers_again_after_everything_was_killed(data: Path) -> None:
    async with Embedded(data) as embedded:
        for process in embedded.processes.values():
            await _kill_and_see_it_back(process)
        coordinator = embedded.processes["coordinator-1"]
        async with asyncio.timeout(10):
            await coordinator.server.wait_ready()


@pytest.mark.timed
async def test_a_busy_worker_does_not_keep_a_killed_postgres_away(data: Path) -> None:
    async with Embedded(data, coordinators=0) as embedded:
        connection = await asyncpg.connect(embedded.postgres_url)
        worker = psutil.Process(await connection.fetchval("SELECT pg_backend_pid()"))
        worker.suspend()  # as one in a long computation: it does not see its postmaster die
        postgres = embedded.processes["postgres"]
        await _kill_and_see_it_back(postgres)
        await postgres.server.wait_ready()
        assert alive([worker]) == []
        connection.terminate()


async def test_ports_and_passwords_are_made_once(data: Path) -> None:
    async with Embedded(data, coordinators=0) as embedded:
        first = embedded.connections
    async with Embedded(data, coordinators=0) as embedded:
        assert embedded.connections == first


async def test_a_second_use_of_the_data_is_refused_by_pid(data: Path) -> None:
    async with Embedded(data, coordinators=0):
        with pytest.raises(DataDirectoryError, match=f"in use by process {os.getpid()}"):
            await Embedded(data, coordinators=0).start()
        with pytest.raises(DataDirectoryError, match="in use by"):
            await reset(data)


async def test_a_coordinator_that_cannot_start_is_explained_and_leaves_nothing(data: Path) -> None:
    embedded = Embedded(data, coordinator_command=FAILS)
    with pytest.raises(ServerError, match=r"(?s)coordinator-1 ended while starting.*no luck today"):
        await embedded.start()
    assert embedded.processes == {}
    assert [each for each in psutil.Process().children() if each.name() == "nats-server"] == []
    async with Embedded(data, coordinators=0):  # the lock is free again
        pass


async def test_a_program_that_is_not_there_is_explained(data: Path) -> None:
    with pytest.raises(ServerError, match="cannot run /no/such/program"):
        await Embedded(data, coordinator_command=["/no/such/program"]).start()


async def test_servers_left_over_by_a_dead_supervisor_are_ended_first_and_no_others(
    data: Path, nats_server: RunningNats
) -> None:
    nats, postgres = nats_in(data / "nats"), postgres_in(data / "postgres")
    await nats.start()
    left = start_process(postgres.server.launch(), postgres.server.log)
    await eventually((data / "postgres" / "postmaster.pid").exists)
    async with Embedded(data, coordinators=0) as embedded:
        assert not nats.running
        assert not left.running
        await embedded.processes["postgres"].server.wait_ready()
    assert nats_server.running


async def test_a_pid_file_that_a_power_cut_left_empty_does_not_keep_postgres_away(
    data: Path,
) -> None:
    (data / "postgres" / "postmaster.pid").touch()
    async with Embedded(data, coordinators=0):
        pass


async def test_a_pid_file_that_names_another_process_does_not_keep_postgres_away(
    data: Path,
) -> None:
    with _bystander() as bystander:
        (data / "postgres" / "postmaster.pid").write_text(f"{bystander.pid}\n")
        async with Embedded(data, coordinators=0):
            pass
        assert bystander.poll() is None


async def test_a_first_start_that_was_interrupted_begins_again(tmp_path: Path) -> None:
    unfinished = tmp_path / "postgres-unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").touch()
    postgres = postgres_in(tmp_path / "postgres")
    await postgres.start()
    await postgres.stop()
    assert not unfinished.exists()


async def test_a_user_without_a_name_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_234_567)
    with pytest.raises(ServerError, match=r"user id 1234567 has no entry in /etc/passwd"):
        await postgres_in(tmp_path / "postgres").start()


async def test_data_of_another_postgres_version_is_explained(data: Path) -> None:
    (data / "postgres" / "PG_VERSION").write_text("17\n")
    with pytest.raises(ServerError, match="made by PostgreSQL 17, and this is 18"):
        await Embedded(data, coordinators=0).start()


async def test_lost_passwords_are_explained(data: Path) -> None:
    (data / "secrets.json").unlink()
    with pytest.raises(ServerError, match=r"with another password than secrets\.json holds"):
        await Embedded(data, coordinators=0).start()


async def test_a_port_that_something_else_took_is_replaced_and_said(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    taken = json.loads((data / "ports.json").read_text())["postgres"]
    with socket.create_server(("127.0.0.1", taken)), caplog.at_level(logging.WARNING):
        async with Embedded(data, coordinators=0) as embedded:
            assert str(taken) not in embedded.postgres_url
            stored = json.loads((data / "ports.json").read_text())["postgres"]
            assert f":{stored}/" in embedded.postgres_url
    assert f"something else has taken port {taken}" in caplog.text


async def test_a_reset_leaves_a_directory_that_starts_anew(data: Path) -> None:
    before = (data / "secrets.json").read_text()
    (data / "notes.txt").write_text("the user's own")
    await reset(data)
    assert sorted(os.listdir(data)) == ["headway.json", "lock", "notes.txt"]
    async with Embedded(data, coordinators=0):
        assert (data / "secrets.json").read_text() != before


async def test_a_reset_of_nothing_does_nothing(tmp_path: Path) -> None:
    await reset(tmp_path / "absent")
    assert os.listdir(tmp_path) == []


async def test_children_are_started_from_the_main_thread_only(tmp_path: Path) -> None:
    refused: list[RuntimeError] = []

    def start_in_thread() -> None:
        try:
            start_process(Launch(("true",), {}), LogFile(tmp_path / "log"))
        except RuntimeError as error:
            refused.append(error)

    thread = threading.Thread(target=start_in_thread)
    thread.start()
    thread.join()
    assert "main thread" in str(refused[0])


async def _kill_and_see_it_back(process: Supervised) -> None:
    killed, restarts = process.pid, process.restarts
    os.kill(killed, signal.SIGKILL)
    await eventually(lambda: process.restarts > restarts and process.running, within_s=1)
    assert process.pid != killed


@contextlib.contextmanager
def _bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the servers' user that is none of ours."""
    user = server_user()
    with subprocess.Popen(["sleep", "60"], user=user.uid if user else None) as process:
        yield process
        process.kill()


@pytest.mark.parametrize(("asked", "given"), [("", max(1, cores() // 2)), ("7", 7)])
async def test_nats_server_leaves_half_the_cores_to_who_is_beside_it(
    data: Path, monkeypatch: pytest.MonkeyPatch, asked: str, given: int
) -> None:
    monkeypatch.setenv("GOMAXPROCS", asked)
    server = nats_in(data)
    await server.start()
    shown = psutil.Process(server.pid).environ()
    await server.stop()
    assert shown["GOMAXPROCS"] == str(given)


def test_the_cores_are_those_that_this_process_may_use(tmp_path: Path) -> None:
    affine = os.sched_getaffinity(0)
    quota = tmp_path / "cpu.max"
    assert cores(quota) == len(affine)
    for text, most in (("max 100000", 1_000), ("150000 100000", 2), ("20000 100000", 1)):
        quota.write_text(text)
        assert cores(quota) == min(len(affine), most)
    try:
        os.sched_setaffinity(0, {min(affine)})
        assert cores(quota) == 1
    finally:
        os.sched_setaffinity(0, affine)
