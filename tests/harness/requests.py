"""Requests made from what an operation's model says: one that fits, and some with other texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

TASK = "01a228d3-8b1d-728f-a4a8-c99741d7b99b"


def sample(model: type[BaseModel]) -> dict[str, Any]:
    """A request with every field given; whatever it asks for, it is well formed."""
    schema = model.model_json_schema()
    made = _value(schema, schema.get("$defs", {}), 0)
    assert isinstance(made, dict)
    return made


def with_text(value: Any, text: str) -> Iterator[Any]:
    """`value` again and again, with `text` in the place of one of the texts in it each time; in
    that of names of members, too, where those are free."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, list):
        for place, each in enumerate(value):
            for changed in with_text(each, text):
                yield [*value[:place], changed, *value[place + 1 :]]
    elif isinstance(value, dict):
        for key, each in value.items():
            for changed in with_text(each, text):
                yield {**value, key: changed}
            if key == "free":
                yield {**value, text: each}


def _value(schema: dict[str, Any], defs: dict[str, Any], depth: int) -> Any:
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rpartition("/")[2]], defs, depth)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            options = [each for each in schema[choice] if each.get("type") != "null"]
            return _value(options[0], defs, depth) if options else None
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            named = {
                key: _value(each, defs, depth + 1)
                for key, each in schema.get("properties", {}).items()
            }
            more = schema.get("additionalProperties")
            free = {"free": _value(more, defs, depth + 1)} if isinstance(more, dict) else {}
            return named | free
        case "array":
            return [_value(schema.get("items", {}), defs, depth + 1)] if depth < 6 else []
        case "string":
            formats = {"uuid": TASK, "date-time": "2026-01-01T00:00:00Z"}
            return formats.get(schema.get("format", ""), "x")
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return False
    return "anything"
