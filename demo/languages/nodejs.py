"""The agent in TypeScript as something that can be started: its packages installed, and compiled.

That is done once for these very sources, into the environment of this Python, or into `elsewhere`
if nothing can be written there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from headway.cli.failures import MissingExtra

SOURCES = Path(__file__).parent / "typescript"
NODE_LEAST = 18
INSTALL_TIMEOUT_S = 300
INSTALL_NODE = (
    f"the agent in TypeScript needs Node.js {NODE_LEAST} or later with npm (Debian: apt install "
    "nodejs npm)"
)
END_LINES = 10  # of what npm says when it fails


def command(elsewhere: Path) -> tuple[str, ...]:
    """What starts the agent. MissingExtra says what is not installed, or what npm could not do."""
    node, npm = _program("node"), _program("npm")
    _check_version(node)
    built = _place(elsewhere) / f"typescript-{_digest()}"
    if not (built / "dist" / "main.js").exists():
        _build(npm, built)
    return node, str(built / "dist" / "main.js")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingExtra(f"{INSTALL_NODE}; there is no `{name}` here")
    return found


def _check_version(node: str) -> None:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = said.strip().removeprefix("v").partition(".")[0]
    if not version.isdigit() or int(version) < NODE_LEAST:
        raise MissingExtra(f"{INSTALL_NODE}; the `node` here says {said.strip()!r}")


def _place(elsewhere: Path) -> Path:
    own = Path(sys.prefix) / "share" / "headway"
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError:
        return elsewhere
    return own if os.access(own, os.W_OK) else elsewhere


def _digest() -> str:
    """Of all sources, so that what was made of others is not taken for theirs."""
    digest = hashlib.sha256()
    for path in sorted(each for each in SOURCES.rglob("*") if each.is_file()):
        digest.update(f"{path.relative_to(SOURCES)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _build(npm: str, built: Path) -> None:
    """Make it beside its place, and put it there at once: whoever is first counts."""
    built.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=built.parent, prefix=".typescript-") as temporary:
        work = Path(temporary) / "work"
        ignored = shutil.ignore_patterns("node_modules", "dist")
        shutil.copytree(SOURCES, work, ignore=ignored)
        _run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=work)
        _run(npm, "run", "--silent", "build", cwd=work)
        try:
            work.rename(built)
        except OSError:
            if not (built / "dist" / "main.js").exists():
                raise


def _run(npm: str, *arguments: str, cwd: Path) -> None:
    try:
        ended = subprocess.run(  # noqa: S603
            [npm, *arguments],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=INSTALL_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise MissingExtra(f"`npm {arguments[0]}` took over {INSTALL_TIMEOUT_S} s") from None
    if ended.returncode:
        end = "\n".join(ended.stdout.splitlines()[-END_LINES:])
        raise MissingExtra(f"the agent in TypeScript cannot be made: `npm {arguments[0]}`:\n{end}")
