"""The encoded spans of tasks that went alike: made once, then filled in for each task.

Histories that differ only in ids and times give spans that differ only in those, and as ids and
times are of fixed length, each stands at the same places of the encoded spans. So the spans of a
sample are made and encoded, and cut up where its ids and times are; each further task's own are put
there. Always holds: what is filled in is what `spans` and `encoded` would have made. A form that
does not give it for the task that it was made after is not kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from uuid import UUID

from headway.agents import tracing
from headway.coordinator.otlp_spans import encoded, timestamp
from headway.coordinator.records import Trace
from headway.coordinator.spans import Traced, spans
from headway.coordinator.timeline_marks import CANCELLED
from headway.sagas import events as e

FORMS_MAX = 1_024
EVENTS_MAX = 64  # of a history; longer ones are seldom alike

Key = tuple[Any, ...]
_SAMPLE = UUID("8f1c5e07-93d2-4b6a-b7e4-d05a2c9f6e13")
_SAMPLE_DIGEST = bytes(range(131, 163))
_SAMPLE_ORIGIN = "00-b1946ac92492d2347c6235b4d2611184-e5a1c3f7928d4b06-01"
_SAMPLE_AT = 1_234_567_890_123  # ms

_attempt = attrgetter("step", "phase", "attempt")
_LIKENESS: dict[type[e.Event], Callable[[Any], Any]] = {
    e.TaskSubmitted: lambda _: None,
    e.AttemptDispatched: _attempt,
    e.AttemptStarted: _attempt,
    e.StepCompleted: attrgetter("step", "attempt"),
    e.StepCompensated: attrgetter("step", "attempt", "empty"),
    e.AttemptFailed: lambda event: (_attempt(event), event.error.type, event.retry_at > 0),
    e.AttemptTimedOut: lambda event: (_attempt(event), event.timeout, event.retry_at > 0),
    e.RecoveryStarted: lambda event: (
        *(event.step, event.by, event.reason == CANCELLED),
        *event.closing,
    ),
    e.TaskSucceeded: lambda _: None,
    e.TaskCompensated: lambda _: None,
}
"""What spans take from an event, beside its time. A history with any other event has no form."""


class _Form(NamedTuple):
    """`parts` picks what comes one after another from what a task has of its own and then from the
    `pieces` that all have in common. `attempts` name those whose spans are among its own."""

    pieces: tuple[bytes, ...]
    parts: itemgetter[Any]
    attempts: tuple[bytes, ...]

    def filled(self, task: Traced, history: Sequence[e.Event]) -> bytes:
        return b"".join(self.parts((*_own(task, self.attempts, history), *self.pieces)))


class Forms:
    """Always holds: at most FORMS_MAX of each; the oldest goes first."""

    def __init__(self) -> None:
        self._forms: dict[Key, _Form | None] = {}
        self._seen: dict[Key, None] = {}

    def encoded(self, task: Traced, history: Sequence[e.Event], sent: int) -> bytes:
        """The spans of a task without a journal that ended after the first `sent` events of its
        history; see `spans`. A form is made when a second task goes like another."""
        key = _key(task, history, sent)
        form = None if key is None else self._forms.get(key)
        if form is not None:
            return form.filled(task, history)
        made = encoded(spans(task, history, (), sent))
        if key is not None and key not in self._forms:
            if key in self._seen:
                _keep(self._forms, key, _form(task, history, sent, made))
            _keep(self._seen, key, None)
        return made


def _keep(kept: dict[Key, Any], key: Key, value: Any) -> None:
    kept[key] = value
    if len(kept) > FORMS_MAX:
        del kept[next(iter(kept))]


def _key(task: Traced, history: Sequence[e.Event], sent: int) -> Key | None:
    """What tasks that go alike have in common; None if this one goes like no other."""
    if len(history) > EVENTS_MAX:
        return None
    try:
        likeness = [(kind, _LIKENESS[kind](event)) for event in history if (kind := type(event))]
    except KeyError:
        return None
    saga = task.definition
    return saga.name, saga.version, task.is_child, bool(task.trace.origin), sent, *likeness


def _form(task: Traced, history: Sequence[e.Event], sent: int, made: bytes) -> _Form | None:
    """The form of those that go like `task`, whose spans are `made`; None if they have none."""
    origin = _SAMPLE_ORIGIN if task.trace.origin else ""
    sample = Traced(
        *(_SAMPLE, task.definition, Trace(True, origin), task.is_child, _SAMPLE_DIGEST, _SAMPLE_AT)
    )
    alike = [replace(event, at=_SAMPLE_AT + place) for place, event in enumerate(history)]
    dispatched = [event for event in history if isinstance(event, e.AttemptDispatched)]
    names = (tracing.attempt_name(each.step, each.phase, each.attempt) for each in dispatched)
    attempts = tuple(dict.fromkeys(names))
    own = _own(sample, attempts, alike)
    longest_first = sorted(map(re.escape, own), key=len, reverse=True)
    parts = re.split(
        b"(" + b"|".join(longest_first) + b")", encoded(spans(sample, alike, (), sent))
    )
    pieces = tuple(dict.fromkeys(part for part in parts if part not in own))
    if len(parts) == 1:
        return None
    places = {part: place for place, part in enumerate((*own, *pieces))}
    form = _Form(pieces, itemgetter(*(places[part] for part in parts)), attempts)
    return form if form.filled(task, history) == made else None


def _own(task: Traced, attempts: Sequence[bytes], history: Sequence[e.Event]) -> list[bytes]:
    """What no other task has in its spans, in one order."""
    trace_id = task.id.bytes
    submitter = tracing.remote(task.trace.origin) if task.trace.origin else None
    return [
        trace_id,
        tracing.root_of(trace_id),
        str(task.id).encode(),
        task.input_digest.hex().encode(),
        *[timestamp(event.at) for event in history],
        *[tracing.derived(trace_id, name) for name in attempts],
        *(() if submitter is None else (submitter.trace_id, submitter.span_id)),
    ]
