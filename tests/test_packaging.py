"""What a user gets from a wheel, in empty environments and empty folders."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ("sagas", "agents", "coordinator", "drills", "conform", "cli", "demo")
FILES = ("pyproject.toml", "README.md", "LICENSE")
CONSTRAINTS = ROOT / "constraints.txt"


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and an empty folder in which to use it."""

    path: Path
    folder: Path

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HEADWAY"))}
        return subprocess.run(
            [self.path / "bin" / program, *arguments],
            cwd=self.folder,
            env=inherited,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def python(self, code: str) -> str:
        """What `code` prints; it must not fail."""
        ended = self.run("python", "-c", code)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy of the sources, so that nothing left in the tree gets into it."""
    source = tmp_path_factory.mktemp("source")
    for folder in SOURCES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, source / folder, ignore=ignored)
    for file in FILES:
        shutil.copy(ROOT / file, source)
    out = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(source))
    [built] = out.glob("headway-*.whl")
    return built


@pytest.fixture(scope="session")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`pip install headway`."""
    return _environment(tmp_path_factory, str(wheel))


@pytest.fixture(scope="session")
def everything(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """`pip install 'headway[all]' openai-agents`."""
    return _environment(tmp_path_factory, f"{wheel}[all]", "openai-agents")


def test_the_wheel_holds_code_sql_and_licence_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"headway"}
    shipped = {
        f"headway/{path.relative_to(ROOT)}"
        for folder in SOURCES
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".sql", ".typed", ".yaml", ".ts", ".json"}
    }
    assert shipped <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_base_install_has_no_module_named_agents(base: Environment) -> None:
    ended = base.run("python", "-c", "import agents")
    assert "No module named 'agents'" in ended.stderr


def test_the_base_install_gives_agents_and_clients_without_a_database_driver(
    base: Environment,
) -> None:
    code = "import sys, headway.agents as a; a.Agent, a.Client; print('asyncpg' in sys.modules)"
    assert base.python(code) == "False"
    assert base.run("python", "-c", "import asyncpg").returncode != 0


@pytest.mark.parametrize("command", [[], ["agent"], ["submit"], ["up"], ["coordinator"], ["demo"]])
def test_the_base_install_explains_every_command(base: Environment, command: list[str]) -> None:
    shown = base.run("headway", *command, "--help")
    assert shown.returncode == 0, shown.stderr
    assert "Usage: headway" in shown.stdout


@pytest.mark.parametrize("command", ["up", "demo"])
def test_the_base_install_says_what_to_install_for_a_server_command(
    base: Environment, command: str
) -> None:
    ended = base.run("headway", command)
    assert ended.returncode == 2
    assert "pip install 'headway[all]'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_full_install_runs_in_an_empty_folder(everything: Environment) -> None:
    assert "Usage: headway" in everything.run("headway", "--help").stdout
    assert everything.run("headway", "version", "--json").returncode == 0


def test_the_demo_runs_in_an_empty_folder(everything: Environment) -> None:
    ended = everything.run("headway", "demo", "--count", "4", "--kills", "0", "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["holds"] is True
    assert list(everything.folder.iterdir()) == []


def test_headway_agents_works_beside_the_openai_agents_sdk(everything: Environment) -> None:
    code = (
        "import agents, headway.agents\n"
        "assert agents.Agent is not headway.agents.Agent\n"
        "theirs = agents.Agent(name='helper')\n"
        "ours = headway.agents.Agent('payments')\n"
        "print(theirs.name, ours.name, agents.__file__.split('site-packages')[1])"
    )
    assert everything.python(code) == "helper payments /agents/__init__.py"


def _environment(factory: pytest.TempPathFactory, *requirements: str) -> Environment:
    path = factory.mktemp("environment") / "venv"
    venv.create(path)
    python = str(path / "bin" / "python")
    _run(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--no-compile", "-c", str(CONSTRAINTS), *requirements),
    )
    return Environment(path, factory.mktemp("empty"))


def _run(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
