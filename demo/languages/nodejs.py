"""Programs for Node.js as something that can be started: their packages installed, and compiled.

That is done once for the very sources, into the environment of this Python, or into another place
if nothing can be written there. Always holds: what is in its place is whole.
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

NODE_LEAST = 18
NPM_TIMEOUT_S = 300
END_LINES = 10  # of what npm says when it fails


def made(sources: Path, what: str, elsewhere: Path) -> tuple[str, Path]:
    """`node`, and the folder of a program that was made of the package in `sources`.

    `what` names it for people. MissingExtra says what is not installed, or what npm could not do.
    """
    node, npm = _program("node", what), _program("npm", what)
    _check_version(node, what)
    folder = _place(elsewhere) / f"{sources.name}-{_digest(sources)}"
    if not folder.exists():
        _make(npm, sources, folder)
    return node, folder


def _program(program: str, what: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise MissingExtra(f"{_needs(what)}; there is no `{program}` here")
    return found


def _check_version(node: str, what: str) -> None:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    version = said.strip().removeprefix("v").partition(".")[0]
    if not version.isdigit() or int(version) < NODE_LEAST:
        raise MissingExtra(f"{_needs(what)}; the `node` here says {said.strip()!r}")


def _needs(what: str) -> str:
    return f"{what} needs Node.js {NODE_LEAST} or later and npm (Debian: apt install nodejs npm)"


def _place(elsewhere: Path) -> Path:
    own = Path(sys.prefix) / "share" / "headway"
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError:
        return elsewhere
    return own if os.access(own, os.W_OK) else elsewhere


def _digest(sources: Path) -> str:
    """Of all sources, so that what was made of others is not taken for theirs."""
    digest = hashlib.sha256()
    for path in sorted(each for each in sources.rglob("*") if _is_source(each, sources)):
        digest.update(f"{path.relative_to(sources)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _is_source(path: Path, sources: Path) -> bool:
    made_here = {"node_modules", "dist"}.isdisjoint(path.relative_to(sources).parts)
    return made_here and path.is_file()


def _make(npm: str, sources: Path, folder: Path) -> None:
    """Make it beside its place, and put it there at once: whoever is first counts."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        work = Path(temporary) / "work"
        shutil.copytree(sources, work, ignore=shutil.ignore_patterns("node_modules", "dist"))
        _run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=work)
        _run(npm, "run", "--if-present", "build", cwd=work)
        try:
            work.rename(folder)
        except OSError:
            if not folder.exists():
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
            timeout=NPM_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise MissingExtra(f"`npm {arguments[0]}` took over {NPM_TIMEOUT_S} s") from None
    if ended.returncode:
        end = "\n".join(ended.stdout.splitlines()[-END_LINES:])
        raise MissingExtra(f"`npm {' '.join(arguments)}` failed:\n{end}")
