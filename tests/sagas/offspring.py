"""Child tasks as they really are, beside what is said of them.

A child runs; it ends well, or undoes itself, or gets past its own point of no return and from
there ends well only. Asked to be undone, it is, unless it is past that point. What was ever true
of a child may be told at any time, and again. What was sent may be carried out late, and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from corpus import Shape
from headway.sagas import StartChild, Task, TaskStatus, Transition, UndoChild
from headway.sagas import inputs as i
from taken import Taken
from witness import Seen, Witness

News = Literal["succeeded", "compensated", "refused"]

ALIVE = ("running", "past", "done", "done past")
_DONE = ("done", "done past")


@dataclass(frozen=True, slots=True)
class Child:
    """The child of one step.

    `kind`: "none" was not begun, "never" cannot be; "running", or "past" its point of no return;
    "done", or "done past" that point; "undone"; "two" is a second one while the first may have an
    effect. `said` is what was ever said of it.
    """

    kind: str = "none"
    said: frozenset[News] = frozenset()

    def becomes(self, kind: str, said: News | None = None) -> Child:
        return replace(self, kind=kind, said=self.said | ({said} if said else set()))


Children = dict[str, Child]
"""By the name of their step; empty if the shape is not about them."""

UNBORN = Child()


def unborn_children(shape: Shape) -> Children:
    if shape.downstream != "family":
        return {}
    steps = shape.definition.steps.values()
    return {step.name: UNBORN for step in steps if step.kind == "child"}


def lives(seen: Witness, children: Children) -> Iterator[Children]:
    """What there is after one of the children went on."""
    for name, child in children.items():
        for later in set(_later(child, seen[name])) - {child}:
            yield {**children, name: later}


def _later(child: Child, known: Seen) -> Iterator[Child]:
    if known.actions and child.kind == "none":
        yield begun(child)
        yield child.becomes("never", "refused")
    if child.kind == "running":
        yield child.becomes("past")
        yield done(child)
        yield child.becomes("undone", "compensated")
    if child.kind == "past":
        yield done(child)
    if known.revoked:
        yield asked_to_be_undone(child)


def begun(child: Child) -> Child:
    """What comes of asking for it, if nothing is in its way."""
    if child.kind == "never":
        return child.becomes("never", "refused")
    return child.becomes("running") if child.kind == "none" else child


def done(child: Child) -> Child:
    return child.becomes("done past" if child.kind == "past" else "done", "succeeded")


def asked_to_be_undone(child: Child) -> Child:
    """One that was not begun is begun first, so that it cannot begin later."""
    if child.kind in ("past", "done past"):
        return child.becomes(child.kind, "refused")
    if child.kind == "never":
        return child.becomes("never", "compensated")
    return child.becomes("undone", "compensated")


def may_be_said(task: Task, children: Children, happened: i.Input) -> bool:
    """Whether this was ever true of a child, or is what an honest person says of one."""
    match happened:
        case i.ChildEnded() if happened.step in children:
            return happened.outcome in children[happened.step].said
        case i.Settle() if happened.step in children:
            kind = children[happened.step].kind
            if task.status is TaskStatus.FAILED_TO_COMPENSATE:
                return True
            return kind in (_DONE if happened.outcome == "happened" else ("undone", "never"))
        case _:
            return True


def raised(
    task: Task, seen: Witness, children: Children, happened: i.Input, moved: Transition
) -> Children:
    """The children that are meant once this was said and answered by the machine."""
    if not children:
        return children
    found = dict(children)
    by_hand = task.status is TaskStatus.FAILED_TO_COMPENSATE and not moved.refusal
    if isinstance(happened, i.Settle) and happened.step in found and by_hand:
        found[happened.step] = found[happened.step].becomes("undone")
    for action in moved.actions:
        if isinstance(action, StartChild) and action.attempt > seen[action.step].actions:
            another = found[action.step].kind in ALIVE
            found[action.step] = Child("two") if another else UNBORN
    return found


def told_of(children: Children, action: StartChild | UndoChild) -> tuple[Children, News | None]:
    """What carrying out an action at once leads to, and what is said of that."""
    child = children[action.step]
    after = begun(child) if isinstance(action, StartChild) else asked_to_be_undone(child)
    said: News | None = None
    if isinstance(action, UndoChild):
        said = "refused" if after.kind in ("past", "done past") else "compensated"
    elif after.kind == "never":
        said = "refused"
    return {**children, action.step: after}, said


def wrongly_ended(taken: Taken, children: Children) -> Iterator[str]:
    """Law: what a task claims of its children at its end is so."""
    for name, child in children.items():
        step, status = taken.definition.steps[name], taken.after.status
        if child.kind == "two":
            yield f"a second child of {name!r} was begun though the first may have an effect"
        skipped = taken.seen[name].skipped
        if status is TaskStatus.SUCCEEDED and child.kind not in _DONE and not skipped:
            yield f"it succeeded, but the child of {name!r} is {child.kind}"
        has_effect = child.kind in (_DONE if step.pivot else ALIVE)
        if status is TaskStatus.COMPENSATED and has_effect and not taken.after.incident:
            yield f"it is compensated, but the child of {name!r} is {child.kind}"
