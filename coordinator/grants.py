"""Letting agents into NATS with keys of their own, and shutting them out, in the database.

Whoever has the database is trusted. Always holds: no secret half of a key is ever here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

import asyncpg
from headway.agents.nkeys import is_public_user_key
from headway.agents.subjects import TOKEN
from headway.coordinator.clock import now_ms
from headway.coordinator.database import Database, migrated
from headway.coordinator.errors import Refusal
from headway.coordinator.permissions import User, of_agent


@dataclass(frozen=True, slots=True)
class Grant:
    """A key that lets an agent in; or did, until it was revoked."""

    agent: str
    public_key: str
    granted_at: datetime
    granted_by: str
    revoked_at: datetime | None = None
    revoked_by: str = ""

    @property
    def user(self) -> User:
        """Who has this key, on a nats-server."""
        return User(public_key=self.public_key, permissions=of_agent(self.agent))


class Grants:
    """Over one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def grant(self, agent: str, public_key: str, by: str) -> Grant:
        """Let whoever has this key in as `agent`; `by` is the person who says so. Refusal (422) if
        they are not what they should be, (409) if the key was granted before."""
        if TOKEN.fullmatch(agent) is None:
            raise Refusal(
                f"{agent!r} cannot name an agent: use 1 to 64 of A-Z a-z 0-9 _ and -", 422
            )
        if not is_public_user_key(public_key):
            raise Refusal("this is not the public key of a NATS user (U…)", 422)
        rows = await self._database.fetch("grant_key", public_key, agent, by, now_ms())
        if not rows:
            raise Refusal(f"key {public_key} was granted before", 409)
        return Grant(agent, public_key, rows[0]["granted_at"], by)

    async def revoke(self, agent: str, by: str, public_key: str = "") -> list[str]:
        """Shut an agent's key out, or all of its keys; returns them. Refusal (404): no such key."""
        rows = await self._database.fetch("revoke_keys", agent, public_key, by, now_ms())
        if not rows:
            which = f"key {public_key}" if public_key else "key"
            raise Refusal(f"agent {agent!r} has no {which} that is good", 404)
        return [row["public_key"] for row in rows]

    async def all(self) -> list[Grant]:
        """All that were ever made, oldest first."""
        return [_grant(row) for row in await self._database.fetch("grants")]

    async def good(self) -> list[Grant]:
        """Those that were not revoked, oldest first."""
        return [each for each in await self.all() if each.revoked_at is None]


@asynccontextmanager
async def grants_in(postgres_url: str) -> AsyncIterator[Grants]:
    """Those of the database at `postgres_url`, which is brought up to date first."""
    async with migrated(postgres_url) as database:
        yield Grants(database)


def _grant(row: asyncpg.Record) -> Grant:
    return Grant(
        row["agent"],
        row["public_key"],
        row["granted_at"],
        row["granted_by"],
        row["revoked_at"],
        row["revoked_by"],
    )
