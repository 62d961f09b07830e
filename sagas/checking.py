"""What a saga must keep to, so that it can run and be undone; each complaint names the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headway.sagas.errors import DefinitionError
from headway.sagas.retry import DURATION_MAX_S
from headway.sagas.step import Step

STEPS_MAX = 256
WHEN_MAX_CHARS = 4_000

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ACTION = re.compile(r"[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{1,64}")

# Fields that only steps of some kinds have.
_FIELDS_OF_KIND: dict[str, tuple[str, ...]] = {
    "action": ("action",),
    "compensate": ("action",),
    "signal": ("wait",),
    "seconds": ("sleep",),
    "saga": ("child",),
    "saga_version": ("child",),
    "default": ("approval",),
    "input": ("action", "child"),
    "pivot": ("action", "child"),
    "read_only": ("action", "child"),
}

_LIMITS_OF_ATTEMPTS = ("schedule_to_start", "heartbeat")  # that only agents' steps have


def check_names(saga: str, version: int, steps: Sequence[Step]) -> None:
    """Names, numbers and references; DefinitionError names the step and the remedy."""
    where = f"saga {saga!r}"
    if _NAME.fullmatch(saga) is None:
        raise DefinitionError(f"{where}: a name has 1 to 64 of A-Z a-z 0-9 _ and -")
    if not 1 <= version < 2**31:
        raise DefinitionError(f"{where}: version must be a positive 32-bit number")
    if not 1 <= len(steps) <= STEPS_MAX:
        raise DefinitionError(f"{where}: a saga has 1 to {STEPS_MAX} steps, not {len(steps)}")
    seen: set[str] = set()
    for step in steps:
        if _NAME.fullmatch(step.name) is None:
            raise DefinitionError(
                f"{where}: step {step.name!r}: a name has 1 to 64 of A-Z a-z 0-9 _ and -"
            )
        if step.name in seen:
            raise DefinitionError(f"{where}: two steps are named {step.name!r}; rename one")
        seen.add(step.name)
        for complaint in _complaints(step):
            raise DefinitionError(f"{where}: step {step.name!r}: {complaint}")
    for step in steps:
        for before in step.after:
            if before not in seen:
                raise DefinitionError(
                    f"{where}: step {step.name!r} comes after {before!r}, which is not a step; "
                    f"the steps are {', '.join(sorted(seen))}"
                )


def _complaints(step: Step) -> Iterator[str]:
    blank = Step(step.name)
    for name, kinds in _FIELDS_OF_KIND.items():
        if step.kind not in kinds and getattr(step, name) != getattr(blank, name):
            yield f"{name!r} is not for a step of kind {step.kind!r}; drop it"
    for name in _LIMITS_OF_ATTEMPTS if step.kind != "action" else ():
        if getattr(step.timeouts, name) is not None:
            yield f"{name!r} is no limit of a step of kind {step.kind!r}; drop it"
    if len(step.when) > WHEN_MAX_CHARS:
        yield f"when: at most {WHEN_MAX_CHARS} characters are taken"
    if step.when and step.pivot:
        yield "the point of no return cannot depend on a condition; put `when` on a step before it"
    if step.kind == "action":
        yield from _action_complaints(step)
    elif step.kind == "wait" and _NAME.fullmatch(step.waits_for) is None:
        yield f"signal {step.signal!r}: a name has 1 to 64 of A-Z a-z 0-9 _ and -"
    elif step.kind == "sleep":
        if not 0 < step.seconds <= DURATION_MAX_S:
            yield f"seconds must be more than 0 and at most {DURATION_MAX_S:.0f}"
        if step.timeouts.schedule_to_close is not None:
            yield "a sleep ends by itself; drop schedule_to_close"
    elif step.kind == "child":
        if _NAME.fullmatch(step.saga) is None:
            yield f"saga {step.saga!r}: name the saga that the child runs"
        if step.saga_version is not None and not 1 <= step.saga_version < 2**31:
            yield "saga_version must be a positive 32-bit number"
    elif step.default and step.timeouts.schedule_to_close is None:
        yield f"default={step.default!r} needs a schedule_to_close: without one it never comes up"


def _action_complaints(step: Step) -> Iterator[str]:
    for action in (step.action, step.compensate):
        if action is not None and _ACTION.fullmatch(action) is None:
            yield f"{action!r} must be 'agent.action'"
    if step.compensate == step.action:
        yield f"{step.action!r} cannot compensate itself; give the compensation a name of its own"


def topological(saga: str, steps: Sequence[Step]) -> list[str]:
    """Step names so that each follows all it comes after; otherwise in the order written."""
    done: dict[str, None] = {}
    left = list(steps)
    while left:
        ready = [step for step in left if all(before in done for before in step.after)]
        if not ready:
            names = ", ".join(step.name for step in left)
            raise DefinitionError(
                f"saga {saga!r}: steps {names} wait for each other; remove one `after` of the cycle"
            )
        done.update(dict.fromkeys(step.name for step in ready))
        left = [step for step in left if step.name not in done]
    return list(done)


def pivot_of(saga: str, steps: Sequence[Step]) -> str | None:
    """The saga's point of no return, if it has one; DefinitionError if it has several."""
    pivots = [step.name for step in steps if step.pivot]
    if len(pivots) > 1:
        raise DefinitionError(
            f"saga {saga!r} has {len(pivots)} pivots ({', '.join(pivots)}); keep one: "
            "after it, steps are retried until they succeed"
        )
    return pivots[0] if pivots else None


def check_recoverable(
    saga: str, steps: Sequence[Step], pivot: str | None, ancestors: dict[str, frozenset[str]]
) -> None:
    """Whether what is done before the pivot can be undone, and what comes after it need not be."""
    for step in steps:
        where = f"saga {saga!r}: step {step.name!r}"
        if step.read_only and (step.compensate or step.pivot):
            raise DefinitionError(
                f"{where} is read_only, so it can be neither compensated nor the pivot; "
                "drop one of the two"
            )
        at_pivot = step.name == pivot
        before_pivot = not at_pivot and (pivot is None or pivot not in ancestors[step.name])
        if not before_pivot and step.compensate:
            raise DefinitionError(
                f"{where} is not before the pivot {pivot!r}, so it is never compensated; "
                "drop its `compensate` or move the pivot behind it"
            )
        if before_pivot and pivot is not None and step.name not in ancestors[pivot]:
            raise DefinitionError(
                f"{where} runs beside the pivot {pivot!r}; "
                "put one after the other, so that it is clear which is undone"
            )
        if before_pivot and not step.undoable and not step.without_effect:
            raise DefinitionError(
                f"{where} has no compensation; add compensate='agent.action', "
                "mark it read_only=True, or make it the pivot"
            )
