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

from calm import next_word
from corpus import Shape
from downstream import changed_by, compensate, effects_left, executions, may_say, untouched
from forks import wrongly_forked
from headway.sagas import (
    Dispatch,
    ImpossibleInput,
    Phase,
    StartChild,
    StepStatus,
    Task,
    Transition,
    UndoChild,
    due,
    outstanding,
    transition,
)
from headway.sagas import inputs as i
from headway.sagas.codec import encode_task
from headway.sagas.transition import children
from laws import complaints, complaints_of_silence
from menu import NOW, everything, nonsense, run_out
from offspring import (
    ALIVE,
    News,
    done,
    lives,
    may_be_said,
    raised,
    told_of,
    unborn_children,
    wrongly_ended,
)
from taken import Taken
from witness import NOTHING, nothing_seen, turned_around, watch
from world import World, canonical, planned_for

CALM_STEPS_MAX = 80  # without faults, a task ends within so many steps, people's retries included


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
            self._try_forks(world)
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
        shape = self.shape
        nothing = nothing_seen(shape.definition)
        submitted = i.Submit(NOW, shape.bounds, shape.child, shape.fork)
        moved = self._decide(None, submitted)
        seen = watch(nothing, None, submitted, moved)
        world = World(canonical(moved.task), seen, untouched(shape), unborn_children(shape))
        taken = Taken(shape.definition, None, submitted, moved, nothing, seen, shape.checks)
        wrong = complaints(taken)
        if wrong:
            raise self._broken(world, "Submit", wrong)
        self.paths[world.key()] = ("", "Submit")
        return world

    def _followers(self, world: World) -> Iterator[tuple[World, object]]:
        for rows in executions(self.shape, world.seen, world.rows):
            follower = replace(world, rows=rows)
            wrong = list(effects_left(self._of_itself(world), self.shape, rows))
            if wrong:
                raise self._broken(world, f"executed: {rows}", wrong)
            yield follower, rows
        for later in lives(world.seen, world.children):
            wrong = list(wrongly_ended(self._of_itself(world), later))
            if wrong:
                raise self._broken(world, f"went on: {later}", wrong)
            yield replace(world, children=later), later
        for before, happened in everything(self.shape, world.task, world.seen):
            if may_say(self.shape, world.task, world.seen, world.rows, happened) and may_be_said(
                world.task, world.children, happened
            ):
                yield self._take(world, before, happened), happened

    def _of_itself(self, world: World) -> Taken:
        """What the laws are told when the world changes without the machine."""
        return Taken(
            planned_for(self.shape, world.task),
            world.task,
            i.Tick(NOW),
            Transition(world.task),
            world.seen,
            world.seen,
            self.shape.checks,
        )

    def _take(self, world: World, before: Task, happened: i.Input) -> World:
        """The world after an input, with every law checked."""
        try:
            moved = self._decide(before, happened)
            seen = watch(world.seen, before, happened, moved)
            known = world.seen
            if len(seen) > len(known):
                known = {**dict.fromkeys(seen, NOTHING), **known}
            definition = planned_for(self.shape, moved.task)
            taken = Taken(definition, before, happened, moved, known, seen, self.shape.checks)
            if moved.task is before and not moved.actions and seen == world.seen:
                wrong = complaints_of_silence(taken)
                if wrong:
                    raise self._broken(world, f"{happened}", wrong)
                return world
            rows = changed_by(self.shape, before, world.seen, world.rows, happened, moved)
            family = raised(before, world.seen, world.children, happened, moved)
            wrong = [
                *complaints(taken),
                *effects_left(taken, self.shape, rows),
                *wrongly_ended(taken, family),
            ]
        except LawBroken:
            raise
        except Exception as error:
            raise self._broken(world, f"{happened}", [f"raised {error!r}"]) from error
        if wrong:
            told = f"{happened}\n    -> {moved.events}\n    -> {moved.actions} {moved.refusal}"
            raise self._broken(world, told, wrong)
        return World(canonical(moved.task), seen, rows, family)

    def _decide(self, before: Task | None, happened: i.Input) -> Transition:
        self.counts.transitions += 1
        definition = self.shape.definition if before is None else planned_for(self.shape, before)
        return transition(definition, before, happened, self.shape.checks)

    def _try_nonsense(self, world: World) -> None:
        """What cannot have happened is refused, or changes nothing; nothing else is raised."""
        definition = planned_for(self.shape, world.task)
        for happened in nonsense(definition, world.task, world.seen):
            self.counts.transitions += 1
            try:
                moved = transition(definition, world.task, happened, self.shape.checks)
            except ImpossibleInput:
                self.counts.refused += 1
                continue
            except Exception as error:
                raise self._broken(world, f"{happened}", [f"raised {error!r}"]) from error
            if moved.events or moved.actions:
                raise self._broken(world, f"{happened}", [f"nonsense led to {moved.events}"])

    def _try_forks(self, world: World) -> None:
        """What may be forked, from each step of a task at rest."""
        if world.task.ended or world.task.parked:
            wrong = list(wrongly_forked(self.shape.definition, self._of_itself(world)))
            if wrong:
                raise self._broken(world, "forked", wrong)

    def _is_within_bounds(self, world: World) -> bool:
        faults = self.shape.faults
        return len(world.task.beside.plan) <= faults.handoffs and all(
            max(known.actions, known.compensations, state.attempt) <= faults.attempts
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
        task, definition = world.task, planned_for(self.shape, world.task)
        if world.children and not outstanding(definition, task):
            for sent in children(definition, task):
                return self._look_after_child(world, sent)
            for name, child in world.children.items():
                stuck = task.steps[name].status is StepStatus.FAILED_TO_COMPENSATE
                if stuck and child.kind in ("past", "done past"):
                    return self._take(
                        world, task, i.Settle(NOW, name, "happened", "somebody", "saw to it")
                    )
        word = next_word(self.shape, definition, task, NOW)
        if word is None:
            return self._let_time_pass(world)
        if not world.rows or not isinstance(word, i.Succeeded):
            return self._take(world, task, word)
        for command in outstanding(definition, task):
            empty = False
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
            answer = i.Succeeded(NOW, command.step, command.phase, command.attempt, "result", empty)
            return self._take(replace(world, rows=rows), task, answer)
        return self._let_time_pass(world)

    def _look_after_child(self, world: World, sent: Dispatch) -> World:
        """A child ends, is undone as it was asked to be, or is asked for again."""
        task, child = world.task, world.children[sent.step]
        wanted_back = turned_around(task) and child.kind in ALIVE
        if wanted_back or child.kind in ("none", "never"):
            return self._ask_again(world, sent)
        if child.kind in ALIVE:
            child = done(child)
            world = replace(world, children={**world.children, sent.step: child})
        outcome: News = "compensated" if child.kind == "undone" else "succeeded"
        return self._take(world, task, i.ChildEnded(NOW, sent.step, sent.attempt, outcome))

    def _ask_again(self, world: World, sent: Dispatch) -> World:
        lost = i.DispatchLost(NOW, sent.step, sent.phase, sent.attempt, sent.epoch)
        moved = self._decide(world.task, lost)
        world = self._take(world, world.task, lost)
        for action in moved.actions:
            if isinstance(action, StartChild | UndoChild) and action.step == sent.step:
                family, said = told_of(world.children, action)
                world = replace(world, children=family)
                if said:
                    news = i.ChildEnded(NOW, action.step, action.attempt, said)
                    world = self._take(world, world.task, news)
        if not moved.events:
            raise self._broken(world, f"{lost}", ["a child that was lost is not asked for again"])
        return world

    def _let_time_pass(self, world: World) -> World:
        definition = planned_for(self.shape, world.task)
        run = run_out(definition, world.task)
        timer = due(definition, run)
        if timer is None or timer > NOW:
            raise self._broken(world, "no more faults", [f"its timer is {timer}"])
        return self._take(world, run, i.Tick(NOW))

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
