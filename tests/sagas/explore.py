"""Exhaustive search over the reachable states of a saga: every input, in every state.

The environment is a model. Whatever was sent may be executed late and any number of times, and
whatever was ever said may arrive at any time and again. Time has no measure here: a state holds
only what is due and what is not yet, and every clock may be the next to run out. So the number
of states is finite, and each is looked at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from corpus import Shape
from downstream import Rows, changed_by, compensate, effects_left, executions, may_say, untouched
from headway.sagas import (
    ImpossibleInput,
    Phase,
    StepState,
    Task,
    Transition,
    due,
    outstanding,
    transition,
)
from headway.sagas import inputs as i
from headway.sagas.codec import encode_task
from headway.sagas.task import Failure
from laws import Taken, an_answered_attempt_is_waited_for_no_more, complaints
from menu import LATER, NOW, everything, nonsense, run_out
from witness import Witness, nothing_seen, watch

CALM_STEPS_MAX = 80  # without faults, a task ends within so many steps, people's retries included

_SOME_FAILURE = Failure("Some", "failure")


@dataclass(frozen=True, slots=True)
class World:
    """A task, what an onlooker knows of it, and what is downstream of it."""

    task: Task
    seen: Witness
    rows: Rows

    def key(self) -> Hashable:
        task = self.task
        return task.status, task.incident, *task.steps.values(), *self.seen.values(), self.rows


@dataclass(slots=True)
class Counts:
    """How much a search went through."""

    states: int = 0
    transitions: int = 0
    refused: int = 0
    calm_steps_max: int = 0


class LawBroken(AssertionError):
    """A law did not hold; the text tells the way there."""


@dataclass(slots=True)
class Search:
    """A search of one shape.

    Always holds: every world in `paths` was reached from a submission by the inputs on its path,
    and every law held on the way.
    """

    shape: Shape
    counts: Counts = field(default_factory=Counts)
    paths: dict[Hashable, tuple[Hashable, object]] = field(default_factory=dict)
    calm: dict[Hashable, int] = field(default_factory=dict)

    def run(self) -> Counts:
        """Visit every reachable state; LawBroken tells how to get to one that breaks a law."""
        queue = deque([self._begin()])
        while queue:
            world = queue.popleft()
            self.counts.states += 1
            self._try_nonsense(world)
            for follower, told in self._followers(world):
                key = follower.key()
                if key in self.paths:
                    continue
                self.paths[key] = (world.key(), told)
                self._must_calm_down(follower)
                if self._is_within_bounds(follower):
                    queue.append(follower)
        return self.counts

    def _begin(self) -> World:
        nothing = nothing_seen(self.shape.definition)
        submitted = i.Submit(NOW)
        moved = self._decide(None, submitted)
        seen = watch(nothing, None, submitted, moved)
        world = World(canonical(moved.task), seen, untouched(self.shape))
        wrong = complaints(Taken(self.shape.definition, None, submitted, moved, nothing, seen))
        if wrong:
            raise self._broken(world, "Submit", wrong)
        self.paths[world.key()] = ("", "Submit")
        return world

    def _followers(self, world: World) -> Iterator[tuple[World, object]]:
        for rows in executions(self.shape, world.seen, world.rows):
            follower = replace(world, rows=rows)
            taken = Taken(
                self.shape.definition,
                world.task,
                i.Tick(NOW),
                Transition(world.task),
                world.seen,
                world.seen,
            )
            wrong = list(effects_left(taken, self.shape, rows))
            if wrong:
                raise self._broken(world, f"executed: {rows}", wrong)
            yield follower, rows
        for before, happened in everything(self.shape, world.task, world.seen):
            if may_say(self.shape, world.task, world.seen, world.rows, happened):
                yield self._take(world, before, happened), happened

    def _take(self, world: World, before: Task, happened: i.Input) -> World:
        """The world after an input, with every law checked."""
        definition = self.shape.definition
        try:
            moved = self._decide(before, happened)
            seen = watch(world.seen, before, happened, moved)
            taken = Taken(definition, before, happened, moved, world.seen, seen)
            if moved.task is before and not moved.actions and seen == world.seen:
                # nothing came of it, and every other law holds of this world
                wrong = list(an_answered_attempt_is_waited_for_no_more(taken))
                if wrong:
                    raise self._broken(world, f"{happened}", wrong)
                return world
            rows = changed_by(self.shape, before, world.seen, world.rows, happened, moved)
            wrong = [*complaints(taken), *effects_left(taken, self.shape, rows)]
        except LawBroken:
            raise
        except Exception as error:
            raise self._broken(world, f"{happened}", [f"raised {error!r}"]) from error
        if wrong:
            told = f"{happened}\n    -> {moved.events}\n    -> {moved.actions} {moved.refusal}"
            raise self._broken(world, told, wrong)
        return World(canonical(moved.task), seen, rows)

    def _decide(self, before: Task | None, happened: i.Input) -> Transition:
        self.counts.transitions += 1
        return transition(self.shape.definition, before, happened)

    def _try_nonsense(self, world: World) -> None:
        """What cannot have happened is refused, or changes nothing; nothing else is raised."""
        for happened in nonsense(world.task, world.seen):
            self.counts.transitions += 1
            try:
                moved = transition(self.shape.definition, world.task, happened)
            except ImpossibleInput:
                self.counts.refused += 1
                continue
            except Exception as error:
                raise self._broken(world, f"{happened}", [f"raised {error!r}"]) from error
            if moved.events or moved.actions:
                raise self._broken(world, f"{happened}", [f"nonsense led to {moved.events}"])

    def _is_within_bounds(self, world: World) -> bool:
        faults = self.shape.faults
        return all(
            max(known.actions, known.compensations) <= faults.attempts
            and state.epoch <= faults.epochs
            for known, state in zip(world.seen.values(), world.task.steps.values(), strict=True)
        )

    def _must_calm_down(self, world: World) -> None:
        """From here on without faults, the task ends; people retry what is parked."""
        way: list[Hashable] = []
        while not world.task.ended and world.key() not in self.calm:
            if len(way) > CALM_STEPS_MAX:
                raise self._broken(world, "no more faults", ["it neither ends nor is parked"])
            way.append(world.key())
            world = self._calm_step(world)
        steps = self.calm.get(world.key(), 0)
        for key in reversed(way):
            steps += 1
            self.calm[key] = steps
        self.counts.calm_steps_max = max(self.counts.calm_steps_max, steps)

    def _calm_step(self, world: World) -> World:
        task = world.task
        if task.parked:
            return self._calmly(world, task, i.RetryStuck(NOW, "somebody", "try again"))
        for command in outstanding(self.shape.definition, task):
            empty = False
            if world.rows:
                place = list(task.steps).index(command.step)
                row = world.rows[place]
                if command.phase is Phase.ACTION:
                    row = replace(row, kind="done") if row.kind == "none" else row
                    if row.kind not in ("done", "undone"):
                        continue  # fenced off: its command is refused, a timeout will tell
                else:
                    row = compensate(self.shape, row, command.attempt)
                    empty = row.kind != "undone"
                rows = (*world.rows[:place], row, *world.rows[place + 1 :])
                world = replace(world, rows=rows)
            answer = i.Succeeded(NOW, command.step, command.phase, command.attempt, "result", empty)
            return self._calmly(world, task, answer)
        return self._calmly(world, run_out(self.shape.definition, task), i.Tick(NOW))

    def _calmly(self, world: World, before: Task, happened: i.Input) -> World:
        if isinstance(happened, i.Tick):
            timer = due(self.shape.definition, before)
            if timer is None or timer > NOW:
                raise self._broken(world, "no more faults", [f"its timer is {timer}"])
        return self._take(world, before, happened)

    def _broken(self, world: World, told: str, wrong: list[str]) -> LawBroken:
        way: list[str] = [told]
        key = world.key()
        while key in self.paths:
            key, step = self.paths[key]
            way.append(f"{step}")
        path = "\n  ".join(reversed(way))
        return LawBroken(
            f"{self.shape.name} ({self.shape.faults}):\n  {path}\n"
            + "\n".join(wrong)
            + f"\nbefore, it was {world.task.status}: {encode_task(world.task).decode()}"
            + f"\nand downstream {world.rows}"
        )


def canonical(task: Task) -> Task:
    """The state without what cannot matter: when things were, and in which words."""
    return Task(
        task.status,
        1,
        {name: _canonical_step(state) for name, state in task.steps.items()},
        "because" if task.reason else "",
        "incident" if task.incident else "",
        "because" if task.cause else "",
    )


@lru_cache(maxsize=100_000)
def _canonical_step(state: StepState) -> StepState:
    return state._replace(
        dispatched_at=NOW if state.dispatched_at else 0,
        started_at=NOW if state.started_at else 0,
        heartbeat_at=NOW if state.heartbeat_at else 0,
        scheduled_at=NOW if state.scheduled_at else 0,
        retry_at=LATER if state.retry_at else 0,
        stop_by=LATER if state.stop_by else 0,
        error=_SOME_FAILURE if state.error else None,
    )
