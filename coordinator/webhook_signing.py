"""The signatures of deliveries, as Standard Webhooks has them. Pure.

Always holds: signatures are compared in constant time; a delivery is good for WINDOW_S before and
after its timestamp, and whoever has not its secret learns nothing about our clock.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Mapping, Sequence

from headway.agents.webhook_views import DELIVERY_ID_MAX_CHARS
from headway.coordinator.errors import Refusal

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
WINDOW_S = 300
VERSION = "v1"
SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with
SIGNATURES_MAX = 16  # of one delivery: its sender may be changing secrets

_ID = re.compile(rf"(?!.*\.)[!-~]{{1,{DELIVERY_ID_MAX_CHARS}}}")
_SECONDS = re.compile(r"[0-9]{1,12}")

NEEDED = f"{ID}, {TIMESTAMP}, {SIGNATURE}: a delivery needs these three headers"
WRONG_ID = f"{ID}: 1 to {DELIVERY_ID_MAX_CHARS} printable characters, none of them a dot"
WRONG_TIMESTAMP = f"{TIMESTAMP}: not in seconds since 1970"
WRONG_SIGNATURE = f"{SIGNATURE}: it does not fit this delivery and this webhook's secret"


def secret_text(key: bytes) -> str:
    """A key as its owner gets it."""
    return SECRET_PREFIX + base64.b64encode(key).decode()


def signature(key: bytes, delivery: str, timestamp: str, body: bytes) -> str:
    """Of a delivery, as it stands in its header."""
    digest = hmac.digest(key, f"{delivery}.{timestamp}.".encode() + body, "sha256")
    return f"{VERSION},{base64.b64encode(digest).decode()}"


def checked_id(keys: Sequence[bytes], headers: Mapping[str, str], body: bytes, now_s: float) -> str:
    """The id of a delivery that is signed with one of the keys and not too old; Refusal (401) says
    what is wrong."""
    delivery, timestamp, given = (headers.get(name, "") for name in (ID, TIMESTAMP, SIGNATURE))
    if not (delivery and timestamp and given):
        raise Refusal(NEEDED, 401)
    if _ID.fullmatch(delivery) is None:
        raise Refusal(WRONG_ID, 401)
    if _SECONDS.fullmatch(timestamp) is None:
        raise Refusal(WRONG_TIMESTAMP, 401)
    expected = [signature(key, delivery, timestamp, body).encode() for key in keys]
    given_ones = [one.encode() for one in given.split(" ")[:SIGNATURES_MAX]]
    if not any(hmac.compare_digest(one, good) for one in given_ones for good in expected):
        raise Refusal(WRONG_SIGNATURE, 401)
    away_s = abs(now_s - int(timestamp))
    if away_s > WINDOW_S:
        raise Refusal(
            f"{TIMESTAMP}: {away_s:.0f} s away from this coordinator's clock; at most {WINDOW_S} s "
            "are taken",
            401,
        )
    return delivery
