"""Shapes of tasks that were forked from others, and the laws of what may be forked.

Each shape inherits every law; what may be forked at all is asked in every state of every search
in which a task is at rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from corpus import ONCE, Faults, Judged, Shape, steps
from headway.sagas import (
    Definition,
    ForkRefused,
    StepStatus,
    TaskStatus,
    kept,
    transition,
    violations,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.circumstances import Bounds, Fork
from kinds import FEW, FORKS, QUALITY, Written, forked
from menu import NOW
from taken import Taken
from witness import needs_undoing, turned_around

ORIGIN = "019e5c00-0000-7000-8000-000000000001"


def from_step(step: str, **results: str) -> Fork:
    return Fork(ORIGIN, step, dict(results), "somebody", "the carrier is back")


FORKED: tuple[Shape, ...] = (
    Shape(
        "a fork, linear of three",
        steps("linear3", ("a", ""), ("b", "a"), ("c", "b"), retry=ONCE, compensation_retry=ONCE),
        Faults(attempts=1),
        fork=from_step("b", a="kept"),
    ),
    Shape(
        "a fork, diamond",
        steps("diamond", ("a", ""), ("b", "a"), ("c", "a"), ("d", "b c"), retry=ONCE),
        Faults(attempts=1, stale=False),
        fork=from_step("b", a="kept", c="kept"),
    ),
    Shape(
        "a fork past return",
        steps("pivot", ("a", ""), ("p !", "a"), ("y >", "p"), ("z >", "p")),
        fork=from_step("y", a="kept", p="kept"),
    ),
    Shape(
        "a fork, fenced",
        steps("fenced3", ("a", ""), ("b", ""), ("c", "b"), retry=ONCE, compensation_retry=ONCE),
        Faults(attempts=1, stale=False),
        "fenced",
        fork=from_step("c", a="kept", b="kept"),
    ),
    *(
        Shape(
            f"a fork of forks, {answer}",
            forked(),
            replace(FEW, cancel=False, people=False),
            checks=Judged(),
            results={"a": FORKS},
            fork=from_step("b", a=answer),
        )
        for answer in ("yes", "no")
    ),
    *(
        Shape(
            f"a fork whose kept output is {given}, {then}",
            steps("two", ("y", ""), ("l ?", ""), retry=ONCE, compensation_retry=ONCE),
            replace(FEW, attempts=2),
            bounds=Bounds(on_rejection=then),
            checks=Judged(),
            results={"y": QUALITY, "l": QUALITY},
            fork=from_step("y", l=given),
        )
        for given in QUALITY
        for then in ("retry", "compensate")
    ),
    Shape(
        "a fork with a kept child",
        Written("c2").child("c").step("b", "c").define(),
        replace(FEW, revoke=True),
        fork=from_step("b", c="kept"),
    ),
)


def what_is_kept_is_neither_done_nor_undone(taken: Taken) -> Iterator[str]:
    for action in taken.moved.actions:
        if taken.seen[action.step].kept:
            yield f"{action} for a step that another task did"
    for name, known in taken.seen_before.items():
        state = taken.after.steps[name]
        if known.kept and (state.status, state.kept) != (StepStatus.COMPLETED, True):
            yield f"{name!r} was kept and is {state.status}"
    origin = "" if taken.before is None else taken.before.beside.forked_from
    if taken.before is not None and taken.after.beside.forked_from != origin:
        yield f"it was forked from {origin!r} and is from {taken.after.beside.forked_from!r}"


def wrongly_forked(own: Definition, taken: Taken) -> Iterator[str]:
    """Law: from each step, a task at rest is refused, or becomes one that keeps what it may. `own`
    is its saga, without what was handed off to."""
    for step in taken.definition.steps:
        try:
            results = kept(taken.definition, taken.after, step)
        except ForkRefused:
            yield from _wrongly_refused(taken, step)
            continue
        yield from (f"from {step!r}: {wrong}" for wrong in _wrongly_kept(taken, step, results))
        yield from (
            f"from {step!r}: {wrong}" for wrong in _wrongly_begun(own, taken, step, results)
        )


def _wrongly_refused(taken: Taken, step: str) -> Iterator[str]:
    """A task that succeeded by itself may be forked from any step."""
    task = taken.after
    plain = not (task.beside.child or task.beside.plan or task.incident)
    if task.status is TaskStatus.SUCCEEDED and plain:
        yield f"it succeeded, and cannot be forked from {step!r}"


def _wrongly_kept(taken: Taken, step: str, results: dict[str, object]) -> Iterator[str]:
    definition, seen, task = taken.definition, taken.seen, taken.after
    anew = {step, *definition.descendants[step]}
    if not (task.ended or task.parked):
        yield f"it is {task.status}"
    if anew & results.keys():
        yield f"{sorted(results)} are kept, of which {sorted(anew)} are to be done anew"
    for name in definition.steps:
        known = seen[name]
        if name in results and (not known.happened or known.undone):
            yield f"{name!r} is kept, though it did not happen or was undone"
        if name in results and turned_around(task) and needs_undoing(definition, seen, name):
            yield f"{name!r} is kept, though it is to be undone"
        left = known.may_have_effect and not known.undone
        if left and name not in anew | results.keys() and not definition.steps[name].without_effect:
            yield f"{name!r} has or may have an effect, and would be done a second time"


def _wrongly_begun(
    own: Definition, taken: Taken, step: str, results: dict[str, object]
) -> Iterator[str]:
    fork = Fork(ORIGIN, step, results)
    begun = transition(own, None, i.Submit(NOW, fork=fork), taken.checks)
    yield from violations(own, begun.task)
    dispatched = {each.step for each in begun.events if isinstance(each, e.AttemptDispatched)}
    if dispatched & results.keys():
        yield f"{sorted(dispatched & results.keys())} are kept and begun"
    for name in dispatched:
        for before in own.ancestors[name]:
            if before not in results and begun.task.steps[before].status is not StepStatus.SKIPPED:
                yield f"{name!r} is begun before {before!r}"
