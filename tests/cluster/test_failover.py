"""PostgreSQL fails over: the primary dies, its standby is promoted, and work goes on there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
from cluster.standby import Pair
from cluster.system import loaded_system
from harness.eventually import eventually
from harness.services import RunningNats, RunningPostgres
from headway.cli.database import NO_STANDBY, READ_ONLY, TAKES_NO_WRITES, examine_postgres
from headway.coordinator.database import Database
from headway.coordinator.errors import StoreUnavailable
from headway.coordinator.postgres_addresses import addresses, place

pytestmark = pytest.mark.timed

GOES_ON_S = 5.0


@pytest.mark.parametrize(
    ("url", "split"),
    [
        ("postgresql://u:p@h:1/db", ("postgresql://u:p@h:1/db",)),
        (
            "postgresql://u:p@h1:1,h2:2/db?sslmode=require",
            (
                "postgresql://u:p@h1:1/db?target_session_attrs=read-write&sslmode=require",
                "postgresql://u:p@h2:2/db?target_session_attrs=read-write&sslmode=require",
            ),
        ),
        (
            "postgresql://u:p@h1,h2/db?target_session_attrs=primary",
            (
                "postgresql://u:p@h1/db?target_session_attrs=primary",
                "postgresql://u:p@h2/db?target_session_attrs=primary",
            ),
        ),
    ],
)
def test_each_address_gets_a_url_that_asks_for_a_server_that_takes_writes(url, split) -> None:
    assert addresses(url) == split
    assert "p@" not in place(split[0])


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    pair = Pair(tmp_path)
    try:
        await pair.start()
        yield pair
    finally:
        await pair.stop()


async def said(url: str) -> list[tuple[str, str, str]]:
    """What the doctor says of PostgreSQL."""
    found = await examine_postgres(url, {})
    return [(one.state, one.found, one.remedy) for one in found]


async def test_a_server_that_takes_no_writes_or_waits_for_a_standby_is_told(
    postgres_server: RunningPostgres,
) -> None:
    connection = await asyncpg.connect(postgres_server.url)

    async def set_to(setting: str) -> None:
        await connection.execute("SET default_transaction_read_only = off")
        await connection.execute(f"ALTER SYSTEM SET {setting}")
        await connection.execute("SELECT pg_reload_conf()")

    await set_to("synchronous_standby_names = '*'")
    waits = ("wrong", "a standby must confirm each commit, and none is there", NO_STANDBY)
    await eventually(lambda: among(waits, postgres_server.url), what="a standby is missed")
    await set_to("default_transaction_read_only = on")
    at = place(postgres_server.url)
    read_only = ("wrong", f"{at} is read-only", READ_ONLY)
    await eventually(lambda: among(read_only, postgres_server.url), what="it is read-only")
    await connection.close()


async def test_lost_streams_and_absent_coordinators_are_told(postgres_url: str) -> None:
    database = Database(postgres_url, size=1, pinned_plans=False)
    await database.migrate()
    await database.fetch("save_stream_identity", "HW_TASKS", "2026-01-01T00:00:00Z")
    await database.close()
    found = await examine_postgres(postgres_url, {"HW_TASKS": "2026-01-02T00:00:00Z"})
    told = {one.check: one for one in found if one.state == "wrong"}
    assert told["stream HW_TASKS"].found == "was lost and made anew"
    assert told["stream HW_TASKS"].remedy == (
        "a coordinator publishes again what is outstanding, from PostgreSQL; if this stays, none "
        "is at work"
    )
    assert told["coordinators"].found == "none is at work on this database"
    assert told["coordinators"].remedy == (
        "start one: `headway up`, or `headway coordinator` beside your servers; if one answers "
        "all the same, it uses another database"
    )


async def among(wanted: tuple[str, str, str], url: str) -> bool:
    return wanted in await said(url)


async def test_work_goes_on_at_the_promoted_standby_and_nothing_is_lost(
    pair: Pair, nats_server: RunningNats, tmp_path: Path
) -> None:
    async with loaded_system(nats_server.url, pair.url, tmp_path) as system:
        async with system.load.running():
            await system.goes_on()
            first, second = (place(url) for url in addresses(pair.url))
            found = await said(pair.url)
            assert ("ok", f"{second} is a standby", "") in found
            assert any(told.endswith(" streaming (sync)") for _, told, _ in found)
            await pair.primary.kill()
            standby, *_ = [one for one in await said(pair.url) if second in one[1]]
            assert standby == ("wrong", f"{second} is a standby", TAKES_NO_WRITES)
            database = Database(pair.url, size=1, pinned_plans=False)
            with pytest.raises(StoreUnavailable) as refused:
                await database.fetch("now")
            assert f"no address of PostgreSQL takes writes: {first}: " in str(refused.value)
            assert f"; {second}: None of the hosts match the target" in str(refused.value)
            await pair.promote()
            promoted_at = time.monotonic()
            await system.goes_on()
            went_on_s = time.monotonic() - promoted_at
            await database.fetch("now")
            await database.close()
            [away] = [one for one in await said(pair.url) if one[0] == "note"]
            assert away[1].startswith(f"postgresql://{first}/headway: ")
            assert away[2] == "start it, so that there is one to fail over to"
        verdict = await system.settled()
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.statuses.keys() == {"succeeded", "compensated"}
    assert went_on_s < GOES_ON_S
