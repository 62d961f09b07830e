"""Sagas as data: steps, their order, compensations and policies.

A `Definition` is checked and frozen. It has a canonical JSON form and a digest over it, so that a
coordinator needs no user code and the same version cannot quietly mean two things. A running task
may append steps to its own plan (`extended`); name, version and digest stay the saga's.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import orjson
from headway.sagas.checking import check_names, check_recoverable, pivot_of, topological
from headway.sagas.errors import DefinitionError
from headway.sagas.retry import STRANGERS_REFUSED
from headway.sagas.step import Step
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

DEFINITION_MAX_BYTES = 524_288


@dataclass(frozen=True, slots=True)
class _Body:
    """The JSON form of a definition."""

    name: str
    version: int
    steps: tuple[Step, ...]
    input_schema: dict[str, Any] | None = None
    format: int = 1

    __pydantic_config__ = STRANGERS_REFUSED


@dataclass(frozen=True, slots=True)
class Definition:
    """A checked saga. Made by `Saga.define()`, `Definition.from_json()` and `extended` only.

    `steps` are in a topological order. `ancestors` and `descendants` hold, for each step, all
    steps that come before and after it along the edges, nearest or not. `last` are the steps that
    nothing comes after; their results are the task's output.
    """

    name: str
    version: int
    steps: dict[str, Step]
    input_schema: dict[str, Any] | None
    ancestors: dict[str, frozenset[str]] = field(compare=False)
    descendants: dict[str, frozenset[str]] = field(compare=False)
    pivot: str | None = field(compare=False)
    conditional: bool = field(compare=False)  # some step has a condition
    approvable: bool = field(compare=False)  # some step is an approval
    digest: str = field(default="", compare=False)
    body: bytes = field(default=b"", compare=False, repr=False)

    def to_json(self) -> bytes:
        """The canonical JSON: the same definition always gives the same bytes."""
        return self.body

    @staticmethod
    def from_json(body: bytes | str) -> Definition:
        """Parse and check; DefinitionError says what is wrong and how to mend it."""
        if len(body) > DEFINITION_MAX_BYTES:
            raise DefinitionError(f"a definition may have at most {DEFINITION_MAX_BYTES} bytes")
        try:
            parsed = _BODY.validate_json(body)
        except ValidationError as error:
            raise DefinitionError(f"not a saga definition: {_first(error, body)}") from error
        if parsed.format != 1:
            raise DefinitionError(
                f"saga {parsed.name!r}: format {parsed.format} is not known here; it must be 1"
            )
        laid_out = _laid_out(parsed.name, parsed.version, parsed.steps, parsed.input_schema)
        encoded = _encode(replace(parsed, steps=tuple(laid_out.steps.values())))
        return replace(laid_out, digest=hashlib.sha256(encoded).hexdigest(), body=encoded)

    @property
    def last(self) -> tuple[str, ...]:
        return tuple(name for name, after in self.descendants.items() if not after)

    def is_after_pivot(self, step: str) -> bool:
        return self.pivot is not None and self.pivot in self.ancestors[step]

    def agents(self) -> frozenset[str]:
        """Every agent that an action or a compensation of this saga is for."""
        named = [step.action for step in self.steps.values() if step.action]
        named += [step.compensate for step in self.steps.values() if step.compensate]
        return frozenset(action.partition(".")[0] for action in named)

    def with_steps(self, steps: tuple[Step, ...]) -> Definition:
        """The same saga with other steps; DefinitionError if it could not be run."""
        laid_out = _laid_out(self.name, self.version, steps, self.input_schema)
        return replace(laid_out, digest=self.digest, body=self.body)


def define(
    name: str, version: int, steps: tuple[Step, ...], input_schema: dict[str, Any] | None
) -> Definition:
    """Check and freeze a saga; DefinitionError names the step and the remedy."""
    return Definition.from_json(_encode(_Body(name, version, steps, input_schema)))


_BODY = TypeAdapter(_Body)
_LATER = ("kind", "when", "input", "signal", "seconds", "saga", "saga_version", "default")


def _encode(body: _Body) -> bytes:
    try:
        steps = [_fields(step) for step in body.steps]
        return orjson.dumps({**asdict(body), "steps": steps}, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise DefinitionError(f"saga {body.name!r} cannot be written as JSON: {error}") from error


def _fields(step: Step) -> dict[str, Any]:
    """A step's fields; later ones are left out at their default, so that old digests stay."""
    return {
        each.name: getattr(step, each.name)
        for each in fields(step)
        if each.name not in _LATER or getattr(step, each.name) != each.default
    }


def _first(error: ValidationError, body: bytes | str) -> str:
    """The first complaint, with the step's name instead of its number."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = list(first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if where[:1] == ["steps"] and len(where) > 1 and isinstance(where[1], int):
        step = from_json(body)["steps"][where[1]]
        if isinstance(step, dict) and "name" in step:
            where[:2] = [f"step {step['name']!r}"]
    return f"{'.'.join(str(part) for part in where) or 'body'}: {message}"


def _laid_out(
    name: str, version: int, given: tuple[Step, ...], input_schema: dict[str, Any] | None
) -> Definition:
    """Checked and in order; without digest and body."""
    check_names(name, version, given)
    by_name = {step.name: step for step in given}
    steps = {each: by_name[each] for each in topological(name, given)}
    ancestors = _ancestors(steps)
    descendants = {
        each: frozenset(other for other in steps if each in ancestors[other]) for each in steps
    }
    pivot = pivot_of(name, given)
    check_recoverable(name, given, pivot, ancestors)
    conditional = any(step.when for step in given)
    approvable = any(step.kind == "approval" for step in given)
    return Definition(
        name,
        version,
        steps,
        input_schema,
        ancestors,
        descendants,
        pivot,
        conditional,
        approvable,
    )


def _ancestors(steps: dict[str, Step]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for name, step in steps.items():
        found[name] = frozenset(step.after).union(*(found[before] for before in step.after))
    return found
