"""What role `view` sees of an answer: digests and sizes in place of payloads. Pure.

Always holds: a value that is masked is gone from the answer; what stands in its place is
`{"sha256": …, "bytes": …}`, over its JSON, or the same in words where a text is wanted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import orjson
from headway.agents.masks import Mask
from pydantic import BaseModel

DIGEST_SHOWN = 12  # hex digits, in words

# Of a history's event, or an audit's entry: fields that are names, numbers, states, people's words.
HARMLESS = frozenset(
    {
        *("step", "phase", "attempt", "epoch", "command_epoch", "delivery", "worker", "fenced"),
        *("no_effect", "status", "retry_at", "timeout", "by", "stopping", "closing", "empty"),
        *(
            "incident",
            "again",
            "name",
            "id",
            "kind",
            "origin",
            "target",
            "child",
            "waiting",
            "trail",
        ),
        *("bounds", "key", "seq", "tool", "arguments_digest", "datadigest", "size", "usage"),
        "provider",
        *("took_ms", "sensitive", "model", "outcome", "public_key", "role", "rate", "burst"),
        *("concurrency", "scope", "agent", "version", "invocation", "task", "at", "sequence"),
        *("subject", "fate", "forked_from", "traceparent", "overlap_s"),
    }
)
_STEPS_OWN = frozenset({"name", "action", "compensate", "after", "kind", "pivot", "read_only"})

# "step 'charge': CardDeclined: what the agent said", perhaps several after each other. A kind that
# is not one word cannot be told from what was said. What we say of a step ourselves is no payload.
_OURS = (
    r"(?:its (?:action|compensation) succeeded after all"
    r"|the command was taken over \d+ times without an answer; a person must look at its agent)"
    r"\Z"
)
_SAID = re.compile(rf"(?P<who>step '[^']*': (?!{_OURS})(?:[^\s:]+: )?)(?P<said>.+)", re.S)

B = TypeVar("B", bound=BaseModel)


def masked(answer: B) -> B:
    """The answer without payloads."""
    changed: dict[str, Any] = {}
    for name, field in type(answer).model_fields.items():
        value = getattr(answer, name)
        if value is None or value == "":
            continue
        mark = next((each for each in field.metadata if isinstance(each, Mask)), None)
        shown = _within(value) if mark is None else _MASKS[mark.kind](value)
        if shown is not value:
            changed[name] = shown
    return answer.model_copy(update=changed) if changed else answer


def _within(value: Any) -> Any:
    """A value that is no payload, with those that are in it masked."""
    if isinstance(value, BaseModel):
        return masked(value)
    if isinstance(value, list) and any(isinstance(each, BaseModel) for each in value):
        return [_within(each) for each in value]
    return value


def digest_and_size(value: Any) -> dict[str, Any]:
    """What stands in the place of a value."""
    body = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}


def text_masked(text: str) -> str:
    """What stands in the place of a text."""
    body = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(body).hexdigest()[:DIGEST_SHOWN]
    return f"({len(body)} bytes, SHA-256 {digest}…)"


def reason_masked(reason: str) -> str:
    """A reason without what an agent said."""
    return _SAID.sub(lambda found: found["who"] + text_masked(found["said"]), reason)


def data_masked(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an event: what is not known to be harmless is masked."""
    return {name: _field(name, value) for name, value in data.items()}


def _field(name: str, value: Any) -> Any:
    if value is None or name in HARMLESS:
        return value
    match name, value:
        case "reason", str():
            return reason_masked(value)
        case "error", {"type": kind, "message": str(message)}:
            return {"type": kind, "message": text_masked(message)}
        case "steps", [*steps]:
            return [_step(step) for step in steps]
    return digest_and_size(value)


def _step(step: Any) -> Any:
    """A step's name, or a step that was handed off to."""
    if not isinstance(step, dict):
        return step
    return {
        name: step[name] if name in _STEPS_OWN else digest_and_size(step[name]) for name in step
    }


_MASKS: Mapping[str, Callable[[Any], Any]] = {
    "value": digest_and_size,
    "text": text_masked,
    "reason": reason_masked,
    "data": data_masked,
}
