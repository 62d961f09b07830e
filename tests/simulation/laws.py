"""What must hold of a run, by what is stored and by what is downstream.

After each commit, of each task that it changed:

1. the history folds to the state, and versions have no gap; the state is sound
2. an ended task stays as it ended, but for a child that its parent has undone
3. what neither ended nor waits for a person has a timer
4. an attempt is dispatched only when none is outstanding, and attempts are counted one by one
5. nothing past the pivot is undone

Of each effect, when it happens downstream: a step takes effect once (applied), only after those
it comes after; it is undone only after those that were built on it (5). At the end: an ended task
left exactly the effects that it says (6), every task has ended or waits for a person (7), and none
that was accepted is lost (8); nobody was shown an end that is not one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import orjson
from headway.agents.identity import operation_id
from headway.sagas import Definition, fold, violations
from headway.sagas import events as e
from headway.sagas.codec import decode_event, decode_task
from headway.sagas.plan import planned
from headway.sagas.task import Phase, StepState, Task, unborn
from simulation.downstream import Downstream, Row
from simulation.people import Desk
from simulation.store_tables import ENDED, TIMELESS, TaskRow
from simulation.store_tasks import COMMITS
from simulation.tallies import wrong_tallies
from simulation.world import World

Ended = e.StepCompleted | e.StepCompensated | e.AttemptFailed | e.AttemptTimedOut


@dataclass(slots=True)
class Known:
    """A task as its history has it so far."""

    id: UUID
    definition: Definition
    task: Task
    status: str


class Laws:
    def __init__(self, world: World, downstream: Downstream, desk: Desk) -> None:
        self.states: set[int] = set()  # distinct ones that were seen
        self._world = world
        self._downstream = downstream
        self._desk = desk
        self.known: dict[UUID, Known] = {}
        self._sagas: dict[tuple[str, int], Definition] = {}
        self.on_event: Callable[[UUID, StepState, Ended | e.AttemptRepublished], None] = _unheard
        self.changed_at: dict[UUID, float] = {}  # when each task was, last
        self.on_journals: Callable[[], None] = _unheard
        self.on_completed: Callable[[UUID, str, str], None] = _unheard
        world.tables.on_change = self._on_change
        downstream.on_effect = self._on_effect

    def _on_change(self, statement: str) -> None:
        if statement == "commit_journals":
            self.on_journals()
        if statement not in COMMITS:
            return
        for task in self._world.tables.tasks.values():
            known = self.known.get(task.id)
            if known is None or known.task.version != task.version:
                for wrong in self._changed(task):
                    self._world.fail(f"task {task.id} ({task.saga}): {wrong}")

    def _changed(self, row: TaskRow) -> Iterator[str]:
        known = self.known.get(row.id)
        if known is None:
            definition = self._saga(row)
            known = self.known[row.id] = Known(row.id, definition, unborn(definition), "")
        self.changed_at[row.id] = self._world.timeline.now
        history = self._world.tables.history.get(row.id, [])
        for place, event in enumerate(history[known.task.version :], known.task.version + 1):
            if event.version != place:
                yield f"version {event.version} follows {place - 1}"
                return
            decoded = decode_event(event.type, event.at, event.data)
            self._world.told("event", row.id, place, event.type, getattr(decoded, "step", ""))
            yield from self._before(known, decoded)
            if isinstance(decoded, e.StepCompleted):
                self.on_completed(row.id, decoded.step, "action")
            known.task = fold(known.task, decoded)
            known.definition = planned(known.definition, known.task.beside.plan)
        stored = decode_task(row.status, row.version, row.state)
        if stored != known.task:
            yield f"the fold of its history is not its state:\n{known.task}\n{stored}"
            return
        self.states.add(hash((row.saga, row.status, _outline(stored))))
        yield from violations(known.definition, stored)
        if row.due is None and row.status not in TIMELESS:
            yield f"no timer though it is {row.status}"
        revoked = known.status == "succeeded" and stored.beside.child
        if known.status in ENDED and known.status != row.status and not revoked:
            yield f"{known.status} became {row.status}"
        known.status = row.status

    def _before(self, known: Known, event: e.Event) -> Iterator[str]:
        if isinstance(event, Ended | e.AttemptRepublished):
            self.on_event(known.id, known.task.steps[event.step], event)
        match event:
            case e.AttemptDispatched():
                yield from self._before_dispatch(known, event)
            case e.AttemptRepublished() | e.AttemptClaimed():
                before = known.task.steps[event.step].epoch
                if event.epoch != before + 1:
                    yield f"{event} after epoch {before}"
            case e.RecoveryStarted():
                pivot = known.definition.pivot
                state = None if pivot is None else known.task.steps[pivot]
                if state is not None and state.actions and state.status != "failed":
                    yield f"{event} past the point of no return: {pivot} is {state.status}"

    def _before_dispatch(self, known: Known, event: e.AttemptDispatched) -> Iterator[str]:
        state, step = known.task.steps[event.step], known.definition.steps[event.step]
        if state.outstanding:
            yield f"{event} though attempt {state.attempt} is outstanding"
        counted = state.actions if event.phase is Phase.ACTION else state.attempt
        first = event.phase is Phase.COMPENSATION and event.attempt == 1
        if event.attempt != counted + 1 and not first:
            yield f"{event} follows attempt {counted}"
        pivot = known.definition.pivot
        after = pivot is not None and (
            event.step == pivot or event.step in known.definition.descendants[pivot]
        )
        if event.phase is Phase.COMPENSATION and (after or step.read_only):
            yield f"{event} past the pivot, or of what reads only"

    def _on_effect(self, row: Row, what: str) -> None:
        known = self.known.get(row.task)
        if known is None:
            self._world.fail(f"an effect of {row.step} for a task that is not stored: {row.task}")
            return
        definition = known.definition
        if what == "undone":
            for later in definition.descendants[row.step]:
                if self._is_done(row.task, later) and definition.steps[later].undoable:
                    self._world.fail(f"{row.step} of {row.task} is undone before {later}")
            return
        for before in definition.ancestors[row.step]:
            step = definition.steps[before]
            if step.kind != "action" or known.task.steps[before].status == "skipped":
                continue
            if not self._is_done(row.task, before):
                self._world.fail(f"{row.step} of {row.task} took effect before {before}")

    def _is_done(self, task: UUID, step: str) -> bool:
        row = self._downstream.rows.get(operation_id(task, step, "action"))
        return row is not None and row.state == "done"

    def unsettled(self) -> list[str]:
        """Tasks that neither ended nor wait for a person."""
        tables = self._world.tables
        missing = [f"{task} is not there" for task in self._desk.owed if task not in tables.tasks]
        return missing + [
            f"{task.id} ({task.saga}) is {task.status}: {_outline(self.known[task.id].task)}"
            for task in tables.tasks.values()
            if task.status not in TIMELESS and task.id not in self._waiting_for_people()
        ]

    def _waiting_for_people(self) -> set[UUID]:
        """Tasks one of whose children, or theirs, waits for a person."""
        rows = self._world.tables.tasks
        found: set[UUID] = set()
        parked = [row for row in rows.values() if row.status in TIMELESS - ENDED]
        while parked:
            row = parked.pop()
            if row.parent is not None:
                parked.append(rows[_parent_of(row)])
                found.add(parked[-1].id)
        return found

    def at_rest(self) -> None:
        """What must hold once nothing moves any more."""
        for task in self._desk.owed:
            if task not in self._world.tables.tasks:
                self._world.fail(f"task {task} was accepted and is lost")
        for row in self._world.tables.tasks.values():
            for wrong in self._left(row):
                self._world.fail(f"task {row.id} ({row.saga}) is {row.status}, but {wrong}")
        for task, status in self._desk.shown.items():
            stored = self._world.tables.tasks[task].status
            if stored != status:
                self._world.fail(f"task {task} was shown as {status} and is {stored}")
        for wrong in wrong_tallies(self._world.tables, self._downstream):
            self._world.fail(wrong)

    def _left(self, row: TaskRow) -> Iterator[str]:
        if row.status not in ENDED:
            return
        known = self.known[row.id]
        parent = None if row.parent is None else self._world.tables.tasks[_parent_of(row)]
        if parent is not None and (parent.status, row.status) == ("compensated", "succeeded"):
            yield f"it is not undone with its parent {parent.id}"
        for name, step in known.definition.steps.items():
            if step.kind != "action":
                continue
            done = self._is_done(row.id, name)
            state = known.task.steps[name]
            if row.status == "succeeded" and state.status != "skipped" and not done:
                yield f"{name} has no effect"
            undone = step.undoable and not known.task.incident
            if row.status == "compensated" and done and undone:
                yield f"the effect of {name} is there ({state.status})"

    def _saga(self, row: TaskRow) -> Definition:
        key = row.saga, row.saga_version
        if key not in self._sagas:
            self._sagas[key] = Definition.from_json(self._world.tables.sagas[key].body)
        return self._sagas[key]


def _unheard(*_told: object) -> None:
    return


def _parent_of(row: TaskRow) -> UUID:
    return UUID(orjson.loads(row.parent or b"null")[0])


def _outline(task: Task) -> str:
    """A state without its times and values."""
    return " ".join(
        f"{name}:{state.status}/{state.attempt}/{state.epoch}" + ("*" if state.outstanding else "")
        for name, state in task.steps.items()
    )
