"""Bytes that are no message of ours, each for another reason."""

from __future__ import annotations

import json
import random

import orjson
from headway.agents.messages import COMPLETED

EVENT = {
    "specversion": "1.0",
    "id": "x",
    "type": COMPLETED,
    "source": "/x",
    "task": "",
    "step": "a",
    "phase": "action",
    "attempt": 1,
    "epoch": 0,
}


def junk(rng: random.Random) -> list[bytes]:
    """One of each kind."""
    return [
        b"",
        b"\x00",
        b"null",
        b"[]",
        b'"text"',
        b"{}",
        b'{"specversion": "1.0"',
        b'{"specversion": "9.9", "type": "t"}',
        b'{"n": NaN}',
        b'{"id": "\\ud800"}',
        b"\xff\xfe\xfd",
        b"[" * 100_000,
        b'{"a":' * 10_000,
        orjson.dumps({**EVENT, "task": "\x00", "attempt": -1}),
        orjson.dumps({**EVENT, "type": "headway.command.execute"}),
        orjson.dumps({**EVENT, "phase": 7, "data": []}),
        json.dumps({**EVENT, "attempt": 10**40}).encode(),
        json.dumps({**EVENT, "data": {"result": 10**40}}).encode(),
        rng.randbytes(50),
        rng.randbytes(5_000),
        b"x" * 300_000,
    ]
