"""What a data directory may be, and what is deleted from it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from headway.coordinator.connections import Connections, running_connections
from headway.coordinator.datadir import DataDirectory, DataDirectoryError, existing_data_directory


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(DataDirectoryError, match="holds something else"):
        DataDirectory(tmp_path)
    with pytest.raises(DataDirectoryError, match="left alone"):
        existing_data_directory(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path if os.geteuid() == 0 else Path("/usr")
    if os.geteuid() == 0:
        os.chown(tmp_path, 4321, 4321)
    with pytest.raises(DataDirectoryError, match=r"belongs to user .* run as the owner"):
        DataDirectory(theirs)


def test_a_place_where_nothing_can_be_made_is_explained(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataDirectoryError, match=r"cannot keep data in .*file/data"):
        DataDirectory(tmp_path / "file" / "data")


def test_a_directory_of_a_later_format_is_refused(tmp_path: Path) -> None:
    DataDirectory(tmp_path).release()
    (tmp_path / "headway.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(DataDirectoryError, match="is of format 2"):
        DataDirectory(tmp_path)


def test_damaged_secrets_are_explained_and_kept(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    directory.secrets()
    (tmp_path / "secrets.json").write_text("{")
    with pytest.raises(DataDirectoryError, match=r"secrets\.json is damaged"):
        directory.secrets()
    assert (tmp_path / "secrets.json").read_text() == "{"
    directory.release()


def test_a_lock_ends_with_its_holder(tmp_path: Path) -> None:
    DataDirectory(tmp_path).release()
    DataDirectory(tmp_path).release()


def test_three_different_ports_are_chosen_below_those_of_outgoing_connections(
    tmp_path: Path,
) -> None:
    directory = DataDirectory(tmp_path)
    ports = directory.ports()
    assert len({ports.nats, ports.nats_monitoring, ports.postgres}) == 3
    assert max(ports.nats, ports.nats_monitoring, ports.postgres) < 30_000
    assert directory.ports() == ports
    directory.release()


def test_connections_are_there_while_their_process_lives(tmp_path: Path) -> None:
    directory = DataDirectory(tmp_path)
    assert running_connections(tmp_path) is None
    nats = "nats://x", "nats://a", "nats://c"
    mine = Connections(
        nats[0], "postgresql://y", os.getpid(), *nats[1:], "http://h", "hw_console_0"
    )
    directory.publish(mine)
    assert running_connections(tmp_path) == mine
    directory.release()
    assert running_connections(tmp_path) is None
