"""Encryption of payloads: AES-256-GCM under a keyring, bound to the task that they are of.

A keyring is written `kid:key,kid:key`, each key 32 bytes in base64: the first encrypts, all
decrypt, so a new key is put in front, and an old one is taken away once nothing needs it. Encrypted
values stand in their place as `{"$sealed": "<kid>.<base64url>"}`, texts as `$sealed(<kid>.…)`.

The nonce is derived from key, task and value (HMAC-SHA256), so that the same value of the same task
is encrypted alike each time: what is sent again is seen to be the same. Two values of one task that
are equal can be seen to be; nothing else is told but their sizes. Pure.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from dataclasses import dataclass
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from headway.agents.errors import HeadwayError, InvalidInput

KEY_BYTES = 32
NONCE_BYTES = 12
TEXT_MAX_BYTES = 2_700  # of an encrypted text, which must fit where a text of a failure does

SEALED = "$sealed"

_KID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TOKEN = r"[A-Za-z0-9_-]{1,32}\.[A-Za-z0-9_-]+"  # noqa: S105 - a pattern
_VALUE = re.compile(rb'\s*\{\s*"\$sealed"\s*:')
_TEXT = re.compile(rf"\$sealed\(({_TOKEN})\)")


class Undecryptable(HeadwayError):
    """An encrypted value that cannot be read here; the text says why."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What encrypts, and what nonces are derived with."""

    cipher: AESGCM
    nonces: bytes

    @staticmethod
    def of(secret: bytes) -> _Key:
        return _Key(AESGCM(_derived(secret, b"encrypt")), _derived(secret, b"nonce"))


class Keyring:
    """The keys, by kid."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        """At least one key of KEY_BYTES; the first one encrypts."""
        self._keys = {kid: _Key.of(secret) for kid, secret in keys.items()}
        self._first = next(iter(keys))

    @staticmethod
    def parse(text: str) -> Keyring | None:
        """The keyring that `text` is; None for an empty one. InvalidInput repeats no key."""
        keys: dict[str, bytes] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            kid, colon, encoded = part.partition(":")
            if not colon or _KID.fullmatch(kid) is None or kid in keys:
                raise InvalidInput(
                    "a keyring is written kid:base64,kid:base64 with kids of A-Z a-z 0-9 _ and -, "
                    "each once"
                )
            keys[kid] = _secret(kid, encoded)
        return Keyring(keys) if keys else None

    def seal(self, plain: bytes, bound_to: str) -> str:
        """Encrypt, so that it can be read only as of `bound_to`."""
        key = self._keys[self._first]
        covered = bound_to.encode() + b"\0" + plain
        nonce = hmac.digest(key.nonces, covered, "sha256")[:NONCE_BYTES]
        sealed = key.cipher.encrypt(nonce, plain, bound_to.encode())
        return f"{self._first}.{base64.urlsafe_b64encode(nonce + sealed).rstrip(b'=').decode()}"

    def open(self, token: str, bound_to: str) -> bytes:
        """What was encrypted as of `bound_to`; raises Undecryptable."""
        kid, _, encoded = token.partition(".")
        key = self._keys.get(kid)
        if key is None:
            raise Undecryptable(f"a value is encrypted with key {kid!r}, which is not here")
        try:
            body = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
            return key.cipher.decrypt(body[:NONCE_BYTES], body[NONCE_BYTES:], bound_to.encode())
        except (binascii.Error, ValueError, InvalidTag):
            raise Undecryptable(
                "an encrypted value is not what was written for this task: it was changed, or is "
                "another task's"
            ) from None


class Sealing:
    """A keyring, for the payloads of one task."""

    def __init__(self, keyring: Keyring, task: str) -> None:
        self._keyring = keyring
        self._bound_to = f"headway task {task}"

    def body(self, plain: bytes) -> bytes:
        """The JSON of an encrypted value, of its JSON."""
        return orjson.dumps({SEALED: self._keyring.seal(plain, self._bound_to)})

    def value(self, plain: Any) -> dict[str, str]:
        """An encrypted value, of one of JSON's types or an orjson.Fragment."""
        return {SEALED: self._keyring.seal(orjson.dumps(plain), self._bound_to)}

    def text(self, plain: str) -> str:
        """An encrypted text, of at most TEXT_MAX_BYTES of it."""
        kept = plain.encode("utf-8", "replace")[:TEXT_MAX_BYTES].decode(errors="ignore").encode()
        return f"{SEALED}({self._keyring.seal(kept, self._bound_to)})" if kept else ""

    def opened(self, value: Any) -> Any:
        """The value with all that is encrypted in it decrypted; raises Undecryptable."""
        if isinstance(value, str):
            return _TEXT.sub(lambda found: self._open(found[1]).decode(), value)
        if isinstance(value, list):
            return [self.opened(each) for each in value]
        if isinstance(value, dict):
            if (token := _token_of(value)) is not None:
                return orjson.loads(self._open(token))
            return {key: self.opened(each) for key, each in value.items()}
        return value

    def _open(self, token: str) -> bytes:
        return self._keyring.open(token, self._bound_to)


def is_sealed(value: Any) -> bool:
    """Whether a value is an encrypted one."""
    return isinstance(value, dict) and _token_of(value) is not None


def is_sealed_body(body: bytes) -> bool:
    """Whether a value's JSON is that of an encrypted one."""
    return _VALUE.match(body) is not None


def has_sealed(value: Any) -> bool:
    """Whether anything in a value is encrypted."""
    if isinstance(value, str):
        return _TEXT.search(value) is not None
    if isinstance(value, list):
        return any(has_sealed(each) for each in value)
    return isinstance(value, dict) and (
        is_sealed(value) or any(has_sealed(each) for each in value.values())
    )


def shown(value: Any, keyring: Keyring, task: str = "") -> Any:
    """An answer with what can be decrypted in it decrypted, for people. What is of a task says so:
    the nearest `task` around it counts. What cannot be decrypted stays as it is."""
    if isinstance(value, list):
        return [shown(each, keyring, task) for each in value]
    if isinstance(value, dict) and not is_sealed(value):
        named = value.get("task")
        of = named if isinstance(named, str) else task
        return {key: shown(each, keyring, of) for key, each in value.items()}
    try:
        return Sealing(keyring, task).opened(value)
    except Undecryptable:
        return value


def _token_of(value: dict[str, Any]) -> str | None:
    token = value.get(SEALED) if len(value) == 1 else None
    return token if isinstance(token, str) else None


def _secret(kid: str, encoded: str) -> bytes:
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if len(secret) != KEY_BYTES:
        raise InvalidInput(f"key {kid!r} is not {KEY_BYTES} bytes in base64")
    return secret


def _derived(secret: bytes, purpose: bytes) -> bytes:
    info = b"headway payload\0" + purpose
    return HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)
