"""A PostgreSQL with a standby that streams from it, and takes over when it is promoted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
from harness.eventually import eventually
from harness.services import PASSWORD, RunningPostgres, postgres_in
from headway.coordinator.binaries import postgres_programs
from headway.coordinator.postgres_files import ENVIRONMENT
from headway.coordinator.serveruser import server_user


class Pair:
    """Two servers; each commit is on both before it is told, if `synchronous`."""

    def __init__(self, folder: Path) -> None:
        self.primary = postgres_in(folder / "primary")
        self.standby = postgres_in(folder / "standby")
        self._folder = folder

    @property
    def url(self) -> str:
        """Both addresses, the primary's first."""
        head, _, tail = self.primary.url.rpartition("@")
        place, _, database = tail.partition("/")
        other = self.standby.url.rpartition("@")[2].partition("/")[0]
        return f"{head}@{place},{other}/{database}?target_session_attrs=read-write"

    async def start(self, *, synchronous: bool = True) -> None:
        await self.primary.start()
        await self._copy()
        await self.standby.start()
        if synchronous:
            await self._execute(self.primary, "ALTER SYSTEM SET synchronous_standby_names = '*'")
            await self._execute(self.primary, "SELECT pg_reload_conf()")
        await eventually(self._streams, 20, what="the standby streams")

    async def stop(self) -> None:
        await self.standby.kill()
        await self.primary.kill()

    async def promote(self) -> None:
        """Let the standby take writes, and commit without waiting for another."""
        await self._execute(self.standby, "SELECT pg_promote()")
        await self._execute(self.standby, "ALTER SYSTEM RESET synchronous_standby_names")
        await self._execute(self.standby, "SELECT pg_reload_conf()")

    async def _streams(self) -> bool:
        rows = await self._execute(
            self.primary, "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'"
        )
        return bool(rows)

    async def _copy(self) -> None:
        """A base backup of the primary as the standby's data directory."""
        run_as = server_user()
        target = self._folder / "standby"
        target.mkdir(mode=0o700)
        if run_as:
            run_as.own(target)
        copying = await asyncio.create_subprocess_exec(
            postgres_programs(run_as) / "pg_basebackup",
            *("--dbname", self.primary.url, "--pgdata", "/proc/self/cwd", "--write-recovery-conf"),
            *("--checkpoint", "fast", "--no-sync"),
            cwd=target,
            env={**ENVIRONMENT, "PGPASSWORD": PASSWORD},
            stderr=asyncio.subprocess.PIPE,
            **({"user": run_as.uid, "group": run_as.gid, "extra_groups": []} if run_as else {}),
        )
        _, complaint = await copying.communicate()
        assert copying.returncode == 0, complaint.decode()

    async def _execute(self, server: RunningPostgres, statement: str) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(server.url)
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()
