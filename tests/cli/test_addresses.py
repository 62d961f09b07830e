"""Which servers a command talks to."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from headway.agents.errors import Unavailable
from headway.cli.addresses import Given, Who, data_directory, find, without_secret
from headway.cli.failures import BadInput


def running_up(data: Path, pid: int) -> None:
    data.mkdir(exist_ok=True)
    written = {
        "nats_url": "nats://up:1",
        "postgres_url": "postgresql://up:2",
        "pid": pid,
        "agents_nats_url": "nats://agents@up:1",
        "coordinators_nats_url": "nats://coordinators@up:1",
        "http_url": "http://up:3",
        "console_token": "hw_console_0",
    }
    (data / "connections.json").write_text(json.dumps(written))


def ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_flag_wins_over_the_environment_and_a_running_up(tmp_path: Path) -> None:
    running_up(tmp_path, os.getpid())
    found = find(Given(nats_url="nats://flag", data=tmp_path), {"HEADWAY_NATS_URL": "nats://env"})
    assert (found.nats_url, found.origin) == ("nats://flag", "--nats-url")


def test_the_environment_wins_over_a_running_up_and_takes_nothing_from_it(tmp_path: Path) -> None:
    running_up(tmp_path, os.getpid())
    found = find(Given(data=tmp_path), {"HEADWAY_NATS_URL": "nats://env"})
    assert (found.nats_url, found.postgres_url) == ("nats://env", None)


def test_both_addresses_come_from_a_running_up(tmp_path: Path) -> None:
    running_up(tmp_path, os.getpid())
    found = find(Given(data=tmp_path), {})
    assert (found.nats_url, found.postgres_url) == ("nats://up:1", "postgresql://up:2")


@pytest.mark.parametrize("who", ["agents", "coordinators"])
def test_a_running_up_has_an_address_for_each_kind_of_user(tmp_path: Path, who: Who) -> None:
    running_up(tmp_path, os.getpid())
    assert find(Given(data=tmp_path), {}, who).nats_url == f"nats://{who}@up:1"
    assert find(Given(nats_url="nats://flag"), {}, who).nats_url == "nats://flag"


def test_an_up_that_is_gone_is_not_used(tmp_path: Path) -> None:
    running_up(tmp_path, ended_process())
    with pytest.raises(Unavailable, match="--nats-url or HEADWAY_NATS_URL"):
        find(Given(data=tmp_path), {})


def test_without_any_address_the_error_says_how_to_give_one(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no `headway up` runs in"):
        find(Given(data=tmp_path), {})


def test_a_damaged_connections_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "connections.json").write_text("{")
    with pytest.raises(Unavailable, match=r"connections\.json is damaged"):
        find(Given(data=tmp_path), {})


def test_the_data_directory_is_the_flags_then_the_environments_then_the_usual_one() -> None:
    assert data_directory(Path("flag"), {"HEADWAY_DATA": "env"}) == Path("flag")
    assert data_directory(None, {"HEADWAY_DATA": "env"}) == Path("env")
    assert data_directory(None, {}) == Path(".headway")


def test_no_secret_is_shown_with_an_address() -> None:
    urls = "nats://me:secret@a:4222,nats://b:4222"
    assert without_secret(urls) == "nats://a:4222,nats://b:4222"


@pytest.mark.parametrize("url", ["nats://host:port", "nats://[::1", "nats://a:1,nats://b:x"])
def test_what_is_no_url_is_refused_with_its_origin(url: str) -> None:
    with pytest.raises(BadInput, match="--nats-url"):
        find(Given(nats_url=url), {})
