"""A whole `headway up`, an agent and commands, with known secrets and errors: who is told a secret?

Each may stand in the files that are for it, and in the environment of the processes that need it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import psutil
import pytest
from command_shell import Ended, Shell

KEY = base64.b64encode(bytes(range(32))).decode()
WRONG = "a-password-that-is-wrong"
SHOP = """
from headway.agents import Agent, Context
from headway.sagas import Retry, Saga

shop = Agent("shop")


@shop.action("break")
async def fall_over(ctx: Context, order: dict) -> None:
    raise RuntimeError("no carrier")


broken = Saga("broken").step("break", "shop.break", pivot=True, retry=Retry(maximum_attempts=1))
"""


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    """A folder with a running `headway up` and the agent `shop`, both with keys and a token."""
    shell = Shell(tmp_path, {"HEADWAY_PAYLOAD_KEYS": f"one:{KEY}", "HEADWAY_TOKEN": ""})
    (tmp_path / "shop.py").write_text(SHOP)
    up = shell.start("up", "--json")
    assert up.stdout is not None
    assert json.loads(up.stdout.readline())["pid"] == up.pid
    agent = shell.start("agent", "shop:shop")
    yield shell
    for process in (agent, up):
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


def test_no_secret_is_told_in_logs_arguments_errors_or_to_whom_it_is_not_for(shell: Shell) -> None:
    folder = shell.folder
    connections = json.loads((folder / ".headway" / "connections.json").read_text())
    token = shell.run("tokens", "create", "ada", "--role", "operate").out.strip()
    shell.environment["HEADWAY_TOKEN"] = token
    ended = list(errors(shell, connections, token))
    assert [each.code == 0 for each in ended].count(True) == 2, [each.err for each in ended]

    secrets = {"token": token, "payload key": KEY, **secrets_in(folder / ".headway")}
    secrets |= asyncio.run(secrets_of(connections["postgres_url"]))
    assert len(secrets) >= 7
    told = {
        **{f"output {place}": each.out + each.err for place, each in enumerate(ended)},
        **{str(file): file.read_text(errors="replace") for file in logs(folder)},
        **{f"arguments of {each.pid}": arguments(each) for each in psutil.process_iter()},
    }
    for name, secret in secrets.items():
        for place, text in told.items():
            assert secret not in text, f"{name} is told in {place}"
    assert all(WRONG not in text for text in told.values() if not is_ours(text))
    for file in (folder / ".headway").rglob("*.json"):
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file

    up = psutil.Process(connections["pid"])
    for process in up.children(recursive=True):
        held = environment(process)
        for name in ("token", "payload key"):
            assert secrets[name] not in held, f"{process.name()} has the {name}"
        if process.name() in ("nats-server", "postgres"):
            assert not any(secret in held for secret in secrets.values()), process.name()


def errors(shell: Shell, connections: dict[str, str], token: str) -> Iterator[Ended]:
    """Commands that go wrong in many ways, and two that do not."""
    yield shell.run("saga", "register", "shop:broken")
    wrong = {
        "HEADWAY_NATS_URL": with_password(connections["nats_url"]),
        "HEADWAY_TOKEN": token[:-2],
        "HEADWAY_PAYLOAD_KEYS": f"one:{KEY[:-5]}",
    }
    others = [Shell(shell.folder, shell.environment | {name: wrong[name]}) for name in wrong]
    database = ("--postgres-url", with_password(connections["postgres_url"]))
    with ThreadPoolExecutor(3) as at_once:
        asked = [at_once.submit(other.run, "list") for other in others]
        asked.append(at_once.submit(shell.run, "submit", "broken", '{"n": 1}', "--wait"))
        asked.append(at_once.submit(shell.run, "submit", "none", "{}"))
        asked.append(at_once.submit(shell.run, "tokens", "list", *database))
        yield from (each.result() for each in asked)
    children = psutil.Process(int(connections["pid"])).children()
    nats = next(each for each in children if "nats" in each.name())
    nats.send_signal(signal.SIGKILL)
    yield shell.run("list")


def with_password(url: str) -> str:
    before, _, after = url.partition("://")
    user, _, place = after.rpartition("@")
    return f"{before}://{user.partition(':')[0]}:{WRONG}@{place}"


def secrets_in(data: Path) -> dict[str, str]:
    """The passwords that `up` made."""
    found = {}
    for file in data.rglob("*.json"):
        for name, value in json.loads(file.read_text()).items():
            if "password" in name:
                found[name] = value
    return found


async def secrets_of(url: str) -> dict[str, str]:
    """What is derived from and signed with, as anybody might print it."""
    connection = await asyncpg.connect(url)
    try:
        secret = await connection.fetchval("SELECT secret FROM headway.command_secrets")
        return {"command secret": secret.hex(), "in base64": base64.b64encode(secret).decode()}
    finally:
        await connection.close()


def logs(folder: Path) -> list[Path]:
    found = [*folder.glob("*.log"), *(folder / ".headway").rglob("*.log*")]
    assert len(found) >= 4
    return found


def is_ours(text: str) -> bool:
    """Whether these are the arguments that this test itself gave a password in."""
    return "--postgres-url" in text


def arguments(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def environment(process: psutil.Process) -> str:
    try:
        return Path(f"/proc/{process.pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        assert process.uids().real != os.getuid()
        return ""
