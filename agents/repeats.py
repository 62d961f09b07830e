"""Telling a command that comes for the first time from one that may have been run before.

The first is run at once. The other is claimed first: a coordinator knows whether it is still
wanted. That is so for what is delivered or published again, for what is old, and for copies that
somebody made: a command says when it was signed, and the stream when it was stored.
"""

from __future__ import annotations

import time
from collections import OrderedDict

from headway.agents.messages import Command
from headway.agents.pull import Delivery

OLD_COMMAND_S = 30.0  # an older one may have been given up and answered meanwhile
STORED_WITHIN_MS = 5_000  # of being signed; what was stored later may be a copy
REMEMBERED_MAX = 16_384  # ids of commands that were begun


class Repeats:
    """What one worker remembers of the commands that it began."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, None] = OrderedDict()  # oldest first

    def may_be(self, delivery: Delivery, command: Command) -> bool:
        """Whether the command may have been run before, here or elsewhere; now it is."""
        known = command.id in self._begun
        if not known:
            if len(self._begun) >= REMEMBERED_MAX:
                self._begun.popitem(last=False)
            self._begun[command.id] = None
        age_s = time.time() - delivery.stored_at_ms / 1000
        stored_after_ms = delivery.stored_at_ms - command.sentms
        first = delivery.delivered == 1 and command.epoch == 0 and not command.late
        in_time = age_s <= OLD_COMMAND_S and abs(stored_after_ms) <= STORED_WITHIN_MS
        return known or not (first and in_time)
