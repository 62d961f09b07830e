"""The doctor on a healthy system and on sick ones."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
from command_shell import Shell
from headway.agents.connection import connect
from headway.coordinator.jetstream import ask
from headway.coordinator.topology import Topology


def findings(report: Any) -> dict[str, dict[str, str]]:
    return {finding["check"]: finding for finding in report["findings"]}


def test_a_healthy_system_passes_every_check(shell: Shell) -> None:
    examined = shell.run_here("doctor", "--json")
    assert examined.code == 0, examined
    assert examined.json["healthy"]
    found = findings(examined.json)
    assert {name for name, one in found.items() if one["state"] == "ok"} >= {
        *("NATS", "PostgreSQL", "schema", "coordinator"),
        *("stream HW_TASKS", "stream HW_COMMANDS", "stream HW_EVENTS"),
        *("clock of NATS", "clock of PostgreSQL", "clock of the coordinator"),
    }
    assert "ok" in shell.run_here("doctor").out


def test_an_unreachable_server_is_named_with_what_to_do(elsewhere: Shell) -> None:
    examined = elsewhere.run_here(
        *("doctor", "--json", "--nats-url", "nats://127.0.0.1:1"),
        *("--postgres-url", "postgresql://me:secret@127.0.0.1:1/x"),
    )
    assert examined.code == 1
    found = findings(examined.json)
    assert found["NATS"]["state"] == found["PostgreSQL"]["state"] == "wrong"
    assert "start the server" in found["NATS"]["remedy"]
    assert "secret" not in examined.out + examined.err


async def test_servers_without_a_coordinator_are_told_apart_from_dead_ones(
    elsewhere: Shell, nats_url: str, postgres_url: str
) -> None:
    examined = await asyncio.to_thread(
        elsewhere.run_here,
        *("doctor", "--json", "--nats-url", nats_url, "--postgres-url", postgres_url),
    )
    assert examined.code == 1
    found = findings(examined.json)
    assert found["NATS"]["state"] == found["PostgreSQL"]["state"] == "ok"
    assert "headway coordinator" in found["streams"]["remedy"]
    assert "headway coordinator" in found["coordinator"]["found"]
    assert found["schema"]["found"] == "no tables yet"


async def test_a_changed_stream_and_an_edited_schema_are_named(
    elsewhere: Shell, nats_url: str, postgres_url: str
) -> None:
    async with await connect(nats_url, name="test") as connection:
        await Topology(connection, 1).declare([])
        held = await ask(connection.wire, "STREAM.INFO.HW_FEED")
        await ask(connection.wire, "STREAM.UPDATE.HW_FEED", {**held["config"], "max_age": 0})
    database = await asyncpg.connect(postgres_url)
    await database.execute("CREATE TABLE headway_migrations (number int, checksum text)")
    await database.execute("INSERT INTO headway_migrations VALUES (1, 'edited')")
    await database.close()
    examined = await asyncio.to_thread(
        elsewhere.run_here,
        *("doctor", "--json", "--nats-url", nats_url, "--postgres-url", postgres_url),
    )
    found = findings(examined.json)
    assert found["stream HW_FEED"]["state"] == "wrong"
    assert "max_age is 0, not 86400000000000" in found["stream HW_FEED"]["found"]
    assert found["stream HW_TASKS"]["state"] == "ok"
    assert found["schema"]["remedy"] == "reinstall Headway"
