"""Sagas as data: steps, their order, compensations and policies.

`Saga` is what people write; `Saga.define()` checks it and gives the frozen `Definition` that
the machine runs. A definition has a canonical JSON form and a digest over it, so that a
coordinator needs no user code and the same version cannot quietly mean two things.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from headway.sagas.errors import DefinitionError
from headway.sagas.retry import STRANGERS_REFUSED, Retry, Timeouts
from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import from_json

STEPS_MAX = 256
DEFINITION_MAX_BYTES = 524_288

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ACTION = re.compile(r"[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_-]{1,64}")

COMPENSATION_RETRY = Retry(maximum_attempts=20)


@dataclass(frozen=True, slots=True)
class Step:
    """A node of a saga: an agent's action, named `agent.action`.

    Attributes:
        name: unique within the saga.
        action: the agent and its action.
        compensate: the agent's compensation that undoes the action, if there is one.
        after: the steps that must have completed before.
        pivot: the point of no return: what comes before is compensated when something fails,
            what comes after is only retried.
        read_only: the action changes nothing, so there is nothing to compensate.
        retry, compensation_retry: policies of the action and of its compensation.
        timeouts: limits of each attempt, and of the whole.
    """

    name: str
    action: str
    compensate: str | None = None
    after: tuple[str, ...] = ()
    pivot: bool = False
    read_only: bool = False
    retry: Retry = Retry()
    compensation_retry: Retry = COMPENSATION_RETRY
    timeouts: Timeouts = Timeouts()

    __pydantic_config__ = STRANGERS_REFUSED

    @property
    def agent(self) -> str:
        return self.action.partition(".")[0]


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
    """A checked saga. Made by `Saga.define()` or `Definition.from_json()` only.

    `steps` are in a topological order. `ancestors` and `descendants` hold, for each step, all
    steps that come before and after it along the edges, nearest or not.
    """

    name: str
    version: int
    steps: dict[str, Step]
    input_schema: dict[str, Any] | None
    ancestors: dict[str, frozenset[str]] = field(compare=False)
    descendants: dict[str, frozenset[str]] = field(compare=False)
    pivot: str | None = field(compare=False)
    digest: str = field(compare=False)
    body: bytes = field(compare=False, repr=False)

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
        return _define(parsed)

    def is_after_pivot(self, step: str) -> bool:
        return self.pivot is not None and self.pivot in self.ancestors[step]

    def agents(self) -> frozenset[str]:
        """Every agent that an action or a compensation of this saga is for."""
        named = [step.action for step in self.steps.values()]
        named += [step.compensate for step in self.steps.values() if step.compensate]
        return frozenset(action.partition(".")[0] for action in named)


class Saga:
    """Builds a definition step by step.

        refund = Saga("refund", version=1, input=RefundRequest)
        refund.step("reserve", "inventory.reserve", compensate="inventory.release")
        refund.step("ship", "warehouse.ship", after="reserve", pivot=True)

    `input` is a pydantic model, a dataclass or any type that pydantic can describe, or a JSON
    Schema as a dict; submissions are checked against it.
    """

    def __init__(self, name: str, *, version: int = 1, input: Any = None) -> None:
        self.name = name
        self.version = version
        self.input_schema = _schema_of(name, input)
        self._steps: list[Step] = []

    def step(
        self,
        name: str,
        action: str,
        *,
        compensate: str | None = None,
        after: str | Sequence[str] = (),
        **policies: Any,
    ) -> Saga:
        """Add a step; see `Step` for the fields. Returns the saga, so that calls can chain."""
        try:
            following = (after,) if isinstance(after, str) else tuple(after)
            self._steps.append(Step(name, action, compensate, following, **policies))
        except TypeError as error:
            raise DefinitionError(f"step {name!r} of saga {self.name!r}: {error}") from error
        return self

    def define(self) -> Definition:
        """Check the saga and freeze it; DefinitionError names the step and the remedy.

        It goes through JSON, so that the digest is the one that others get from the JSON.
        """
        body = _Body(self.name, self.version, tuple(self._steps), self.input_schema)
        return Definition.from_json(_encode(body))


_BODY = TypeAdapter(_Body)


def _encode(body: _Body) -> bytes:
    try:
        return orjson.dumps(body, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise DefinitionError(f"saga {body.name!r} cannot be written as JSON: {error}") from error


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


def _schema_of(saga: str, described: Any) -> dict[str, Any] | None:
    if described is None or isinstance(described, dict):
        return described
    try:
        return TypeAdapter(described).json_schema()
    except PydanticUserError as error:
        raise DefinitionError(
            f"saga {saga!r}: input={described!r} has no JSON Schema; "
            "use a pydantic model, a dataclass or a schema as a dict"
        ) from error


def _define(body: _Body) -> Definition:
    _check_names(body)
    order = _topological(body)
    by_name = {step.name: step for step in body.steps}
    steps = {name: by_name[name] for name in order}
    ancestors = _ancestors(steps)
    descendants = {
        name: frozenset(other for other in steps if name in ancestors[other]) for name in steps
    }
    pivot = _pivot(body)
    _check_recoverable(body, pivot, ancestors)
    encoded = _encode(_Body(body.name, body.version, tuple(steps.values()), body.input_schema))
    return Definition(
        body.name,
        body.version,
        steps,
        body.input_schema,
        ancestors,
        descendants,
        pivot,
        hashlib.sha256(encoded).hexdigest(),
        encoded,
    )


def _check_names(body: _Body) -> None:
    saga = f"saga {body.name!r}"
    if _NAME.fullmatch(body.name) is None:
        raise DefinitionError(f"{saga}: a name has 1 to 64 of A-Z a-z 0-9 _ and -")
    if body.format != 1:
        raise DefinitionError(f"{saga}: format {body.format} is not known here; it must be 1")
    if not 1 <= body.version < 2**31:
        raise DefinitionError(f"{saga}: version must be a positive 32-bit number")
    if not 1 <= len(body.steps) <= STEPS_MAX:
        raise DefinitionError(f"{saga}: a saga has 1 to {STEPS_MAX} steps, not {len(body.steps)}")
    seen: set[str] = set()
    for step in body.steps:
        if _NAME.fullmatch(step.name) is None:
            raise DefinitionError(
                f"{saga}: step {step.name!r}: a name has 1 to 64 of A-Z a-z 0-9 _ and -"
            )
        if step.name in seen:
            raise DefinitionError(f"{saga}: two steps are named {step.name!r}; rename one")
        seen.add(step.name)
        for action in (step.action, step.compensate):
            if action is not None and _ACTION.fullmatch(action) is None:
                raise DefinitionError(
                    f"{saga}: step {step.name!r}: {action!r} must be 'agent.action'"
                )
        if step.compensate == step.action:
            raise DefinitionError(
                f"{saga}: step {step.name!r}: {step.action!r} cannot compensate itself; "
                "give the compensation a name of its own"
            )
    for step in body.steps:
        for before in step.after:
            if before not in seen:
                raise DefinitionError(
                    f"{saga}: step {step.name!r} comes after {before!r}, which is not a step; "
                    f"the steps are {', '.join(sorted(seen))}"
                )


def _topological(body: _Body) -> list[str]:
    """Step names so that each follows all it comes after; otherwise in the order written."""
    done: dict[str, None] = {}
    left = list(body.steps)
    while left:
        ready = [step for step in left if all(before in done for before in step.after)]
        if not ready:
            names = ", ".join(step.name for step in left)
            raise DefinitionError(
                f"saga {body.name!r}: steps {names} wait for each other; "
                "remove one `after` of the cycle"
            )
        done.update(dict.fromkeys(step.name for step in ready))
        left = [step for step in left if step.name not in done]
    return list(done)


def _ancestors(steps: dict[str, Step]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for name, step in steps.items():
        found[name] = frozenset(step.after).union(*(found[before] for before in step.after))
    return found


def _pivot(body: _Body) -> str | None:
    pivots = [step.name for step in body.steps if step.pivot]
    if len(pivots) > 1:
        raise DefinitionError(
            f"saga {body.name!r} has {len(pivots)} pivots ({', '.join(pivots)}); keep one: "
            "after it, steps are retried until they succeed"
        )
    return pivots[0] if pivots else None


def _check_recoverable(
    body: _Body, pivot: str | None, ancestors: dict[str, frozenset[str]]
) -> None:
    for step in body.steps:
        where = f"saga {body.name!r}: step {step.name!r}"
        if step.read_only and (step.compensate or step.pivot):
            raise DefinitionError(
                f"{where} is read_only, so it can be neither compensated nor the pivot; "
                "drop one of the two"
            )
        if step.name == pivot or (pivot is not None and pivot in ancestors[step.name]):
            before_pivot = False
        else:
            before_pivot = True
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
        if before_pivot and not step.compensate and not step.read_only:
            raise DefinitionError(
                f"{where} has no compensation; add compensate='agent.action', "
                "mark it read_only=True, or make it the pivot"
            )
