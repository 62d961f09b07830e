"""Checks of PostgreSQL. Needs the extra `coordinator`; changes nothing."""

from __future__ import annotations

import asyncio
import time

import asyncpg
from headway.cli.addresses import without_secret
from headway.cli.findings import Finding, clock, note, ok, wrong
from headway.coordinator.migrate import migrations
from headway.coordinator.postgres_addresses import addresses, place

ANSWER_TIMEOUT_S = 5.0
ADDRESS_TIMEOUT_S = 2.0
POSTGRES_VERSION_MIN = 15
BEAT_LAPSE_S = 5  # coordinators say every second that they live

START_IT = "start the server, or correct the address"
TAKES_NO_WRITES = (
    "promote it (`SELECT pg_promote()`) if the primary is gone for good; else start the primary, "
    "and name both in --postgres-url: postgresql://…@host1,host2/…"
)
NO_STANDBY = "start a standby, or reset synchronous_standby_names: no commit returns till then"
READ_ONLY = "set it right there: ALTER SYSTEM RESET default_transaction_read_only, and reload"
JUST_ENDED = f"they ended just now, or are cut off from NATS: look again in {BEAT_LAPSE_S} s"

_ERRORS = (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError)


async def examine_postgres(
    url: str, streams_made: dict[str, str], *, silent: bool = False
) -> list[Finding]:
    """Whether each address answers, and of the one that takes writes its version, schema, clock
    and coordinators, and whether it knows the streams that were made at these times. `silent`: no
    coordinator answered through NATS."""
    findings: list[Finding] = []
    writable: list[Finding] = []
    for one in addresses(url):
        state, found = await _address(one, streams_made, silent)
        if state == "writable" and not writable:
            writable = found
        findings += [] if state == "writable" else found
    several = len(addresses(url)) > 1
    if writable and several:
        return [*writable, *(_downgraded(one) for one in findings)]
    return [*writable, *findings]


def _downgraded(finding: Finding) -> Finding:
    """An address that is of no use, while another one is."""
    if finding.found.endswith("is a standby"):
        return ok(finding.check, finding.found)
    return note(finding.check, finding.found, "start it, so that there is one to fail over to")


async def _address(
    url: str, streams_made: dict[str, str], silent: bool
) -> tuple[str, list[Finding]]:
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            plain = url.replace("target_session_attrs=read-write", "target_session_attrs=any")
            connection = await asyncpg.connect(plain, timeout=ADDRESS_TIMEOUT_S)
            try:
                return await _examine(connection, place(url), streams_made, silent)
            finally:
                connection.terminate()
    except _ERRORS as error:
        found = f"{without_secret(url).partition('?')[0]}: {str(error) or 'no answer'}"
        return "away", [wrong("PostgreSQL", found, START_IT)]


async def _examine(
    connection: asyncpg.Connection[asyncpg.Record],
    at: str,
    streams_made: dict[str, str],
    silent: bool,
) -> tuple[str, list[Finding]]:
    if await connection.fetchval("SELECT pg_is_in_recovery()"):
        return "standby", [wrong("PostgreSQL", f"{at} is a standby", TAKES_NO_WRITES)]
    if await connection.fetchval("SHOW default_transaction_read_only") == "on":
        return "read-only", [wrong("PostgreSQL", f"{at} is read-only", READ_ONLY)]
    schema = await _schema(connection)
    findings = [await _version(connection), schema, await _clock(connection)]
    findings += await _standbys(connection)
    if schema.state == "ok":
        findings += [await _coordinators(connection, silent)]
        findings += await _lost_streams(connection, streams_made)
    return "writable", findings


async def _version(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    found = f"PostgreSQL {await connection.fetchval('SHOW server_version')}"
    if connection.get_server_version().major >= POSTGRES_VERSION_MIN:
        return ok("PostgreSQL", found)
    remedy = f"upgrade it to {POSTGRES_VERSION_MIN} or later"
    return wrong("PostgreSQL", f"{found} is too old", remedy)


async def _schema(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    shipped = {migration.number: migration.checksum for migration in migrations()}
    try:
        rows = await connection.fetch(
            "SELECT number, checksum FROM public.headway_migrations ORDER BY number"
        )
    except asyncpg.UndefinedTableError:
        return wrong("schema", "no tables yet", "start a coordinator, which makes them")
    applied = {row["number"]: row["checksum"] for row in rows}
    if applied == shipped:
        return ok("schema", f"version {max(applied, default=0)}")
    if any(applied[number] != shipped[number] for number in applied.keys() & shipped.keys()):
        return wrong("schema", "a migration was edited after it was applied", "reinstall Headway")
    found = f"version {max(applied, default=0)}, but this Headway has {max(shipped)}"
    if applied.keys() > shipped.keys():
        return wrong("schema", found, "upgrade Headway here")
    return wrong("schema", found, "restart a coordinator of this version, which migrates it")


async def _clock(connection: asyncpg.Connection[asyncpg.Record]) -> Finding:
    asked_at = time.time()
    told = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())")
    return clock("PostgreSQL", asked_at, float(told), time.time())


async def _standbys(connection: asyncpg.Connection[asyncpg.Record]) -> list[Finding]:
    """Whether commits are waited for on another server, where one is wanted."""
    rows = await connection.fetch(
        "SELECT coalesce(nullif(application_name, ''), 'unnamed') AS name, state, sync_state"
        " FROM pg_stat_replication ORDER BY 1"
    )
    if not rows:
        if not await connection.fetchval("SHOW synchronous_standby_names"):
            return []
        return [
            wrong(
                "replication", "a standby must confirm each commit, and none is there", NO_STANDBY
            )
        ]
    found = ", ".join(f"{row['name']} {row['state']} ({row['sync_state']})" for row in rows)
    if any(row["sync_state"] in ("sync", "quorum") for row in rows):
        return [ok("replication", found)]
    remedy = "a failover may lose the last commits: set synchronous_standby_names if it must not"
    return [note("replication", found, remedy)]


async def _coordinators(connection: asyncpg.Connection[asyncpg.Record], silent: bool) -> Finding:
    count = await connection.fetchval(
        "SELECT count(*) FROM headway.coordinators"
        " WHERE seen_at > clock_timestamp() - make_interval(secs => $1)",
        BEAT_LAPSE_S,
    )
    if count and silent:
        found = f"{count} wrote here in the last {BEAT_LAPSE_S} s, though none answers"
        return note("coordinators", found, JUST_ENDED)
    if count:
        return ok("coordinators", f"{count} at work on this database")
    remedy = (
        "start one: `headway up`, or `headway coordinator` beside your servers; if one answers "
        "all the same, it uses another database"
    )
    return wrong("coordinators", "none is at work on this database", remedy)


async def _lost_streams(
    connection: asyncpg.Connection[asyncpg.Record], made: dict[str, str]
) -> list[Finding]:
    """Streams that are not those which PostgreSQL knows: their store was lost."""
    rows = await connection.fetch("SELECT name, created FROM headway.streams ORDER BY name")
    remedy = (
        "a coordinator publishes again what is outstanding, from PostgreSQL; if this stays, none "
        "is at work"
    )
    return [
        wrong(f"stream {row['name']}", "was lost and made anew", remedy)
        for row in rows
        if made.get(row["name"], row["created"]) != row["created"]
    ]
