"""The key that gate tokens are signed with: one for all coordinators, kept in PostgreSQL.

The first coordinator that needs it makes it. Always holds: of two that make one at the same time
both use the one that was stored. Whoever can read the database can sign; nobody else can.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from headway.agents.gates import ALGORITHM, ISSUER, Gate, PublicKey, PublicKeys
from headway.coordinator.store import Store


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 key, and its public half as others get it."""

    private: Ed25519PrivateKey
    public: PublicKey

    @staticmethod
    def of(seed: bytes) -> SigningKey:
        """The key of these 32 bytes. Its `kid` is made of its public half."""
        private = Ed25519PrivateKey.from_private_bytes(seed)
        public = private.public_key().public_bytes_raw()
        x = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
        return SigningKey(private, PublicKey(kid=hashlib.sha256(public).hexdigest()[:16], x=x))

    def sign(self, gate: Gate) -> str:
        """The token that says what `gate` says (a JWT). The same gate gives the same token."""
        return jwt.encode(
            _claims(gate), self.private, algorithm=ALGORITHM, headers={"kid": self.public.kid}
        )

    @property
    def keys(self) -> PublicKeys:
        return PublicKeys(keys=[self.public])


class Signing:
    """The key, once it was read."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._key: SigningKey | None = None

    async def key(self) -> SigningKey:
        """The key that all coordinators of this database sign with."""
        if self._key is None:
            rows = await self._store.fetch("signing_key")
            if not rows:
                made = Ed25519PrivateKey.generate().private_bytes_raw()
                await self._store.fetch("keep_signing_key", made, self._clock())
                rows = await self._store.fetch("signing_key")
            self._key = SigningKey.of(rows[0]["seed"])
        return self._key


def _claims(gate: Gate) -> dict[str, Any]:
    return {
        "iss": ISSUER,
        "sub": str(gate.task),
        "step": gate.step,
        "phase": gate.phase,
        "agent": gate.agent,
        "attempt": gate.attempt,
        "epoch": gate.epoch,
        "ver": gate.version,
        "tool": gate.tool,
        "args": gate.arguments_digest,
        "inv": str(gate.invocation),
        "jti": str(gate.token_id),
        "iat": gate.issued_at,
        "exp": gate.expires_at,
    }
