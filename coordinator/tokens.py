"""API tokens: made and revoked in the database, checked by every coordinator.

A token reads `hw_<id>_<secret>`. Always holds: only a digest of it is stored, and it is compared in
constant time; what a coordinator knows of tokens is younger than KNOWN_FOR_S, or it is read anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal, StoreUnavailable

KNOWN_FOR_S = 0.5  # how long what was read counts: a revocation holds everywhere after that
AWAY_FOR_S = 0.2  # how long PostgreSQL is not asked again after it did not answer
UNKNOWN_FOR_S = 0.05  # how long a token that was not there is not looked for again
ID_BYTES = 6
SECRET_BYTES = 32
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,63}")

NEEDED = (
    "a token is needed: `headway tokens create NAME --role ROLE` makes one; give it as "
    "HEADWAY_TOKEN, or Client(token=…)"
)
NOT_GOOD = "this token is not good: it is mistyped, or was revoked"

Fetch = Callable[..., Awaitable[list[Any]]]
"""Runs a named statement."""


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token."""

    id: str
    name: str
    role: str
    digest: bytes
    made_at: datetime
    revoked_at: datetime | None = None


def new_token() -> tuple[str, str]:
    """The public part of a fresh token, and the whole of it."""
    token_id = secrets.token_hex(ID_BYTES)
    return token_id, f"hw_{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def digest_of(token: str) -> bytes:
    """A token has 256 random bits, so a plain digest cannot be guessed back."""
    return hashlib.sha256(token.encode()).digest()


def id_of(token: str) -> str:
    """The public part of a token; "" if it is none."""
    kind, _, rest = token.partition("_")
    return rest.partition("_")[0] if kind == "hw" else ""


class Tokens:
    """The tokens, as one coordinator knows them. `required`: even while there are none."""

    def __init__(self, fetch: Fetch, *, required: bool) -> None:
        self._fetch = fetch
        self._required = required
        self._good: dict[str, Token] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._away: StoreUnavailable | None = None
        self._away_at = 0.0

    def can_tell(self, presented: str) -> bool:
        """Whether `caller` may be asked; otherwise `learn` first."""
        if presented and id_of(presented) not in self._good:
            return self._age_s <= UNKNOWN_FOR_S
        return self._age_s <= KNOWN_FOR_S

    async def learn(self, presented: str) -> None:
        """Read the tokens, if need be; StoreUnavailable if PostgreSQL is away."""
        async with self._reading:
            if self.can_tell(presented):
                return
            asked_at = time.monotonic()
            if self._away is not None and asked_at - self._away_at <= AWAY_FOR_S:
                raise self._away  # of many that wait here, one finds out for all
            try:
                rows = await self._fetch("tokens")
            except StoreUnavailable as error:
                self._away, self._away_at = error, time.monotonic()
                raise
            good = [token_of(row) for row in rows if row["revoked_at"] is None]
            self._good = {token.id: token for token in good}
            self._read_at = asked_at

    def caller(self, presented: str) -> Caller:
        """Who presents this; Refusal (401) if a token is needed and this is none that is good."""
        if not presented:
            if self._required or self._good:
                raise Refusal(NEEDED, 401)
            return Caller()
        token = self._good.get(id_of(presented))
        if token is None or not hmac.compare_digest(token.digest, digest_of(presented)):
            raise Refusal(NOT_GOOD, 401)
        return Caller(name=token.name, role=token.role)

    @property
    def _age_s(self) -> float:
        return time.monotonic() - self._read_at


def token_of(row: Any) -> Token:
    return Token(*(row[name] for name in ("id", "name", "role", "digest", "made_at", "revoked_at")))
