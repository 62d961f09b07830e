"""PostgreSQL fails over: the primary dies, its standby is promoted, and work goes on there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cluster.standby import Pair
from cluster.system import loaded_system
from harness.services import RunningNats
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


async def test_work_goes_on_at_the_promoted_standby_and_nothing_is_lost(
    pair: Pair, nats_server: RunningNats, tmp_path: Path
) -> None:
    async with loaded_system(nats_server.url, pair.url, tmp_path) as system:
        async with system.load.running():
            await system.goes_on()
            await pair.primary.kill()
            database = Database(pair.url, size=1, pinned_plans=False)
            with pytest.raises(StoreUnavailable) as refused:
                await database.fetch("now")
            first, second = (place(url) for url in addresses(pair.url))
            assert f"no address of PostgreSQL takes writes: {first}: " in str(refused.value)
            assert f"; {second}: None of the hosts match the target" in str(refused.value)
            await pair.promote()
            promoted_at = time.monotonic()
            await system.goes_on()
            went_on_s = time.monotonic() - promoted_at
            await database.fetch("now")
            await database.close()
        verdict = await system.settled()
    assert (verdict.lost, verdict.doubled) == (0, 0)
    assert verdict.statuses.keys() == {"succeeded", "compensated"}
    assert went_on_s < GOES_ON_S
