"""Inputs checked against the JSON Schema of their saga; the complaint names the field."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import orjson
from headway.coordinator.errors import Refusal
from headway.sagas.definition import Definition

_VALIDATORS_MAX = 1_024  # compiled schemas that are kept


class InputCheck:
    """Compiles a saga's schema once, and checks inputs with it."""

    def __init__(self) -> None:
        self._validators: dict[str, Any] = {}

    def check(self, definition: Definition, task_input: bytes) -> None:
        """Refusal (422) if the input does not fit the saga's schema."""
        if definition.input_schema is None:
            return
        validator = self._validators.get(definition.digest)
        if validator is None:
            validator = self._compile(definition)
        try:
            validator.validate(orjson.loads(task_input))
        except jsonschema_rs.ValidationError as error:
            place = ".".join(str(part) for part in error.instance_path) or "input"
            raise Refusal(
                f"the input does not fit the saga: {place}: {error.message}", 422
            ) from None

    def compile(self, definition: Definition) -> None:
        """Refusal (422) if the saga's schema is not one."""
        if definition.input_schema is not None:
            self._compile(definition)

    def _compile(self, definition: Definition) -> Any:
        assert definition.input_schema is not None
        try:
            validator = jsonschema_rs.validator_for(
                definition.input_schema, retriever=_refuse_remote, mask="the value"
            )
        except ValueError as error:
            complaint = str(error).partition("\n")[0]
            raise Refusal(f"input_schema is not a JSON Schema: {complaint}", 422) from error
        if len(self._validators) >= _VALIDATORS_MAX:
            self._validators.clear()
        self._validators[definition.digest] = validator
        return validator


def _refuse_remote(uri: str) -> Any:
    raise ValueError(f"remote references are not followed: {uri}")
