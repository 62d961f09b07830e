"""What a group of items does to one task. Pure: the engine reads before and writes after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from uuid import UUID

from headway.agents.codec import is_sealed_body
from headway.coordinator.commands import agent_of
from headway.coordinator.errors import Refusal
from headway.coordinator.intake import Item
from headway.coordinator.records import (
    Change,
    Loaded,
    NewTask,
)
from headway.coordinator.span_debts import owes
from headway.coordinator.taskchecks import (
    bounds_of,
    check_legible,
    check_manifest,
    checks_of,
)
from headway.sagas import inputs as i
from headway.sagas.actions import Action
from headway.sagas.codec import encode_task
from headway.sagas.deadlines import due
from headway.sagas.definition import Definition
from headway.sagas.errors import ImpossibleInput
from headway.sagas.events import Event
from headway.sagas.moving import relaid
from headway.sagas.plan import planned
from headway.sagas.task import Phase, Task
from headway.sagas.transition import transition
from headway.sagas.values import value
from headway.sagas.waiting import waits_for_person

MOMENTS_KEPT = 256

Definitions = Mapping[tuple[str, int | None], Definition]
"""By name and version; version None is the newest."""
_OF_AGENTS = (
    *(i.Succeeded, i.Failed, i.TimedOut),
    *(i.Started, i.Heartbeat, i.HandedBack, i.ClaimAsked),
)
CheckInput = Callable[[Definition, bytes], None]


@value
class Decision:
    """The outcome for one task, which then stands as `after`. `change` is None when nothing is to
    be written."""

    id: UUID
    before: Loaded | None
    task: Task | None
    definition: Definition | None
    change: Change | None
    after: Loaded | None
    actions: tuple[Action, ...]
    answers: tuple[tuple[Item, Refusal | None, bool], ...]

    @property
    def repeated(self) -> bool:
        """Something came again and changed nothing: its first time may have been cut short.

        Whether something else changed the task along with it does not matter.
        """
        return any(item.repeated and not changed for item, _, changed in self.answers)


@dataclass(slots=True)
class _Working:
    """A task while its items are applied one after another."""

    id: UUID
    loaded: Loaded | None
    definition: Definition | None = None
    task: Task | None = None
    new: NewTask | None = None
    events: list[Event] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.loaded is not None:
            self.definition = self.loaded.definition
            self.task = self.loaded.task

    @property
    def born(self) -> NewTask | Loaded:
        """What never changes about it."""
        born = self.new or self.loaded
        assert born is not None
        return born


def decide(
    items: Sequence[Item], loaded: Loaded | None, definitions: Definitions, check: CheckInput
) -> Decision:
    """Apply `items`, in order, to the task as it was read (None: it does not exist)."""
    working = _Working(items[0].task, loaded)
    answers: list[tuple[Item, Refusal | None, bool]] = []
    for item in items:
        before = len(working.events)
        try:
            _apply(working, item, definitions, check)
            refusal = None
        except Refusal as refused:
            refusal = refused
        except ImpossibleInput as impossible:
            refusal = Refusal(str(impossible), 404 if working.task is None else 409)
        answers.append((item, refusal, len(working.events) > before))
    change = _change(working, items)
    return Decision(
        working.id,
        loaded,
        working.task,
        working.definition,
        change,
        loaded if change is None else _after(working, change),
        tuple(working.actions),
        tuple(answers),
    )


def _apply(working: _Working, item: Item, definitions: Definitions, check: CheckInput) -> None:
    if item.new is not None:
        _submit(working, item.new, definitions, check)
    if working.definition is None:
        raise Refusal(f"there is no task {item.task}", 404)
    if item.agent:
        _check_sender(working.definition, item)
    happened, born = item.happened, working.born
    if working.new is not None and isinstance(happened, i.Submit):
        bounds, child = bounds_of(working.new.manifest), working.new.parent is not None
        if bounds is not None or child:
            happened = replace(happened, bounds=bounds, child=child)
    definition, task = _under_target(working, item, check) or (working.definition, working.task)
    checks = checks_of(definition, born.input, born.manifest)
    outcome = transition(definition, task, happened, checks)
    working.definition, working.task = definition, outcome.task
    if outcome.task.beside.plan:
        working.definition = planned(working.definition, outcome.task.beside.plan)
    working.events.extend(outcome.events)
    working.actions.extend(outcome.actions)
    if outcome.refusal:
        raise Refusal(outcome.refusal, 409)


def _under_target(
    working: _Working, item: Item, check: CheckInput
) -> tuple[Definition, Task] | None:
    """A task that is moved, as the other version has it; None if there is nothing to move."""
    task, target, happened = working.task, item.target, item.happened
    if task is None or target is None or not isinstance(happened, i.Move):
        return None
    if happened.seen != task.version:
        return None
    check(target, working.born.input)
    if working.born.manifest is not None:
        check_manifest(target, working.born.manifest)
    definition = planned(target, task.beside.plan)
    return definition, relaid(definition, task)


def _submit(working: _Working, new: NewTask, definitions: Definitions, check: CheckInput) -> None:
    known = working.loaded or working.new
    if known is not None:
        if known.input_digest != new.input_digest:
            raise Refusal(f"task {new.id} exists with another body; take a new id", 409)
        if known.owner != new.owner:
            raise Refusal(f"task {new.id} exists and is not yours; take a new id", 409)
        return
    definition = definitions.get((new.saga, new.version))
    if definition is None:
        version = "" if new.version is None else f" version {new.version}"
        raise Refusal(
            f"there is no saga {new.saga!r}{version}; register it first (headway saga register)",
            404,
        )
    if is_sealed_body(new.input):
        check_legible(definition, new.manifest)
    check(definition, new.input)
    if new.manifest is not None:
        check_manifest(definition, new.manifest)
    working.definition, working.new = definition, new


def _check_sender(definition: Definition, item: Item) -> None:
    happened = item.happened
    if not isinstance(happened, _OF_AGENTS):
        raise AssertionError(f"{type(happened).__name__} does not come from an agent")
    step = definition.steps.get(happened.step)
    if step is None:
        raise Refusal(f"there is no step {happened.step!r} in saga {definition.name!r}", 404)
    if happened.phase is Phase.COMPENSATION and step.compensate is None:
        raise Refusal(f"step {step.name!r} has no compensation", 409)
    expected = agent_of(step, happened.phase)
    if item.agent != expected:
        raise Refusal(
            f"agent {item.agent!r} answered a command of step {step.name!r} that was for "
            f"{expected!r}",
            403,
        )


def _change(working: _Working, items: Sequence[Item]) -> Change | None:
    if not working.events:
        return None
    task, definition = working.task, working.definition
    assert task is not None
    assert definition is not None
    at = items[-1].happened.at
    return Change(
        working.id,
        working.loaded.task.version if working.loaded else 0,
        task,
        encode_task(task),
        due(definition, task),
        waits_for_person(definition, task),
        at,
        tuple(working.events),
        definition.version,
        working.new,
        bool(working.born.trace.sampled) and owes(working.loaded, working.events, at),
    )


def _after(working: _Working, change: Change) -> Loaded:
    """The task as it stands after the change."""
    before, definition, new = working.loaded, working.definition, change.new
    assert definition is not None
    at = _moment(change.at)
    born = new if before is None else before
    assert born is not None
    return Loaded(
        change.id,
        definition,
        change.task,
        born.input,
        born.input_digest,
        at if before is None else before.created_at,
        at,
        None if change.due is None else _moment(change.due),
        born.attributes,
        born.manifest,
        born.parent,
        born.owner,
        born.priority,
        born.trace,
    )


@lru_cache(maxsize=MOMENTS_KEPT)
def _moment(ms: int) -> datetime:
    """In UTC; of tasks that are decided together, most are of the same millisecond."""
    return datetime.fromtimestamp(ms / 1000, UTC)
