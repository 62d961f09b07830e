"""Every guide is walked as it is written: its files are laid down, its commands are run.

A guide's blocks make one script, in their order, in a folder of its own beside a `headway up`:
`<!-- file NAME -->` before a block makes it a file, `sh` blocks are commands, and a block after
`<!-- elsewhere -->` needs another machine: of that, only the names of commands are checked. Any
command that fails ends the walk; what is left running at its end is stopped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_shell import Shell

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
BIN = Path(sys.executable).parent
WALK_WITHIN_S = 120.0
READY_WITHIN_S = 60.0

_BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.S)


@dataclass(frozen=True)
class Block:
    mark: str
    kind: str
    text: str


def blocks(guide: Path) -> list[Block]:
    found = _BLOCK.finditer(guide.read_text("utf-8"))
    return [Block(each["mark"] or "", each["kind"], each["text"]) for each in found]


def script(guide: Path) -> str:
    """The guide as a shell script."""
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for block in blocks(guide):
        if block.mark.startswith("file "):
            lines.append(f"cat > {block.mark.removeprefix('file ')} <<'END OF FILE'")
            lines.append(f"{block.text}END OF FILE")
        elif block.kind == "sh" and block.mark != "elsewhere":
            lines.append(block.text)
    return "\n".join(lines)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data directory with a `headway up` on it."""
    data = tmp_path_factory.mktemp("guides") / "data"
    log = data.with_suffix(".log")
    with log.open("wb") as err:
        up = subprocess.Popen([BIN / "headway", "up", "--data", data], stderr=err)
    try:
        with subprocess.Popen(["tail", "-f", "-n", "+1", log], stdout=subprocess.PIPE) as tail:
            assert tail.stdout is not None
            for line in tail.stdout:
                if line.startswith(b"ready"):
                    break
            tail.terminate()
        yield data
    finally:
        up.terminate()
        up.wait(READY_WITHIN_S)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_a_guide_leads_where_it_says(guide: Path, place: Path, tmp_path: Path) -> None:
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("HEADWAY")}
    environment |= {"HEADWAY_DATA": str(place), "PATH": f"{BIN}:{os.environ['PATH']}"}
    walk = subprocess.Popen(
        ["bash", "-c", script(guide)],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        said, _ = walk.communicate(timeout=WALK_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(walk.pid, signal.SIGKILL)
        said, _ = walk.communicate()
        raise AssertionError(f"{guide.name} does not come to its end:\n{said}") from None
    assert walk.returncode == 0, said


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_commands_that_are_for_elsewhere_are_there(guide: Path, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for block in blocks(guide):
        if block.mark != "elsewhere":
            continue
        for words in set(re.findall(r"^headway ([a-z]+(?: [a-z]+)?)", block.text, re.M)):
            first, _, second = words.partition(" ")
            tried = [first, second] if second and not _is_command(shell, first) else [first]
            assert _is_command(shell, *tried), f"{guide.name}: there is no `headway {words}`"


def _is_command(shell: Shell, *words: str) -> bool:
    return shell.run_here(*words, "--help").code == 0


def test_the_readme_names_every_guide() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [guide.name for guide in GUIDES if f"docs/guides/{guide.name}" not in readme] == []
