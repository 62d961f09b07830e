"""The world that agents change: one operation a step, as an onlooker outside would find it.

"fenced" keeps a row for each operation in the same transaction as its effect, and refuses an
action after its compensation. "keyed" only dedupes: an action that comes after a compensation
that found nothing takes effect. Commands may be executed late, and any number of times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from corpus import Shape
from headway.sagas import Dispatch, Phase, Task, TaskStatus, Transition
from headway.sagas import inputs as i
from taken import Taken
from witness import Witness

Kind = Literal["none", "done", "undone", "suspended", "closed"]


@dataclass(frozen=True, slots=True)
class Row:
    """What is downstream of one step.

    Attributes:
        kind: `done` is an effect; `closed` is an attempt known never to have one.
        empties: compensations that found nothing, by attempt.
    """

    kind: Kind = "none"
    empties: frozenset[int] = frozenset()


Rows = tuple[Row, ...]


def untouched(shape: Shape) -> Rows:
    """Nothing has happened downstream, but for what another task did; no rows if the shape has no
    downstream."""
    if shape.downstream not in ("fenced", "keyed"):
        return ()
    kept = shape.fork.kept if shape.fork else {}
    return tuple(Row("done" if name in kept else "none") for name in shape.definition.steps)


def executions(shape: Shape, seen: Witness, rows: Rows) -> Iterator[Rows]:
    """What is downstream after a command that was sent is executed, without an answer yet."""
    for place, (row, known) in enumerate(zip(rows, seen.values(), strict=False)):
        executed = set[Row]()
        if known.actions and row.kind == "none":
            executed.add(replace(row, kind="done"))
        for attempt in range(1, known.compensations + 1):
            executed.add(compensate(shape, row, attempt))
        for changed in executed - {row}:
            yield (*rows[:place], changed, *rows[place + 1 :])


def compensate(shape: Shape, row: Row, attempt: int) -> Row:
    if row.kind == "done":
        return replace(row, kind="undone")
    if row.kind in ("undone", "suspended"):
        return row
    if shape.downstream == "fenced":
        return replace(row, kind="suspended")
    return replace(row, empties=row.empties | {attempt})


def may_say(shape: Shape, task: Task, seen: Witness, rows: Rows, happened: i.Input) -> bool:
    """Whether an honest agent, or an honest person, could say this."""
    if not rows:
        return True
    match happened:
        case i.Succeeded():
            return _may_succeed(shape, _row(shape, rows, happened.step), happened)
        case i.Failed(phase=Phase.ACTION, no_effect=True):
            alone = seen[happened.step].clean  # else another executor may have done it
            return not alone or _row(shape, rows, happened.step).kind not in ("done", "undone")
        case i.Settle():
            if task.status is TaskStatus.FAILED_TO_COMPENSATE:
                return True
            return (_row(shape, rows, happened.step).kind == "done") == (
                happened.outcome == "happened"
            )
        case _:
            return True


def _may_succeed(shape: Shape, row: Row, answer: i.Succeeded) -> bool:
    if answer.phase is Phase.ACTION:
        return row.kind in ("done", "undone")
    if not answer.empty:
        return row.kind == "undone"
    if shape.downstream == "fenced":
        return row.kind == "suspended"
    return answer.attempt in row.empties


def changed_by(
    shape: Shape, task: Task, seen: Witness, rows: Rows, happened: i.Input, moved: Transition
) -> Rows:
    """What is downstream once this was said and answered by the machine."""
    if not rows:
        return rows
    found = dict(zip(shape.definition.steps, rows, strict=True))
    match happened:
        case i.Failed(phase=Phase.ACTION, no_effect=True) if _is_alone(task, seen, happened):
            if found[happened.step].kind == "none":
                found[happened.step] = replace(found[happened.step], kind="closed")
        case i.Settle() if not moved.refusal:
            found[happened.step] = _by_hand(task, found[happened.step])
        case _:
            pass
    for action in moved.actions:
        if isinstance(action, Dispatch) and action.phase is Phase.ACTION:
            row = found[action.step]
            if row.kind == "closed":
                found[action.step] = replace(row, kind="none")
    return tuple(found.values())


def _is_alone(task: Task, seen: Witness, failed: i.Failed) -> bool:
    """Whether nobody but the executor of this attempt could still do it."""
    known = seen[failed.step]
    current = (known.actions, task.steps[failed.step].epoch) == (failed.attempt, failed.epoch)
    return known.clean and known.open == Phase.ACTION and current


def _by_hand(task: Task, row: Row) -> Row:
    if task.status is TaskStatus.FAILED_TO_COMPENSATE:
        return replace(row, kind="undone" if row.kind == "done" else "suspended")
    return row if row.kind == "done" else replace(row, kind="closed")


def effects_left(taken: Taken, shape: Shape, rows: Rows) -> Iterator[str]:
    """Law: what a task claims of its end is what is found downstream."""
    if not rows or not taken.after.ended:
        return
    for name, row in zip(shape.definition.steps, rows, strict=True):
        step, known = shape.definition.steps[name], taken.seen[name]
        if known.kept:
            if row.kind != "done":
                yield f"downstream {name!r} is {row.kind}, though it is another task's to undo"
            continue
        if taken.after.status is TaskStatus.SUCCEEDED:
            if row.kind != "done":
                yield f"it succeeded, but downstream {name!r} is {row.kind}"
        elif row.kind == "done" and step.compensate and not taken.after.incident:
            if shape.downstream == "fenced" or known.happened:
                yield f"it is compensated, but the effect of {name!r} is left downstream"
        elif row.kind == "done" and step.pivot and known.happened and not taken.after.incident:
            yield f"it is compensated, but its pivot {name!r} took effect"


def _row(shape: Shape, rows: Rows, step: str) -> Row:
    return rows[list(shape.definition.steps).index(step)]
