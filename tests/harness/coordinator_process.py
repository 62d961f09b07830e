"""A coordinator as a process of its own, which can be told to die at one exact moment.

`--die-at publish`: right after the commit that makes step `b` due, before its command is sent.
`--die-at ack`: right after the PubAck of that command, before the event is acked.
`--die-at announcement`: right after the commit that ends a task, before anybody is told.
`--die-at spans`: right before the spans of a task that ended are sent to a collector.
`--die-at sent`: right after a collector has taken them.
`--die-at replay`: right before the message of a dead letter is published again.
`--die-at replayed`: right after that, before it is noted.
`--die-at child`: right after the commit that makes a child task due, before it is begun.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from typing import Any

from harness import clock
from headway.agents.pull import ACK
from headway.agents.wire import Wire
from headway.coordinator import span_sending, streams
from headway.coordinator.app import serve
from headway.coordinator.bus import Bus
from headway.coordinator.deadletters import DeadLetters
from headway.coordinator.family import Family
from headway.coordinator.settings import Settings
from headway.coordinator.span_sending import SpanSending
from headway.coordinator.store import Store

DEADLY_STEP = "b"
MOMENTS = ["publish", "ack", "announcement", "child", "replay", "replayed", "spans", "sent"]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_instead_of(owner: type, method: str, when: Any) -> None:
    """Replace `owner.method` by one that kills this process when `when(*arguments)` holds."""
    original = getattr(owner, method)

    def deadly(self: Any, *arguments: Any, **named: Any) -> Any:
        if when(*arguments):
            die()
        return original(self, *arguments, **named)

    setattr(owner, method, deadly)


def arm(moment: str) -> None:
    match moment:
        case "publish":
            die_instead_of(
                Bus,
                "dispatch",
                lambda commands: any(c.attributes["step"] == DEADLY_STEP for c in commands),
            )
        case "ack":
            die_instead_of(Wire, "publish", lambda _subject, payload, *_: payload == ACK)
        case "announcement":
            die_instead_of(Bus, "announce", lambda _decision, kind: kind == "succeeded")
        case "spans":
            die_instead_of(SpanSending, "_pay", lambda _rows, _owed: True)
        case "sent":
            die_instead_of(Store, "fetch", lambda name, *_: name == "spans_sent")
        case "replay":
            die_instead_of(DeadLetters, "_publish", lambda *_: True)
        case "replayed":
            die_instead_of(Store, "fetch", lambda name, *_: name == "letter_is_replayed")
        case "child":
            die_instead_of(Family, "begin", lambda _parent, _action: True)


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-at", choices=MOMENTS)
    parser.add_argument("--ack-wait", type=float, default=None)
    parser.add_argument("--span-lease", type=int, default=span_sending.LEASE_MS)
    options = parser.parse_args()
    clock.follow_if_told()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.ack_wait is not None:
        streams.ACK_WAIT_S = options.ack_wait
    span_sending.LEASE_MS = options.span_lease
    if options.die_at:
        arm(options.die_at)
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await serve(Settings(), stop)


asyncio.run(main())
