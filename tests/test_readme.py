"""The README's example, as a newcomer would run it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
HEADWAY = [sys.executable, "-P", "-m", "headway.cli.main"]
TIMEOUT_S = 60


def block(marker: str) -> str:
    found = re.search(rf"<!-- {re.escape(marker)} -->\n```\w+\n(.*?)```", README, re.S)
    assert found, f"README.md has no block marked {marker}"
    return found[1]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A folder with the example in it and `headway up` running in it."""
    (tmp_path / "shop.py").write_text(block("shop.py"))
    up = subprocess.Popen([*HEADWAY, "up"], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        assert up.stderr is not None
        for line in up.stderr:
            if line.startswith(b"ready"):
                break
        yield tmp_path
    finally:
        up.terminate()
        up.communicate(timeout=TIMEOUT_S)


def test_the_example_runs_with_the_commands_as_they_stand(shop: Path) -> None:
    register, agents, submit = block("commands").strip().splitlines()
    run(register, shop)
    agent = subprocess.Popen(arguments(agents.rstrip(" &")), cwd=shop, stderr=subprocess.DEVNULL)
    try:
        task = orjson.loads(run(f"{submit} --json", shop))
        assert task["status"] == "succeeded"
        expensive = submit.replace('"amount": 5', '"amount": 5000')
        task = orjson.loads(run(f"{expensive} --json", shop, status=1))
        assert task["status"] == "compensated"
    finally:
        agent.terminate()
        agent.wait(TIMEOUT_S)


def test_every_command_and_file_it_names_is_there() -> None:
    for command in set(re.findall(r"(?:^|`)headway (\w+)", README, re.M)):
        ran = subprocess.run(
            [*HEADWAY, command, "--help"], capture_output=True, timeout=TIMEOUT_S, check=False
        )
        assert ran.returncode == 0, command
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in set(re.findall(r"(?:^|`)make (\w+)", README, re.M)):
        assert f"\n{target}:" in makefile, target


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
