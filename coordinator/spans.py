"""The spans of a task, from its history and its journals. Pure.

Always holds: a span is given once it has ended, with an id that follows from what it is of; whoever
asks again from the same version on gets the same spans, and nobody gets one that was given up to
there. So every span has one parent, and all lead to the task's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from headway.agents import telemetry as t
from headway.agents import tracing
from headway.agents.identity import invocation_id, operation_id
from headway.agents.timeline_views import BarView, MarkView, TimelineView
from headway.coordinator.records import Loaded
from headway.coordinator.timeline import timeline
from headway.sagas.events import Event
from headway.sagas.task import ENDED

INTERNAL, CLIENT, CONSUMER = 1, 3, 5  # span kinds, as OTLP numbers them

_FAULTS = ("failed", "timed_out", "rejected")
_ENDINGS = ("result", "failure", "void")

Attributes = Mapping[str, Any]
Operation = tuple[str, str]  # step and phase


class Link(NamedTuple):
    """Leads to a span of this or another trace; `what` says why."""

    trace_id: bytes
    span_id: bytes
    what: str


class Moment(NamedTuple):
    """Something within a span; `at` is ms since 1970."""

    at: int
    name: str
    attributes: Attributes


class Span(NamedTuple):
    """What went on from `began` to `ended` (ms since 1970). `error` is a type, "" without one."""

    trace_id: bytes
    span_id: bytes
    parent: bytes
    name: str
    kind: int
    began: int
    ended: int
    attributes: Attributes
    events: Sequence[Moment] = ()
    links: Sequence[Link] = ()
    error: str = ""


class Entry(NamedTuple):
    """An entry of a journal, as far as spans need it. `meta` is what is told of its value; `data`,
    the value itself, only where whoever runs this wants payloads in its telemetry."""

    step: str
    phase: str
    kind: str
    key: str
    tool: str
    at: int
    meta: Mapping[str, Any]
    data: str | None = None


def spans(
    loaded: Loaded, history: Sequence[Event], journal: Iterable[Entry] = (), sent: int = 0
) -> list[Span]:
    """What ended after version `sent` and until the last event of `history`, the task last."""
    given = _ids(loaded, history[:sent]) if sent else frozenset()
    view = timeline(loaded.id, loaded.definition, history, history[-1].at)
    found = [*_of_steps(loaded.id, view), *_calls(loaded.id, view, journal, given)]
    if view.status in ENDED:
        found.append(_root(loaded, view))
    return [span for span in found if span.span_id not in given]


def _ids(loaded: Loaded, history: Sequence[Event]) -> frozenset[bytes]:
    view = timeline(loaded.id, loaded.definition, history, history[-1].at)
    ended = {tracing.root_span(loaded.id)} if view.status in ENDED else set()
    return frozenset(ended.union(span.span_id for span in _of_steps(loaded.id, view)))


def _root(loaded: Loaded, view: TimelineView) -> Span:
    submitter = tracing.remote(loaded.trace.origin)
    what = "submitter" if loaded.parent is None else "parent"
    links = () if submitter is None else (Link(submitter.trace_id, submitter.span_id, what),)
    assert view.settled_at is not None
    return Span(
        loaded.id.bytes,
        tracing.root_span(loaded.id),
        b"",
        f"{t.TASK_SPAN} {view.saga}",
        INTERNAL,
        _ms(view.began_at),
        _ms(view.settled_at),
        {
            t.GEN_AI_OPERATION: t.TASK_SPAN,
            t.GEN_AI_WORKFLOW: view.saga,
            t.TASK: str(loaded.id),
            t.SAGA_VERSION: view.saga_version,
            t.STATUS: view.status,
            t.INPUT_DIGEST: loaded.input_digest.hex(),
        },
        [_mark(mark) for mark in view.marks if mark.kind not in ("submitted", view.status)],
        links,
        "" if view.status == "succeeded" else "compensated",
    )


def _mark(mark: MarkView) -> Moment:
    told = {t.STEP: mark.step, t.BY: mark.by}
    return Moment(_ms(mark.at), mark.kind, {name: value for name, value in told.items() if value})


def _of_steps(task: UUID, view: TimelineView) -> Iterator[Span]:
    """The spans of bars that have ended. A pause between attempts is none: it is what is left."""
    for step in view.steps:
        acted = b""
        for bar in step.bars:
            if bar.kind == "attempt" and bar.phase == "action":
                acted = tracing.attempt_span(task, step.name, bar.phase, bar.attempt)
            if bar.ended_at is None or bar.kind == "retry_wait":
                continue
            if bar.kind == "hold":
                yield _hold(task, view.saga, step.name, bar)
                continue
            action = step.action if bar.phase == "action" else step.compensation or ""
            yield _attempt(task, view.saga, step.name, step.kind, action, bar, acted)
    for hold in view.holds:
        if hold.ended_at is not None:
            yield _hold(task, view.saga, "", hold)


def _attempt(
    task: UUID, saga: str, step: str, kind: str, action: str, bar: BarView, acted: bytes
) -> Span:
    attributes: dict[str, Any] = {
        t.SAGA: saga,
        t.STEP: step,
        t.PHASE: bar.phase,
        t.ATTEMPT: bar.attempt,
        t.OUTCOME: bar.outcome,
    }
    links: list[Link] = []
    name, span_kind = f"{t.WAIT_SPAN} {step}", INTERNAL
    if bar.agent:
        name, span_kind = f"{t.ATTEMPT_SPAN} {action}", CONSUMER
        attributes |= _of_agent(bar, f"hw.commands.{action}.{task}.{step}")
    elif bar.child is not None:
        name = f"{t.CHILD_SPAN} {step}"
        attributes[t.CHILD] = str(bar.child)
        links.append(Link(bar.child.bytes, tracing.root_span(bar.child), "child"))
    else:
        attributes[t.STEP_KIND] = kind
    if bar.phase == "compensation" and acted:
        links.append(Link(task.bytes, acted, "undoes"))
    if bar.error:
        attributes[t.ERROR_TYPE] = bar.error
    assert bar.ended_at is not None
    return Span(
        task.bytes,
        tracing.attempt_span(task, step, bar.phase, bar.attempt),
        tracing.root_span(task),
        name,
        span_kind,
        _ms(bar.began_at),
        _ms(bar.ended_at),
        attributes,
        [
            Moment(_ms(over.at), over.kind, {t.WORKER: over.worker, t.EPOCH: over.epoch})
            for over in bar.take_overs
        ],
        links,
        (bar.error or bar.outcome) if bar.outcome in _FAULTS else "",
    )


def _of_agent(bar: BarView, subject: str) -> Attributes:
    found = {
        t.GEN_AI_OPERATION: t.ATTEMPT_SPAN,
        t.GEN_AI_AGENT: bar.agent,
        t.MESSAGING_SYSTEM: "nats",
        t.MESSAGING_OPERATION_TYPE: "process",
        t.MESSAGING_OPERATION_NAME: "process",
        t.MESSAGING_DESTINATION: subject,
    }
    if bar.worker:
        found[t.WORKER] = bar.worker
    if bar.take_overs:
        return {**found, t.TAKE_OVERS: len(bar.take_overs)}
    return found


def _hold(task: UUID, saga: str, step: str, bar: BarView) -> Span:
    assert bar.ended_at is not None
    return Span(
        task.bytes,
        tracing.other_span(task, f"hold/{step}/{_ms(bar.began_at)}"),
        tracing.root_span(task),
        f"{t.HOLD_SPAN} {step}" if step else t.HOLD_SPAN,
        INTERNAL,
        _ms(bar.began_at),
        _ms(bar.ended_at),
        {t.SAGA: saga, t.STEP: step} if step else {t.SAGA: saga},
    )


def _calls(
    task: UUID, view: TimelineView, journal: Iterable[Entry], given: frozenset[bytes]
) -> Iterator[Span]:
    """The spans of tool calls. One belongs to the attempt in which its last run began, and is given
    with the first attempt of its step that ends after it, at the latest with the task."""
    attempts: dict[Operation, list[BarView]] = {}
    for step in view.steps:
        for bar in step.bars:
            if bar.kind == "attempt":
                attempts.setdefault((step.name, bar.phase), []).append(bar)
    over = None if view.settled_at is None or view.status not in ENDED else _ms(view.settled_at)
    begun: dict[tuple[Operation, str], Entry] = {}
    for entry in journal:
        operation = entry.step, entry.phase
        if entry.kind == "intent":
            begun.setdefault((operation, entry.key), entry)
        intent = begun.pop((operation, entry.key), None) if entry.kind in _ENDINGS else None
        if intent is not None:
            bars = attempts.get(operation, [])
            carrier = next(
                (each for each in bars if each.ended_at and _ms(each.ended_at) >= entry.at), None
            )
            if carrier is not None:
                span_id = tracing.attempt_span(task, entry.step, entry.phase, carrier.attempt)
                due = span_id not in given
            else:
                due = over is not None
            if due:
                yield _call(task, intent, entry, entry.at, bars)
    if over is not None:
        for (operation, _), intent in begun.items():
            yield _call(task, intent, None, max(over, intent.at), attempts.get(operation, []))


def _call(
    task: UUID, intent: Entry, ending: Entry | None, ended: int, bars: Sequence[BarView]
) -> Span:
    """One call of a tool, of which nobody knows how it ended if there is no `ending`."""
    invocation = invocation_id(operation_id(task, intent.step, intent.phase), intent.key)
    within = [bar for bar in bars if _ms(bar.began_at) <= intent.at] or list(bars[:1])
    parent = tracing.root_span(task)
    if within:
        parent = tracing.attempt_span(task, intent.step, intent.phase, within[-1].attempt)
    model = bool(intent.meta.get("model"))
    operation = t.MODEL_SPAN if model else t.TOOL_SPAN
    outcome = "unknown" if ending is None else ending.kind
    attributes: dict[str, Any] = {
        t.GEN_AI_OPERATION: operation,
        t.GEN_AI_TOOL: intent.tool,
        t.GEN_AI_CALL: str(invocation),
        t.KEY: intent.key,
        t.STEP: intent.step,
        t.PHASE: intent.phase,
        t.OUTCOME: outcome,
        t.DIGEST: intent.meta.get("arguments_digest", ""),
        **({} if model else {t.GEN_AI_TOOL_TYPE: "function"}),
        **_used(ending),
    }
    if intent.data is not None:
        attributes[t.GEN_AI_ARGUMENTS] = intent.data
    if ending is not None and ending.data is not None:
        attributes[t.GEN_AI_RESULT] = ending.data
    return Span(
        task.bytes,
        tracing.invocation_span(invocation),
        parent,
        f"{operation} {intent.tool}",
        CLIENT if model else INTERNAL,
        intent.at,
        max(ended, intent.at),
        attributes,
        error=outcome if outcome in ("failure", "unknown") else "",
    )


def _used(ending: Entry | None) -> Attributes:
    """What a model call used, and the digest of what a call gave."""
    if ending is None:
        return {}
    found: dict[str, Any] = {}
    if usage := ending.meta.get("usage"):
        found[t.GEN_AI_INPUT_TOKENS] = usage.get("input_tokens", 0)
        found[t.GEN_AI_OUTPUT_TOKENS] = usage.get("output_tokens", 0)
        if cost := usage.get("cost_usd"):
            found[t.COST] = cost
    if digest := ending.meta.get("datadigest"):
        found[t.RESULT_DIGEST] = digest
    return found


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)
