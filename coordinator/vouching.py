"""Submissions that a coordinator publishes on a person's behalf: a header vouches for their owner.

A submission is published with its sender's token, which is kept nowhere. So what is published again
has this header instead. Always holds: it is good for one subject, one name and one body; none but
coordinators can write it.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable

from headway.agents.subjects import PREFIX
from headway.coordinator.errors import Refusal

VOUCHED_HEADER = f"{PREFIX}-vouched"
PURPOSE = b"headway vouching key"

NOT_VOUCHED = "the header that vouches for its owner is not one that a coordinator wrote for it"

Key = Callable[[bytes], bytes]
"""A key for a purpose, the same in every coordinator."""


class Vouching:
    def __init__(self, key: Key) -> None:
        self._key = key

    def header(self, owner: str, subject: str, name: str, body: bytes) -> str:
        """What vouches for `owner` ("" where nobody has tokens) as the one who submits this."""
        return f"{self._digest(owner, subject, name, body)} {owner}"

    def owner(self, header: str, subject: str, name: str, body: bytes) -> str:
        """Whom a header vouches for; Refusal (403) if no coordinator wrote it."""
        digest, _, owner = header.partition(" ")
        known = self._digest(owner, subject, name, body)
        if not hmac.compare_digest(digest.encode(), known.encode()):
            raise Refusal(NOT_VOUCHED, 403)
        return owner

    def _digest(self, owner: str, subject: str, name: str, body: bytes) -> str:
        signed = "\0".join((owner, subject, name, "")).encode() + body
        return hmac.digest(self._key(PURPOSE), signed, "sha256").hex()
