"""What is said where Node.js is missing, too old, or npm fails; and that things are made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from headway.cli.failures import MissingExtra
from headway.demo.languages import nodejs

HEADWAY = (sys.executable, "-P", "-m", "headway.cli.main")
NEEDS = "this needs Node.js 18 or later and npm (Debian: apt install nodejs npm)"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are looked for, and no others; and where things are made."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "package.json").write_text("{}")
    return tmp_path


def _program(place: Path, name: str, script: str) -> None:
    path = place / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _refusal(place: Path) -> str:
    with pytest.raises(MissingExtra) as refused:
        nodejs.made(place / "sources", "this", place / "elsewhere")
    return str(refused.value)


def test_without_node_it_is_said_what_to_install(place: Path) -> None:
    assert _refusal(place) == f"{NEEDS}; there is no `node` here"


def test_without_npm_too(place: Path) -> None:
    _program(place, "node", "echo v20.1.0")
    assert _refusal(place) == f"{NEEDS}; there is no `npm` here"


def test_an_old_node_is_not_enough(place: Path) -> None:
    _program(place, "node", "echo v16.20.2")
    _program(place, "npm", "exit 0")
    assert _refusal(place) == f"{NEEDS}; the `node` here says 'v16.20.2'"


def test_what_npm_says_when_it_fails_is_told_and_nothing_is_left(place: Path) -> None:
    _program(place, "node", "echo v20.1.0")
    _program(place, "npm", "echo no such package; exit 1")
    told = "`npm ci --ignore-scripts --no-audit --no-fund` failed:\nno such package"
    assert _refusal(place) == told
    assert list((place / "prefix" / "share" / "headway").iterdir()) == []


def test_what_was_made_once_is_not_made_again(place: Path) -> None:
    _program(place, "node", "echo v20.1.0")
    _program(place, "npm", "echo called >> made-by-npm")
    _, first = nodejs.made(place / "sources", "this", place / "elsewhere")
    assert (first / "made-by-npm").read_text() == "called\n" * 2  # ci and run build
    assert nodejs.made(place / "sources", "this", place / "elsewhere")[1] == first
    (place / "sources" / "package.json").write_text('{"version": "2"}')
    assert nodejs.made(place / "sources", "this", place / "elsewhere")[1] != first


def test_where_nothing_can_be_written_it_is_made_elsewhere(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "a-file").write_text("")
    monkeypatch.setattr(sys, "prefix", str(place / "a-file"))
    _program(place, "node", "echo v20.1.0")
    _program(place, "npm", "exit 0")
    (place / "elsewhere").mkdir()
    _, made = nodejs.made(place / "sources", "this", place / "elsewhere")
    assert made.parent == place / "elsewhere"


def test_the_demo_says_so_before_it_starts_anything(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    command = [*HEADWAY, "demo", "languages"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == (
        "headway: the agent in TypeScript needs Node.js 18 or later and npm (Debian: apt install "
        "nodejs npm); there is no `node` here"
    )
    assert "PostgreSQL" not in ran.stderr
