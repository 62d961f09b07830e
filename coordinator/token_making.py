"""Making, listing and revoking tokens, straight in the database: whoever has it is trusted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from headway.coordinator.clock import now_ms
from headway.coordinator.database import Database, migrated
from headway.coordinator.errors import Refusal
from headway.coordinator.roles import ROLES
from headway.coordinator.tokens import NAME, Token, digest_of, new_token, token_of


class TokenMaking:
    """Over one database. Coordinators see what it does within `tokens.KNOWN_FOR_S`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, role: str, *, by: str = "") -> str:
        """A fresh token, which is kept nowhere; `by` is the person who makes it. Refusal if the
        name is taken or not one."""
        if NAME.fullmatch(name) is None:
            raise Refusal(
                f"{name!r} cannot name a token: use 1 to 64 of A-Z a-z 0-9 @ . _ + and -, of which "
                "the first is a letter or a digit",
                422,
            )
        if role not in ROLES:
            raise Refusal(f"there is no role {role!r}; there are {', '.join(ROLES)}", 422)
        token_id, token = new_token()
        kept = token_id, name, role, digest_of(token), now_ms(), by
        if not await self._database.fetch("make_token", *kept):
            raise Refusal(f"token {name!r} exists; revoke it first, or take another name", 409)
        return token

    async def list(self) -> list[Token]:
        """All that were ever made, oldest first."""
        return [token_of(row) for row in await self._database.fetch("tokens")]

    async def revoke(self, name: str, *, by: str = "") -> int:
        """Revoke a token; how many good ones are left. Refusal if there is none of this name."""
        if not await self._database.fetch("revoke_token", name, now_ms(), by):
            raise Refusal(f"no token {name!r} is good", 404)
        return sum(1 for token in await self.list() if token.revoked_at is None)


@asynccontextmanager
async def token_making(postgres_url: str) -> AsyncIterator[TokenMaking]:
    """For the database at `postgres_url`, brought up to date first."""
    async with migrated(postgres_url) as database:
        yield TokenMaking(database)
