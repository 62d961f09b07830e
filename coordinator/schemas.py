"""Values checked against a JSON Schema, such as inputs against that of their saga; the complaint
names the field."""

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
        complaint = misfit(validator, orjson.loads(task_input), "input")
        if complaint:
            raise Refusal(f"the input does not fit the saga: {complaint}", 422)

    def compile(self, definition: Definition) -> None:
        """Refusal (422) if the saga's schema is not one."""
        if definition.input_schema is not None:
            self._compile(definition)

    def _compile(self, definition: Definition) -> Any:
        assert definition.input_schema is not None
        validator = compiled(definition.input_schema, "input_schema")
        if len(self._validators) >= _VALIDATORS_MAX:
            self._validators.clear()
        self._validators[definition.digest] = validator
        return validator


def compiled(schema: Any, name: str) -> Any:
    """The validator of a JSON Schema; Refusal (422), which calls it `name`, if it is not one."""
    try:
        return jsonschema_rs.validator_for(schema, retriever=_refuse_remote, mask="the value")
    except ValueError as error:
        complaint = str(error).partition("\n")[0]
        raise Refusal(f"{name} is not a JSON Schema: {complaint}", 422) from error


def misfit(validator: Any, value: Any, whole: str) -> str:
    """Where and how a value does not fit, without the value; "" if it does. `whole` is what the
    value is called where no field of it can be named."""
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        place = ".".join(str(part) for part in error.instance_path) or whole
        return f"{place}: {error.message}"
    return ""


def _refuse_remote(uri: str) -> Any:
    raise ValueError(f"remote references are not followed: {uri}")
