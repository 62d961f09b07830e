"""Signatures of commands: only what a coordinator wrote, for this very subject, is carried out.

The first member of a signed command is `"sig"`: HMAC-SHA256, in base64url, over the subject and the
rest of the body as it stands. Each agent has a key of its own, so a command cannot be moved to
another agent, nor to another action, task or step. A payload that travels by reference is covered
by its digest, which is part of the body. Pure.
"""

from __future__ import annotations

import base64
import hmac
from functools import lru_cache

KEY_BYTES = 32
KEYS_KEPT = 4_096  # an agent has one, a coordinator one an agent

_HEAD = b'{"sig":"'
_TAIL = b'",'
_SIGNATURE_CHARS = 43  # 32 bytes in base64url, without padding
_REST = len(_HEAD) + _SIGNATURE_CHARS + len(_TAIL)


def signed(key: bytes, subject: str, body: bytes) -> bytes:
    """`body`, a JSON object with at least one member, with its signature put before the others."""
    rest = body[1:]
    return b"".join((_HEAD, _signature(key, subject, rest), _TAIL, rest))


def has_signature(body: bytes) -> bool:
    """Whether `body` has the form of a signed command; says nothing of who signed it."""
    return body.startswith(_HEAD) and body[_REST - len(_TAIL) : _REST] == _TAIL


def is_signed(key: bytes, subject: str, body: bytes) -> bool:
    """Whether the holder of `key` signed this body for this subject."""
    if not has_signature(body):
        return False
    given = body[len(_HEAD) : _REST - len(_TAIL)]
    return hmac.compare_digest(given, _signature(key, subject, body[_REST:]))


def _signature(key: bytes, subject: str, rest: bytes) -> bytes:
    """Subjects have no NUL in them, so the two parts cannot be taken for two others."""
    mac = _keyed(key).copy()
    mac.update(b"%b\0%b" % (subject.encode(), rest))
    return base64.urlsafe_b64encode(mac.digest())[:_SIGNATURE_CHARS]


@lru_cache(maxsize=KEYS_KEPT)
def _keyed(key: bytes) -> hmac.HMAC:
    """What a signature begins with, to be copied: a third of the whole, and the same each time."""
    return hmac.new(key, digestmod="sha256")
