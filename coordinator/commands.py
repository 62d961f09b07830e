"""From the machine's actions to wire commands. Pure: bytes out of values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from headway.agents import messages, subjects
from headway.agents.codec import is_sealed_body
from headway.agents.errors import InvalidInput
from headway.agents.tracing import attempt_span, traceparent
from headway.agents.views import PRIORITY
from headway.coordinator.errors import Refusal
from headway.coordinator.records import NO_ATTRIBUTES, Loaded
from headway.sagas.actions import Dispatch
from headway.sagas.step import Step
from headway.sagas.task import Phase, Task
from headway.sagas.values import value


@value
class Outgoing:
    """A command to publish. `data` is its payload as JSON, not yet part of `attributes`."""

    task: UUID
    agent: str
    subject: str
    fresh: bool  # the first publication of a first attempt: nothing older can be in its place
    attributes: dict[str, Any]
    data: bytes
    priority: int = PRIORITY
    tags: Mapping[str, str] = field(
        default_factory=lambda: NO_ATTRIBUTES
    )  # the task's, which limits may tell apart
    since: float = 0.0  # monotonic: when its dispatch may have been stored; 0: not known

    def body(self, now_ms: int) -> bytes:
        """The message with its payload inline, to be signed and sent now."""
        data = orjson.Fragment(self.data)
        return orjson.dumps({**self.attributes, "sentms": now_ms, "data": data})

    def body_by_reference(self, now_ms: int, ref: str, digest: str) -> bytes:
        reference = {"sentms": now_ms, "dataref": ref, "datadigest": digest}
        return orjson.dumps({**self.attributes, **reference})

    def outdates(self, body: bytes) -> bool:
        """Whether a message on its subject is this publication, an earlier one, or none."""
        found = _publication(body)
        return found is None or found <= (self.attributes["attempt"], self.attributes["epoch"])


class Sought(NamedTuple):
    """A command that ought, or ought not, to be in the stream. Of its publications those of `epoch`
    and later are as good as one another; earlier ones are granted to nobody any more."""

    subject: str
    phase: Phase
    attempt: int
    epoch: int = 0

    def is_in(self, body: bytes) -> bool:
        """Whether a message on its subject is this one: an older attempt's may have come back there
        when nats-server lost that it had been answered, or an older publication may have stayed
        because the later one did not arrive."""
        try:
            found = messages.decode_command(body)
        except InvalidInput:
            return False  # the worker that gets it refuses it
        same = (found.phase, found.attempt) == (self.phase, self.attempt)
        return same and found.epoch >= self.epoch

    def outdates(self, body: bytes) -> bool:
        """Whether a message on its subject is of this attempt or of an older one, or of none: a
        later attempt's may have taken its place meanwhile."""
        found = _publication(body)
        return found is None or found[0] <= self.attempt


def command(loaded: Loaded, dispatch: Dispatch, since: float = 0.0) -> Outgoing:
    """The command that asks an agent to carry out `dispatch`, of a task as it is now; the dispatch
    may have been stored from `since` on (monotonic; 0: not known)."""
    step, phase = loaded.definition.steps[dispatch.step], dispatch.phase
    text = str(loaded.id)
    agent, _, action = target(step, phase).partition(".")
    span = attempt_span(loaded.id, step.name, phase, dispatch.attempt)
    attributes: dict[str, Any] = {
        "specversion": messages.SPEC_VERSION,
        "id": f"{text}/{step.name}/{phase}/{dispatch.attempt}/{dispatch.epoch}",
        "source": "/headway/coordinator",
        "type": messages.EXECUTE if phase is Phase.ACTION else messages.COMPENSATE,
        "task": text,
        "saga": loaded.definition.name,
        "step": step.name,
        "phase": phase,
        "attempt": dispatch.attempt,
        "epoch": dispatch.epoch,
        "traceparent": traceparent(loaded.id, span, sampled=loaded.trace.sampled is not False),
        **_limits(step),
    }
    return Outgoing(
        loaded.id,
        agent,
        subjects.command_subject(agent, action, text, step.name),
        dispatch.attempt == 1 and dispatch.epoch == 0,
        attributes,
        _data(loaded, dispatch),
        loaded.priority,
        loaded.attributes,
        since,
    )


def subject_of(task_id: UUID, step: Step, phase: Phase) -> str:
    """The subject of a step's commands in one phase."""
    agent, _, action = target(step, phase).partition(".")
    return subjects.command_subject(agent, action, str(task_id), step.name)


def sought_of(loaded: Loaded, dispatch: Dispatch) -> Sought:
    """What must be in the stream for an attempt that is outstanding."""
    step = loaded.definition.steps[dispatch.step]
    subject = subject_of(loaded.id, step, dispatch.phase)
    claim = loaded.task.steps[step.name].claim
    least = 0 if claim is None else claim.command_epoch
    return Sought(subject, dispatch.phase, dispatch.attempt, least)


def _publication(body: bytes) -> tuple[int, int] | None:
    """Attempt and epoch of a command; None if it is not one."""
    try:
        found = messages.decode_command(body)
    except InvalidInput:
        return None
    return found.attempt, found.epoch


def withdrawn_of(task_id: UUID, step: Step, task: Task, phase: Phase) -> Sought:
    """What is no longer wanted of a step in one phase: all that was dispatched until now."""
    state = task.steps[step.name]
    attempt = state.actions if phase is Phase.ACTION else state.attempt
    return Sought(subject_of(task_id, step, phase), phase, attempt)


def target(step: Step, phase: Phase) -> str:
    """`agent.action` of a step in one phase."""
    name = step.action if phase is Phase.ACTION else step.compensate
    assert name is not None, "a step without a compensation is never compensated"
    return name


def agent_of(step: Step, phase: Phase) -> str:
    """Whom a step's commands in one phase are for."""
    return target(step, phase).partition(".")[0]


def agents_of(step: Step) -> tuple[str, ...]:
    """Whom a step's commands are for, in either phase; the action's first."""
    phases = (Phase.ACTION,) if step.compensate is None else (Phase.ACTION, Phase.COMPENSATION)
    return tuple(agent_of(step, phase) for phase in phases)


def check_agent(agent: str, loaded: Loaded, step_name: str, phase: str) -> None:
    """Refuse (403) whoever is not the agent that the commands of this step's phase are for."""
    step = loaded.definition.steps.get(step_name)
    if step is None:
        raise Refusal(f"there is no step {step_name!r} in saga {loaded.definition.name!r}", 404)
    if phase == Phase.COMPENSATION and step.compensate is None:
        raise Refusal(f"step {step_name!r} has no compensation", 404)
    meant_for = agent_of(step, Phase(phase))
    if agent != meant_for:
        raise not_for(agent, step_name, phase, meant_for)


def not_for(agent: str, step: str, phase: str, meant_for: str) -> Refusal:
    return Refusal(
        f"the {phase} of step {step!r} is for agent {meant_for!r}, not for {agent!r}", 403
    )


def _limits(step: Step) -> dict[str, Any]:
    limits = step.timeouts
    found: dict[str, Any] = {}
    if limits.start_to_close is not None:
        found["starttoclosems"] = max(1, round(limits.start_to_close * 1000))
    if limits.heartbeat is not None:
        found["heartbeatms"] = max(1, round(limits.heartbeat * 1000))
    if limits.heartbeat is not None or limits.schedule_to_start is not None:
        found["reportstart"] = True
    return found


def _data(loaded: Loaded, dispatch: Dispatch) -> bytes:
    definition, task = loaded.definition, loaded.task
    results = {
        name: task.steps[name].result
        for name in definition.ancestors[dispatch.step]
        if task.steps[name].known
    }
    own = definition.steps[dispatch.step].input
    data: dict[str, Any] = {
        "input": orjson.Fragment(loaded.input) if own is None else own,
        "results": results,
    }
    if is_sealed_body(loaded.input):
        data["sealed"] = True
    if loaded.manifest is not None and loaded.manifest.goal:
        data["goal"] = loaded.manifest.goal
    if task.beside.rejection:
        data["rejection"] = task.beside.rejection
    if dispatch.phase is Phase.COMPENSATION:
        state = task.steps[dispatch.step]
        data["result"] = state.result
        data["outcome_unknown"] = not state.known
    return orjson.dumps(data)
