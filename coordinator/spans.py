"""The spans of a task, from its history and its journals. Pure.

Always holds: a span is given once it has ended, with an id that follows from what it is of; whoever
asks again from the same version on gets the same spans, and nobody gets one that was given up to
there. So every span has one parent, and all lead to the task's. Times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from headway.agents import telemetry as t
from headway.agents import tracing
from headway.agents.identity import invocation_id, operation_id
from headway.agents.timeline_views import MarkView
from headway.coordinator.records import Trace
from headway.coordinator.timeline_drawing import Bar, Drawing, drawn
from headway.coordinator.timeline_marks import SETTLING, marks_of
from headway.sagas import events as e
from headway.sagas.circumstances import Appended
from headway.sagas.definition import Definition
from headway.sagas.plan import planned

INTERNAL, CLIENT, CONSUMER = 1, 3, 5  # span kinds, as OTLP numbers them

_FAULTS = ("failed", "timed_out", "rejected")
_ENDINGS = ("result", "failure", "void")
_ENDED = ("succeeded", "compensated")
_ENDS = {e.TaskSucceeded, e.TaskCompensated}

Attributes = Mapping[str, Any]
Operation = tuple[str, str]  # step and phase
NOTHING: Attributes = MappingProxyType({})


class Link(NamedTuple):
    """Leads to a span of this or another trace; `what` says why."""

    trace_id: bytes
    span_id: bytes
    what: str


class Moment(NamedTuple):
    """Something within a span."""

    at: int
    name: str
    attributes: Attributes


class Span(NamedTuple):
    """What went on from `began` to `ended`. `error` is a type, "" without one. `attributes` come
    again on many spans, `own` on this one only."""

    trace_id: bytes
    span_id: bytes
    parent: bytes
    name: str
    kind: int
    began: int
    ended: int
    attributes: Attributes
    own: Attributes = NOTHING
    events: Sequence[Moment] = ()
    links: Sequence[Link] = ()
    error: str = ""


class Batch(NamedTuple):
    """A batch of a coordinator: how many `items` went in, how many traced tasks they `changed`, the
    ids of these `tasks`, or of the first of them. `id` is of its trace."""

    id: bytes
    began: int
    ended: int
    items: int
    changed: int
    tasks: Sequence[bytes]


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


class Traced(NamedTuple):
    """A task, as far as spans need it. `definition` is its saga's, without what was appended."""

    id: UUID
    definition: Definition
    trace: Trace
    is_child: bool
    input_digest: bytes
    created_at: int


def spans(
    task: Traced, history: Sequence[e.Event], journal: Sequence[Entry] = (), sent: int = 0
) -> list[Span]:
    """What ended after the first `sent` events of `history` and until its last, the task last.
    Signs of life may be left out of the history; nothing else may."""
    appended = [
        Appended(event.by, step)
        for event in history
        if isinstance(event, e.StepsAppended)
        for step in event.steps
    ]
    plan = planned(task.definition, appended)
    given = _ids(task.id, plan, history[:sent]) if sent else frozenset()
    drawing = drawn(task.id, plan, history)
    found = list(_of_steps(task.id, plan, drawing))
    if journal:
        found += _calls(task.id, drawing, journal, given)
    end = _end(history)
    if end is not None:
        found.append(_root(task, plan, history, end))
    return [span for span in found if span.span_id not in given] if given else found


def _end(history: Sequence[e.Event]) -> e.Event | None:
    """That of the task; the last, of one that was taken up again."""
    return next((event for event in reversed(history) if type(event) in _ENDS), None)


def _ids(task: UUID, plan: Definition, history: Sequence[e.Event]) -> frozenset[bytes]:
    drawing = drawn(task, plan, history)
    ended = set() if _end(history) is None else {tracing.root_span(task)}
    bars = ((step, bar) for step, bars in drawing.bars.items() for bar in bars)
    steps = {_id(task, step, bar) for step, bar in bars if _has_span(bar)}
    holds = {_id(task, "", bar) for bar in drawing.holds if _has_span(bar)}
    return frozenset(ended | steps | holds)


def _has_span(bar: Bar) -> bool:
    """A pause between attempts has none: it is what is left between theirs."""
    return bar.ended_at is not None and bar.kind != "retry_wait"


def _id(task: UUID, step: str, bar: Bar) -> bytes:
    if bar.kind == "hold":
        return tracing.other_span(task, f"hold/{step}/{bar.began_at}")
    return tracing.attempt_span(task, step, bar.phase, bar.attempt)


def _root(task: Traced, plan: Definition, history: Sequence[e.Event], end: e.Event) -> Span:
    submitter = tracing.remote(task.trace.origin)
    what = "parent" if task.is_child else "submitter"
    links = () if submitter is None else (Link(submitter.trace_id, submitter.span_id, what),)
    status = SETTLING[type(end)]
    marks = (mark for event in history if type(event) not in _UNMARKED for mark in marks_of(event))
    return Span(
        task.id.bytes,
        tracing.root_span(task.id),
        b"",
        f"{t.TASK_SPAN} {plan.name}",
        INTERNAL,
        history[0].at,
        end.at,
        {
            t.GEN_AI_OPERATION: t.TASK_SPAN,
            t.GEN_AI_WORKFLOW: plan.name,
            t.SAGA_VERSION: plan.version,
            t.STATUS: status,
        },
        {t.TASK: str(task.id), t.INPUT_DIGEST: task.input_digest.hex()},
        [_mark(mark) for mark in marks],
        links,
        "" if status == "succeeded" else "compensated",
    )


_UNMARKED = {
    *(e.TaskSubmitted, e.TaskSucceeded, e.TaskCompensated),
    *(e.AttemptDispatched, e.StepCompleted),
}
"""Events whose marks the span itself tells, or that have none; most are."""


def _mark(mark: MarkView) -> Moment:
    told = {t.STEP: mark.step, t.BY: mark.by}
    at = round(mark.at.timestamp() * 1000)
    return Moment(at, mark.kind, {name: value for name, value in told.items() if value})


def _of_steps(task: UUID, plan: Definition, drawing: Drawing) -> Iterator[Span]:
    """The spans of bars that have ended."""
    for step, bars in drawing.bars.items():
        acted = b""
        for bar in bars:
            if bar.kind == "attempt" and bar.phase == "action":
                acted = _id(task, step, bar)
            if not _has_span(bar):
                continue
            if bar.kind == "hold":
                yield _hold(task, plan.name, step, bar)
            else:
                yield _attempt(task, plan, step, bar, acted)
    for bar in drawing.holds:
        if _has_span(bar):
            yield _hold(task, plan.name, "", bar)


def _attempt(task: UUID, plan: Definition, name: str, bar: Bar, acted: bytes) -> Span:
    step = plan.steps[name]
    attributes: dict[str, Any] = {
        t.SAGA: plan.name,
        t.STEP: name,
        t.PHASE: bar.phase,
        t.ATTEMPT: bar.attempt,
        t.OUTCOME: bar.outcome,
    }
    own: dict[str, Any] = {}
    links: list[Link] = []
    said, kind = f"{t.WAIT_SPAN} {name}", INTERNAL
    if bar.agent:
        action = step.action if bar.phase == "action" else step.compensate
        said, kind = f"{t.ATTEMPT_SPAN} {action}", CONSUMER
        attributes |= _of_agent(bar.agent, f"hw.commands.{action}.{{task}}.{name}")
        if bar.worker:
            own[t.WORKER] = bar.worker
        if bar.take_overs:
            own[t.TAKE_OVERS] = len(bar.take_overs)
    elif bar.child is not None:
        said = f"{t.CHILD_SPAN} {name}"
        own[t.CHILD] = str(bar.child)
        links.append(Link(bar.child.bytes, tracing.root_span(bar.child), "child"))
    else:
        attributes[t.STEP_KIND] = step.kind
    if bar.phase == "compensation" and acted:
        links.append(Link(task.bytes, acted, "undoes"))
    if bar.error:
        attributes[t.ERROR_TYPE] = bar.error
    assert bar.ended_at is not None
    return Span(
        task.bytes,
        _id(task, name, bar),
        tracing.root_span(task),
        said,
        kind,
        bar.began_at,
        bar.ended_at,
        attributes,
        own,
        [
            Moment(over.at, over.kind, {t.WORKER: over.worker, t.EPOCH: over.epoch})
            for over in bar.take_overs
        ],
        links,
        (bar.error or bar.outcome) if bar.outcome in _FAULTS else "",
    )


def _of_agent(agent: str, template: str) -> dict[str, Any]:
    """What the conventions want of an agent's work on a message."""
    return {
        t.GEN_AI_OPERATION: t.ATTEMPT_SPAN,
        t.GEN_AI_AGENT: agent,
        t.MESSAGING_SYSTEM: "nats",
        t.MESSAGING_OPERATION_TYPE: "process",
        t.MESSAGING_OPERATION_NAME: "process",
        t.MESSAGING_DESTINATION_TEMPLATE: template,
    }


def _hold(task: UUID, saga: str, step: str, bar: Bar) -> Span:
    assert bar.ended_at is not None
    return Span(
        task.bytes,
        _id(task, step, bar),
        tracing.root_span(task),
        f"{t.HOLD_SPAN} {step}" if step else t.HOLD_SPAN,
        INTERNAL,
        bar.began_at,
        bar.ended_at,
        {t.SAGA: saga, t.STEP: step} if step else {t.SAGA: saga},
    )


def _calls(
    task: UUID, drawing: Drawing, journal: Iterable[Entry], given: frozenset[bytes]
) -> Iterator[Span]:
    """The spans of tool calls. One belongs to the attempt in which its last run began, and is given
    with the first attempt of its step that ends after it, at the latest with the task."""
    attempts: dict[Operation, list[Bar]] = {}
    for step, bars in drawing.bars.items():
        for bar in bars:
            if bar.kind == "attempt":
                attempts.setdefault((step, bar.phase), []).append(bar)
    over = drawing.settled_at if drawing.settled_as in _ENDED else None
    begun: dict[tuple[Operation, str], Entry] = {}
    for entry in journal:
        operation = entry.step, entry.phase
        if entry.kind == "intent":
            begun.setdefault((operation, entry.key), entry)
        intent = begun.pop((operation, entry.key), None) if entry.kind in _ENDINGS else None
        if intent is not None:
            bars = attempts.get(operation, [])
            carrier = next((each for each in bars if (each.ended_at or 0) >= entry.at), None)
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


def _call(task: UUID, intent: Entry, ending: Entry | None, ended: int, bars: Sequence[Bar]) -> Span:
    """One call of a tool, of which nobody knows how it ended if there is no `ending`."""
    invocation = invocation_id(operation_id(task, intent.step, intent.phase), intent.key)
    within = [bar for bar in bars if bar.began_at <= intent.at] or list(bars[:1])
    parent = tracing.root_span(task)
    if within:
        parent = tracing.attempt_span(task, intent.step, intent.phase, within[-1].attempt)
    model = bool(intent.meta.get("model"))
    operation = t.MODEL_SPAN if model else t.TOOL_SPAN
    outcome = "unknown" if ending is None else ending.kind
    attributes: dict[str, Any] = {
        t.GEN_AI_OPERATION: operation,
        **_asked(ending),
        t.GEN_AI_TOOL: intent.tool,
        t.STEP: intent.step,
        t.PHASE: intent.phase,
        t.OUTCOME: outcome,
        **({} if model else {t.GEN_AI_TOOL_TYPE: "function"}),
    }
    own: dict[str, Any] = {
        t.GEN_AI_CALL: str(invocation),
        t.KEY: intent.key,
        t.DIGEST: intent.meta.get("arguments_digest", ""),
        **_used(ending),
    }
    if intent.data is not None:
        own[t.GEN_AI_ARGUMENTS] = intent.data
    if ending is not None and ending.data is not None:
        own[t.GEN_AI_RESULT] = ending.data
    return Span(
        task.bytes,
        tracing.invocation_span(invocation),
        parent,
        f"{operation} {attributes.get(t.GEN_AI_REQUEST_MODEL, intent.tool)}",
        CLIENT if model else INTERNAL,
        intent.at,
        max(ended, intent.at),
        attributes,
        own,
        error=outcome if outcome in ("failure", "unknown") else "",
    )


def _asked(ending: Entry | None) -> Attributes:
    """Whose model a call asked, and which, as far as its tool told."""
    usage = {} if ending is None else ending.meta.get("usage", {})
    told = {t.GEN_AI_PROVIDER: usage.get("provider"), t.GEN_AI_REQUEST_MODEL: usage.get("model")}
    return {name: value for name, value in told.items() if value}


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
