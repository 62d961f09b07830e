"""When a task's spans are to be sent: noted in the commit that makes them due, so that no crash
loses one. Pure.

A task that goes through in a moment owes them once, when it ends; one that takes longer, whenever
an attempt of it ends, so that people see it under way.
"""

from __future__ import annotations

from collections.abc import Sequence

from headway.coordinator.records import Loaded
from headway.sagas import events as e

AT_ONCE_MS = 5_000  # the age from which on a task's spans are sent before it ends

_SETTLE = (e.TaskSucceeded, e.TaskCompensated, e.TaskParked, e.TaskFailedToCompensate)
_END = (e.StepCompleted, e.StepCompensated, e.AttemptFailed, e.AttemptTimedOut)


def spans_after(before: Loaded | None, events: Sequence[e.Event], at: int) -> int | None:
    """The version after which spans are owed, if these events make any due at `at` (ms) and none
    were due before; None if they make none due. What a task owed when it ended it was asked for
    then: one that is taken up again owes only what follows."""
    if before is not None and before.task.ended:
        return before.task.version
    if any(isinstance(event, _SETTLE) for event in events):
        return 0
    if before is None or at - before.created_at.timestamp() * 1000 < AT_ONCE_MS:
        return None
    return 0 if any(isinstance(event, _END) for event in events) else None
