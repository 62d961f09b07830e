"""What the machine asks about a task's input and output: conditions and acceptance.

Conditions are written in the Common Expression Language and see `input` (the task's) and `results`
(by step). Pure: the answers depend on nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson
from headway.agents.codec import is_sealed, is_sealed_body
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal
from headway.coordinator.expressions import cel
from headway.coordinator.schemas import compiled, misfit
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.circumstances import Bounds
from headway.sagas.definition import Definition
from headway.sagas.task import Failure

CONDITION_ERROR = "ConditionError"
COMPILED_MAX = 1_024  # conditions and acceptance schemas that are kept


class TaskChecks:
    """Answers for one task."""

    def __init__(self, task_input: bytes, manifest: Manifest | None) -> None:
        self._input = task_input
        self._manifest = manifest

    def when(self, expression: str, results: Mapping[str, Any], /) -> bool | Failure:
        variables = {"input": orjson.loads(self._input), "results": dict(results)}
        try:
            verdict = _condition(expression).execute(cel.Context(variables=variables))
        except KeyError as error:
            return Failure(CONDITION_ERROR, f"when: {error} is not there; ask with has() before")
        except Exception as error:  # whatever the library raises: nobody can tell
            return Failure(CONDITION_ERROR, f"when: {type(error).__name__}: {error}")
        if not isinstance(verdict, bool):
            given = type(verdict).__name__
            return Failure(CONDITION_ERROR, f"when: gives {given}, not true or false")
        return verdict

    def rejected(self, output: Any, /) -> str:
        if self._manifest is None or self._manifest.acceptance is None:
            return ""
        schema = orjson.dumps(self._manifest.acceptance, option=orjson.OPT_SORT_KEYS)
        return misfit(_acceptance(schema), output, "output")


def checks_of(definition: Definition, task_input: bytes, manifest: Manifest | None) -> Checks:
    """The checks of one task."""
    if manifest is None and not definition.conditional:
        return UNCHECKED
    return TaskChecks(task_input, manifest)


def bounds_of(manifest: Manifest | None) -> Bounds | None:
    """What the machine is to know of a manifest."""
    if manifest is None:
        return None
    return Bounds(
        manifest.deadline_ms,
        manifest.max_steps or 0,
        None if manifest.agents is None else tuple(manifest.agents),
        manifest.on_rejection,
    )


def check_conditions(definition: Definition) -> None:
    """Refusal (422) if a step's condition cannot be read."""
    for step in definition.steps.values():
        if not step.when:
            continue
        try:
            _condition(step.when)
        except Exception as error:
            said = str(error).partition("\n")[0]
            raise Refusal(f"step {step.name!r}: when: {said}", 422) from error


def check_legible(definition: Definition, manifest: Manifest | None) -> None:
    """Refusal (422) if a saga whose task has an encrypted input asks for more than can be told
    without reading it."""
    why = ""
    if definition.input_schema is not None:
        why = "its input schema"
    elif definition.conditional:
        why = "a step's `when`"
    elif any(step.kind == "child" for step in definition.steps.values()):
        why = "a child's input"
    elif manifest is not None and manifest.acceptance is not None:
        why = "the manifest's acceptance"
    if why:
        raise Refusal(
            f"the input is encrypted, but for {why} coordinators must read the payloads of saga "
            f"{definition.name!r}: submit it in clear, or do without that",
            422,
        )


def check_sealed(task_input: bytes, value: Any, name: str) -> None:
    """Refusal (422) if a payload would be the only one of its task in clear, or the reverse."""
    encrypted = is_sealed_body(task_input)
    if value is not None and encrypted != is_sealed(value):
        stands = "encrypted" if encrypted else "not encrypted"
        raise Refusal(f"{name}: the task is {stands}, and so must this be", 422)


def check_manifest(definition: Definition, manifest: Manifest) -> None:
    """Refusal (422) if the saga cannot be run within the manifest."""
    if manifest.deadline is not None:
        _check_deadline(manifest.deadline)
    if manifest.agents is not None:
        beyond = sorted(definition.agents() - set(manifest.agents))
        if beyond:
            names = ", ".join(repr(agent) for agent in beyond)
            raise Refusal(f"manifest: saga {definition.name!r} needs agent {names} as well", 422)
    steps = len(definition.steps)
    if manifest.max_steps is not None and steps > manifest.max_steps:
        raise Refusal(
            f"manifest: saga {definition.name!r} has {steps} steps, more than max_steps "
            f"{manifest.max_steps}",
            422,
        )
    if manifest.acceptance is not None:
        compiled(manifest.acceptance, "manifest: acceptance")


@lru_cache(maxsize=COMPILED_MAX)
def _condition(expression: str) -> Any:
    return cel.compile(expression)


@lru_cache(maxsize=COMPILED_MAX)
def _acceptance(schema: bytes) -> Any:
    return compiled(orjson.loads(schema), "acceptance")


def _check_deadline(deadline: datetime) -> None:
    """Refusal if its offset from UTC leads out of the years that there are."""
    try:
        deadline.astimezone(UTC)
    except OverflowError as error:
        raise Refusal("manifest.deadline: in UTC it must be in the years 1 to 9999", 422) from error
