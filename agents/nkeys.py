"""NATS user keys: Ed25519, whose secret never leaves its owner. The server knows the public half.

Written as NATS writes them: base32 of a prefix, 32 bytes and a checksum; `SU…` is a user's seed,
`U…` its public key.
"""

from __future__ import annotations

import base64
import binascii
import secrets

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from headway.agents.errors import InvalidInput

_USER = 20 << 3  # "U"
_SEED_OF_USER = bytes([18 << 3 | _USER >> 5, (_USER & 31) << 3])  # "SU"
_KEY_BYTES = 32


class UserKey:
    """A user's key. Always holds: nothing that it shows of itself has the seed."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = _encode(bytes([_USER]) + private.public_key().public_bytes_raw())

    @staticmethod
    def of(seed: str) -> UserKey:
        """The key of a seed `SU…`; InvalidInput, without a word of it, if it is none."""
        raw = _decode(seed)
        if len(raw) != len(_SEED_OF_USER) + _KEY_BYTES or raw[:2] != _SEED_OF_USER:
            raise InvalidInput("this is not the seed of a NATS user key (SU…)")
        return UserKey(Ed25519PrivateKey.from_private_bytes(raw[2:]))

    def sign(self, nonce: str) -> bytes:
        """What proves to a server that sent `nonce` that we have the key, in base64."""
        return base64.b64encode(self._private.sign(nonce.encode()))

    def __repr__(self) -> str:
        return f"UserKey({self.public})"


def new_seed() -> str:
    """The seed of a fresh user key."""
    return _encode(_SEED_OF_USER + secrets.token_bytes(_KEY_BYTES))


def is_public_user_key(text: str) -> bool:
    """Whether `text` is a user's public key, `U…`."""
    raw = _decode(text)
    return len(raw) == 1 + _KEY_BYTES and raw[0] == _USER


def _encode(raw: bytes) -> str:
    checksum = binascii.crc_hqx(raw, 0).to_bytes(2, "little")
    return base64.b32encode(raw + checksum).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    """The bytes before the checksum; none if the checksum, or anything else, does not fit."""
    try:
        raw = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        return b""
    fits = binascii.crc_hqx(raw[:-2], 0).to_bytes(2, "little") == raw[-2:]
    return raw[:-2] if fits else b""
