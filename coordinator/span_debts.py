"""When a task's spans are to be sent: noted in the commit that makes them due, so that no crash
loses one. Pure.

A task that goes through quickly owes them once, when it is settled; one that takes longer, whenever
an attempt of it ends, so that people see it under way. Always holds: which of them a commit makes
due follows from the history alone, so each is due once, and nothing has to be kept of what was
sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headway.coordinator.records import Loaded
from headway.sagas import events as e

LONG_MS = 30_000  # the age from which on a task's spans are sent before it is settled

_SETTLE = {e.TaskSucceeded, e.TaskCompensated, e.TaskParked, e.TaskFailedToCompensate}
_END = {e.StepCompleted, e.StepCompensated, e.AttemptFailed, e.AttemptTimedOut}


def owes(before: Loaded | None, events: Sequence[e.Event], at: int) -> bool:
    """Whether spans are due once these events are committed, at `at` (ms since 1970)."""
    return asked(events, at if before is None else milliseconds(before.created_at)) > 0


def asked(history: Sequence[e.Event], created_at: int) -> int:
    """How many events of a history have had their spans asked for: all up to the last that makes
    some due. `created_at`, of the task, is ms since 1970."""
    for count in range(len(history), 0, -1):
        event = history[count - 1]
        kind = type(event)
        if kind in _SETTLE or (kind in _END and event.at - created_at >= LONG_MS):
            return count
    return 0


def milliseconds(at: datetime) -> int:
    """Since 1970."""
    return round(at.timestamp() * 1000)
