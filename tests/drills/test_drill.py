"""`headway drill` as a person gives it, on a running `headway up`."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from command_shell import Shell
from headway.agents import Client
from headway.cli.failures import BadInput
from headway.cli.main import build
from headway.drills.faults import FAULTS, Fault
from headway.drills.run import run
from headway.drills.setting import NotRecovered, Setting
from headway.drills.staging import staging_faults
from typer.testing import CliRunner

READY_WITHIN_S = 60.0
DRILLED_WITHIN_S = 150.0
ALL = [fault.name for fault in (*FAULTS, *staging_faults(Path()))]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("drill"))
    up = shell.start("up", "--json")
    try:
        assert up.stdout is not None
        assert json.loads(up.stdout.readline())["pid"] == up.pid, "`headway up` did not start"
        yield shell
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=READY_WITHIN_S)


def only(*faults: str) -> list[str]:
    return [argument for fault in faults for argument in ("--fault", fault)]


def left_behind() -> list[int]:
    """Agents of a drill that still run."""
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if "headway.drills.handlers:drill" in (process.info["cmdline"] or [])
    ]


def test_every_fault_recovers_and_nothing_is_left_behind(shell: Shell) -> None:
    drill = shell.start("drill", "--json", "--staging", "--yes")
    out, _ = drill.communicate(timeout=DRILLED_WITHIN_S)
    found = json.loads(out)
    assert drill.returncode == 0, found
    assert found["ok"]
    assert found["differences"] == []
    assert [trial["fault"] for trial in found["trials"]] == ALL
    assert all(trial["recovered"] and trial["took_s"] is not None for trial in found["trials"])
    assert left_behind() == []
    listed = shell.run("list", "--json").json["tasks"]
    assert {task["status"] for task in listed} <= {"succeeded", "compensated"}


def test_what_is_harmed_in_staging_is_asked_for_first(shell: Shell) -> None:
    refused = shell.run("drill", "--staging", *only("store-deleted"), stdin="n\n")
    assert refused.code == 1
    data = shell.folder / ".headway"
    assert (
        f"Kill the servers of the `headway up` in {data}, and delete its JetStream store? [y/N]"
        in refused.err
    )


def test_the_faults_are_listed_with_what_must_come_of_them() -> None:
    listed = json.loads(CliRunner().invoke(build(), ["drill", "--list", "--json"]).stdout)
    assert [one["name"] for one in listed["faults"]] == ALL
    table = CliRunner().invoke(build(), ["drill", "--list"]).stdout
    assert "another instance runs the step again" in table


def test_a_fault_that_there_is_not_is_refused() -> None:
    refused = CliRunner().invoke(build(), ["drill", *only("store-deleted")])  # without --staging
    assert isinstance(refused.exception, BadInput)
    assert str(refused.exception) == (
        "there is no fault 'store-deleted'; `headway drill --list` shows those that there are, "
        "some of them with --staging only"
    )


def test_one_that_is_told_to_stop_leaves_nothing_behind(shell: Shell) -> None:
    drill = shell.start("drill", "--rounds", "1000", *only("agent-frozen"))
    _until(frozen_agents)
    refused = shell.run("drill", *only("step-fails"))
    assert refused.code == 3
    assert refused.err == (
        "headway: another drill is at work: agents 'headway-drill' are there; wait until it ends\n"
    )
    drill.send_signal(signal.SIGTERM)
    drill.communicate(timeout=READY_WITHIN_S)
    assert drill.returncode == 130
    assert left_behind() == []
    listed = shell.run("list", "--json").json["tasks"]
    assert {task["status"] for task in listed} <= {"succeeded", "compensated"}


def frozen_agents() -> list[int]:
    return [pid for pid in left_behind() if psutil.Process(pid).status() == psutil.STATUS_STOPPED]


def _until(condition) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_what_did_not_recover_is_told_and_its_tasks_are_ended(shell: Shell) -> None:
    connections = json.loads((shell.folder / ".headway" / "connections.json").read_text())

    async def never(setting: Setting) -> float:
        await setting.submit(charge="linger=60")
        raise NotRecovered("it stays broken")

    async def doubled(setting: Setting) -> float:
        task = await setting.submit()
        await setting.settled(task, "succeeded")
        setting.downstream.pay(task, task)
        return 9.0

    async with await Client.connect(connections["nats_url"]) as client:
        report = await run(
            client,
            [
                Fault("never", "…", "how", "why", 1.0, never),
                Fault("twice", "…", "how", "why", 1.0, doubled),
            ],
            rounds=1,
            environment={"HEADWAY_DATA": str(shell.folder / ".headway")},
            tell=lambda _: None,
        )
        assert not report.ok
        broken, late = report.trials
        assert (broken.verdict, broken.how, broken.took_s) == ("FAILED", "it stays broken", None)
        assert (late.verdict, late.took_s) == ("late", 9.0)
        assert (await client.status(broken.tasks[0])).status == "compensated"
        assert report.differences == [f"task {late.tasks[0]}: paid 2 times"]
