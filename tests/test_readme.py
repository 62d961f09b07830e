"""The README's example, as a newcomer would run it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from command_shell import Shell

README = (Path(__file__).parent.parent / "README.md").read_text()
HEADWAY = [sys.executable, "-P", "-m", "headway.cli.main"]
TIMEOUT_S = 60


def block(marker: str) -> str:
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", README, re.S)
    assert found, f"README.md has no block marked {marker}"
    return found[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the examples in it and `headway up` running in it."""
    folder = tmp_path_factory.mktemp("newcomer")
    for file in ("shop.py", "concierge.py"):
        (folder / file).write_text(block(file))
    up = subprocess.Popen([*HEADWAY, "up"], cwd=folder, stderr=subprocess.PIPE)
    try:
        assert up.stderr is not None
        for line in up.stderr:
            if line.startswith(b"ready"):
                break
        yield folder
    finally:
        up.terminate()
        up.communicate(timeout=TIMEOUT_S)


def test_the_example_runs_with_the_commands_as_they_stand(place: Path) -> None:
    register, agents, submit = block("commands").strip().splitlines()
    run(register, place)
    agent = subprocess.Popen(arguments(agents.rstrip(" &")), cwd=place, stderr=subprocess.DEVNULL)
    try:
        task = orjson.loads(run(f"{submit} --json", place))
        assert task["status"] == "succeeded"
        expensive = submit.replace('"amount": 5', '"amount": 5000')
        task = orjson.loads(run(f"{expensive} --json", place, status=1))
        assert task["status"] == "compensated"
    finally:
        agent.terminate()
        agent.wait(TIMEOUT_S)


def test_the_agent_that_survives_is_killed_while_a_person_is_asked(place: Path) -> None:
    assert len(block("concierge.py").splitlines()) < 30
    register, agent, submit, parked, approve, journal = (
        line.partition("#")[0] for line in block("concierge commands").strip().splitlines()
    )
    run(register, place)
    first = start(agent, place)
    task = orjson.loads(run(f"{submit} --json", place))["task"]
    call = waiting(parked, place)
    first.kill()
    first.wait(TIMEOUT_S)
    second = start(agent, place)
    try:
        assert (call["task"], call["kind"], call["tool"]) == (task, "gate", "refund")
        run(approve.replace("TASK", task).replace("INVOCATION", call["invocation"]), place)
        view = orjson.loads(run(f"headway watch {task} --json", place).splitlines()[-1])
        assert view["status"] == "succeeded"
        assert view["steps"][0]["result"] == f"500 cents under {call['invocation']}"
        printed = run(f"{journal.replace('TASK', task)} --json", place)
        entries = [orjson.loads(line) for line in printed.splitlines()]
        begun = [entry["tool"] for entry in entries if entry["kind"] == "intent"]
        assert begun == ["ask_model", "refund", "refund"]  # the second was cut short
    finally:
        second.terminate()
        second.wait(TIMEOUT_S)


def test_every_command_and_file_it_names_is_there(tmp_path: Path) -> None:
    for command in set(re.findall(r"(?:^|`)headway (\w+)", README, re.M)):
        assert Shell(tmp_path).run_here(command, "--help").code == 0, command
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in set(re.findall(r"(?:^|`)make (\w+)", README, re.M)):
        assert f"\n{target}:" in makefile, target


def start(command: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(arguments(command.rstrip(" &")), cwd=folder, stderr=subprocess.DEVNULL)


def waiting(command: str, folder: Path) -> Any:
    """The first thing that waits for a person, once there is one."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        found = orjson.loads(run(f"{command} --json", folder))["waiting"]
        if found:
            return found[0]
    raise AssertionError("nothing waits for a person")


def run(command: str, folder: Path, *, status: int = 0) -> bytes:
    ran = subprocess.run(
        arguments(command), cwd=folder, capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert ran.returncode == status, ran.stderr.decode()
    return ran.stdout


def arguments(command: str) -> list[str]:
    words = shlex.split(command)
    assert words[0] == "headway"
    return [*HEADWAY, *words[1:]]
