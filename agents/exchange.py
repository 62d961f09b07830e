"""What goes into a tool and what comes out of it, as JSON, checked by the tool's own types.

Always holds: a caller gets a result as it was read back from its JSON, so it is of the same types
whether the tool ran just now or in a process that is gone.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from headway.agents import plainjson
from headway.agents.entries import Usage
from headway.agents.errors import HeadwayError, InvalidInput
from headway.agents.gates import arguments_digest
from headway.agents.manifest import COST_MAX_USD, TOKENS_MAX
from headway.agents.messages import describe
from headway.agents.signatures import ANYTHING
from headway.agents.tools import Call, Metered, Tool
from pydantic import ValidationError
from pydantic_core import to_json


class InvalidValue(HeadwayError):
    """A result or a state that cannot be written as JSON, or is not what is declared."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one call: as Python has them, and by name as JSON."""

    bound: inspect.BoundArguments
    named: dict[str, Any]
    digest: str


def arguments_of(tool: Tool, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    """Those of `ctx.call(tool, *args, **kwargs)`; InvalidInput names the one that does not fit.

    Parameters that are left out are the tool's own matter, and no part of the call.
    """
    try:
        bound = tool.signature.parameters.bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidInput(f"tool {tool.name!r}: {error}") from error
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        try:
            named[name] = _plain(tool, name, value)
        except Exception as error:
            raise InvalidInput(
                f"tool {tool.name!r}: argument {name!r} cannot be written as JSON of its type: "
                f"{type(error).__name__}: {error}"
            ) from error
    return Arguments(bound, named, arguments_digest((), named))


def arguments_again(tool: Tool, named: Mapping[str, Any]) -> Arguments:
    """The arguments of a journaled call; InvalidInput if they do not fit the tool any more."""
    parameters = tool.signature.parameters
    bound = inspect.BoundArguments(parameters, OrderedDict())
    for name in parameters.parameters:
        if name in named:
            bound.arguments[name] = _typed(tool, name, named[name])
    strangers = named.keys() - bound.arguments.keys()
    if strangers:
        raise InvalidInput(f"tool {tool.name!r} takes no {', '.join(sorted(strangers))} any more")
    return Arguments(bound, dict(named), arguments_digest((), dict(named)))


def run(tool: Tool, call: Call, arguments: Arguments) -> Any:
    """Call the tool's function: its result, or what is to be awaited for it."""
    first = (call,) if tool.signature.takes_call else ()
    return tool.function(*first, *arguments.bound.args, **arguments.bound.kwargs)


def ask(tool: Tool, call: Call, arguments: Arguments) -> Any:
    """Call the tool's check: its answer, or what is to be awaited for it."""
    assert tool.check is not None
    return tool.check(call, *arguments.bound.args, **arguments.bound.kwargs)


def encode_result(tool: Tool, returned: Any) -> bytes:
    """A tool's result as JSON, keys sorted; raises InvalidValue."""
    value = returned.value if isinstance(returned, Metered) else returned
    try:
        plain = tool.signature.gives.dump_python(value, mode="json", warnings="error")
        return _canonical(plain, value)
    except Exception as error:
        raise InvalidValue(
            f"tool {tool.name!r} returned something that cannot be kept as JSON: "
            f"{type(error).__name__}: {error}"
        ) from error


def usage_of(tool: Tool, returned: Any) -> Usage | None:
    """What a tool says that it used, None if it says nothing; raises InvalidValue."""
    if not isinstance(returned, Metered):
        return None
    try:
        usage = Usage(
            input_tokens=returned.input_tokens,
            output_tokens=returned.output_tokens,
            cost_usd=returned.cost_usd,
            provider=returned.provider,
            model=returned.model,
        )
    except ValidationError as error:
        raise InvalidValue(f"what tool {tool.name!r} used: {describe(error)}") from error
    if usage.tokens > TOKENS_MAX or usage.cost_usd > COST_MAX_USD:
        raise InvalidValue(
            f"what tool {tool.name!r} used: at most {TOKENS_MAX} tokens and {COST_MAX_USD:.0f} US "
            "dollars are taken for one call"
        )
    return usage


def decode_result(tool: Tool, body: bytes) -> Any:
    """What the caller gets; InvalidInput if it is not of the tool's type (any more)."""
    try:
        return tool.signature.gives.validate_json(body)
    except ValidationError as error:
        raise InvalidInput(f"the result of tool {tool.name!r}: {describe(error)}") from error


def shortened(tool: Tool, body: bytes, reference: str) -> bytes:
    """The result as far as its caller is to see it, within the tool's limit; raises InvalidValue.

    A text ends with a line that says how much there is and where the whole is kept.
    """
    limit = tool.result_limit
    assert limit is not None
    value = decode_result(tool, body)
    if tool.truncate is not None:
        short = encode_result(tool, tool.truncate(value))
    else:
        end = f"\n[shortened: {len(body)} bytes in all, kept as {reference}]"
        room = max(0, limit - len(to_json(end)))
        beginning = value.encode()[:room].decode(errors="ignore")
        while beginning and len(to_json(beginning)) - 2 > room:  # escapes take more than they show
            beginning = beginning[: len(beginning) * room // (len(to_json(beginning)) - 2)]
        short = encode_result(tool, beginning + end)
    if tool.truncate is not None and len(short) > limit:
        raise InvalidValue(
            f"tool {tool.name!r}: truncate left {len(short)} bytes, more than its "
            f"result_limit of {limit}"
        )
    return short


def encode_state(state: Any) -> bytes:
    """An agent's state as JSON, keys sorted; raises InvalidValue."""
    try:
        return _canonical(ANYTHING.dump_python(state, mode="json", warnings="error"), state)
    except Exception as error:
        raise InvalidValue(
            f"the state cannot be kept as JSON: {type(error).__name__}: {error}"
        ) from error


def canonical(value: Any) -> bytes:
    """A value of JSON's types, keys sorted: the same bytes in every process."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def digest_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _canonical(plain: Any, made_of: Any) -> bytes:
    plainjson.encode(plain, made_of=made_of)
    return canonical(plain)


def _plain(tool: Tool, name: str, value: Any) -> Any:
    """An argument as JSON's types; of `*names` and `**names`, each one."""
    adapter = tool.signature.takes.get(name, ANYTHING)
    if _has_set(adapter.dump_python(value, warnings=False)):
        raise TypeError("a set has no order that is the same in every process; give a sorted list")
    match tool.signature.parameters.parameters[name].kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return [adapter.dump_python(each, mode="json", warnings="error") for each in value]
        case inspect.Parameter.VAR_KEYWORD:
            return {
                key: adapter.dump_python(each, mode="json", warnings="error")
                for key, each in value.items()
            }
    return adapter.dump_python(value, mode="json", warnings="error")


def _typed(tool: Tool, name: str, value: Any) -> Any:
    """The reverse of `_plain`."""
    adapter = tool.signature.takes.get(name, ANYTHING)
    try:
        match tool.signature.parameters.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                return tuple(adapter.validate_json(to_json(each)) for each in value)
            case inspect.Parameter.VAR_KEYWORD:
                return {key: adapter.validate_json(to_json(each)) for key, each in value.items()}
        return adapter.validate_json(to_json(value))
    except ValidationError as error:
        raise InvalidInput(
            f"tool {tool.name!r}: argument {name!r} does not fit any more: {describe(error)}"
        ) from error


def _has_set(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_set(each) for each in value.values())
    if isinstance(value, list | tuple):
        return any(_has_set(each) for each in value)
    return isinstance(value, set | frozenset)
