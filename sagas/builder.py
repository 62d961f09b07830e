"""What people write: a saga, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields as fields_of
from typing import Any

from headway.sagas.definition import Definition, define
from headway.sagas.errors import DefinitionError
from headway.sagas.retry import Timeouts
from headway.sagas.step import Default, Step
from pydantic import PydanticUserError, TypeAdapter


class Saga:
    """Builds a definition step by step.

        refund = Saga("refund", version=1, input=RefundRequest)
        refund.step("reserve", "inventory.reserve", compensate="inventory.release")
        refund.approval("agree", after="reserve", timeout=3600, when="input.total > 500")
        refund.step("ship", "warehouse.ship", after="agree", pivot=True)

    `input` is a pydantic model, a dataclass or any type that pydantic can describe, or a JSON
    Schema as a dict; submissions are checked against it. Each method adds a step and returns the
    saga, so that calls can chain; see `Step` for the fields.
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
        """An agent's action, `agent.action`."""
        return self._add(name, after, action=action, compensate=compensate, **policies)

    def approval(
        self,
        name: str,
        *,
        after: str | Sequence[str] = (),
        timeout: float | None = None,
        default: Default = "",
        when: str = "",
    ) -> Saga:
        """A person's word. After `timeout` seconds without it the `default` counts, or it fails."""
        limits = _at_most(name, timeout)
        return self._add(name, after, kind="approval", timeouts=limits, default=default, when=when)

    def wait(
        self,
        name: str,
        *,
        signal: str = "",
        after: str | Sequence[str] = (),
        timeout: float | None = None,
        when: str = "",
    ) -> Saga:
        """A signal, named like the step unless `signal` is given; what it brings is the result."""
        limits = _at_most(name, timeout)
        return self._add(name, after, kind="wait", signal=signal, timeouts=limits, when=when)

    def sleep(
        self, name: str, seconds: float, *, after: str | Sequence[str] = (), when: str = ""
    ) -> Saga:
        """Nothing, for so long."""
        return self._add(
            name, after, kind="sleep", seconds=seconds, timeouts=_at_most(name, None), when=when
        )

    def child(
        self,
        name: str,
        saga: str,
        *,
        version: int | None = None,
        input: Any = None,
        after: str | Sequence[str] = (),
        timeout: float | None = None,
        **policies: Any,
    ) -> Saga:
        """A task of another saga: its output is the result, its failure the step's failure, and
        its compensation the step's compensation."""
        return self._add(
            name,
            after,
            kind="child",
            saga=saga,
            saga_version=version,
            input=input,
            timeouts=_at_most(name, timeout),
            **policies,
        )

    def define(self) -> Definition:
        """Check the saga and freeze it; DefinitionError names the step and the remedy.

        It goes through JSON, so that the digest is the one that others get from the JSON.
        """
        return define(self.name, self.version, tuple(self._steps), self.input_schema)

    def _add(self, name: str, after: str | Sequence[str], **fields: Any) -> Saga:
        where = f"step {name!r} of saga {self.name!r}"
        known = [each.name for each in fields_of(Step)]
        strange = [given for given in fields if given not in known]
        if strange:
            raise DefinitionError(
                f"{where} has no field {strange[0]!r}; the fields are {', '.join(known)}"
            )
        try:
            following = (after,) if isinstance(after, str) else tuple(after)
            self._steps.append(Step(name, after=following, **fields))
        except TypeError as error:
            raise DefinitionError(f"{where}: {error}") from error
        return self


def _at_most(step: str, seconds: float | None) -> Timeouts:
    try:
        return Timeouts(start_to_close=None, schedule_to_close=seconds)
    except DefinitionError as error:
        raise DefinitionError(f"step {step!r}: timeout: {error}") from error


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
