"""Tools: plain functions that say how a call is taken up again when nobody knows how it ended.

    @tool(recovery="natural")                      # running it again does no harm
    async def lookup_order(order: str) -> Order: ...

    @tool(recovery="dedupe_key", sensitive=True)   # it hands on `call.id`; who gets it dedupes
    async def pay(call: Call, amount: int) -> Receipt: ...

    @tool(recovery="check", check=was_mailed)      # `was_mailed(call, …)` says if it happened
    async def mail(to: str, text: str) -> None: ...

    @tool(recovery="manual")                       # a person says
    def open_valve(number: int) -> None: ...

The decorator returns the function unchanged, so a test calls it like any other. Sync functions run
in a thread. A first parameter annotated `Call` gets the invocation and is no argument.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final, Generic, Literal, TypeVar, get_args, get_origin
from uuid import UUID

from headway.agents.errors import DeclarationError
from headway.agents.messages import INLINE_MAX_BYTES
from headway.agents.signatures import (
    ANYTHING,
    Function,
    adapter_of,
    hints_of,
    refuse_generators,
)
from pydantic import TypeAdapter

NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
RECOVERIES = {
    "natural": "running it again does no harm",
    "dedupe_key": "it hands on call.id, and whoever gets that does the same thing only once",
    "check": "check= is a function that finds out whether it happened",
    "manual": "a person says whether it happened",
}

Recovery = Literal["natural", "dedupe_key", "check", "manual"]
T = TypeVar("T")
F = TypeVar("F", bound=Function)

_DECLARED = "__headway_tool__"


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often a tool is tried within one call, and the pauses between; times in seconds.

    `maximum_attempts` counts the first try too; 0 is without limit.
    """

    initial_interval: float = 1.0
    backoff_coefficient: float = 2.0
    maximum_interval: float = 100.0
    maximum_attempts: int = 3

    def __post_init__(self) -> None:
        if not 0 <= self.initial_interval <= self.maximum_interval:
            raise DeclarationError("initial_interval must be from 0 to maximum_interval, seconds")
        if self.backoff_coefficient < 1 or self.maximum_attempts < 0:
            raise DeclarationError(
                "backoff_coefficient must be 1 or more, maximum_attempts 0 or more"
            )

    def delay_s(self, tries: int) -> float:
        """Seconds to wait after this many tries (1, 2, …) failed."""
        growth = self.backoff_coefficient ** min(tries - 1, 64)
        return min(self.initial_interval * growth, self.maximum_interval)

    def allows(self, tries: int) -> bool:
        """Whether another try may follow this many."""
        return self.maximum_attempts == 0 or tries < self.maximum_attempts


ONCE: Final = Attempts(maximum_attempts=1)


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation of a tool, for the tool itself.

    Attributes:
        id: the same each time this very call is run; what a downstream dedupes on.
        key: its name within the operation: as given, or the tool and a number.
        attempt: which run of it this is, from 1; above 1 an earlier one may have happened.
        arguments_digest: SHA-256 in hex, see `gates.arguments_digest`.
        token: leave to run a sensitive tool, once.
        deadline: when the caller stops waiting; None is never.
    """

    id: UUID
    key: str
    tool: str
    task: UUID
    attempt: int = 1
    arguments_digest: str = ""
    token: str | None = None
    deadline: datetime | None = None


class Doubt(Enum):
    """What a tool's check may say besides `Happened`."""

    DID_NOT_HAPPEN = "did not happen"
    CANNOT_TELL = "cannot tell"


DID_NOT_HAPPEN: Final = Doubt.DID_NOT_HAPPEN
CANNOT_TELL: Final = Doubt.CANNOT_TELL


@dataclass(frozen=True, slots=True)
class Happened:
    """A check's answer: the call took effect, and this is its result."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class Metered(Generic[T]):
    """Returned by a tool that tells what it used; the caller gets `value`.

    Attributes:
        input_tokens, output_tokens: counted against the task's budget.
        cost_usd: US dollars, likewise.
        provider: whose model was asked, as OpenTelemetry names it: "openai", "anthropic", ...
        model: the name of the model that was asked. Both are in the journal and in the call's span.
    """

    value: T
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    provider: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool's function takes after its `Call`, and gives."""

    takes_call: bool
    is_async: bool
    parameters: inspect.Signature
    takes: Mapping[str, TypeAdapter[Any]]  # by parameter; the others take anything
    gives: TypeAdapter[Any]
    returns: Any


@dataclass(frozen=True, slots=True)
class Tool:
    """A function as it was declared.

    Attributes:
        name: by default the function's own.
        recovery: what is done about a call of which nobody knows whether it happened.
        retry: how often it is tried within one call.
        timeout_s: seconds for one try; after that it is unknown whether it happened.
        check: for recovery="check": `(call, *arguments)` -> Happened(result), DID_NOT_HAPPEN or
            CANNOT_TELL; sync or async.
        sensitive: a coordinator must give leave, right before each run.
        requires_approval: as sensitive, and a person must approve this very call. Meanwhile the
            attempt's `start_to_close` does not run.
        redeems: the tool, or what it calls, redeems `call.token`; by default that is done here,
            right before the run.
        model: it calls a language model; it should return `Metered`.
        long: progress is kept before it begins.
        result_limit: bytes of JSON over which the caller gets a shortened result, while the whole
            is kept: of a str the beginning, of other types what `truncate(result)` makes of it.
    """

    name: str
    function: Function
    signature: Signature
    recovery: Recovery
    retry: Attempts
    timeout_s: float | None
    check: Function | None
    sensitive: bool
    requires_approval: bool
    redeems: bool
    model: bool
    long: bool
    result_limit: int | None
    truncate: Callable[[Any], Any] | None


def tool(  # noqa: PLR0913  # each is a word of the declaration
    *misplaced: Function,
    recovery: Recovery | None = None,
    name: str = "",
    check: Function | None = None,
    retry: Attempts | None = None,
    timeout: float | None = None,
    sensitive: bool = False,
    requires_approval: bool = False,
    redeems: bool = False,
    model: bool = False,
    long: bool = False,
    result_limit: int | None = None,
    truncate: Callable[[Any], Any] | None = None,
) -> Callable[[F], F]:
    """Declare a function as a tool; the words are those of `Tool`. DeclarationError says what to
    mend. By default it is tried three times if running it again does no harm, else once."""
    if misplaced:
        raise DeclarationError('write @tool(recovery="…") above a function, with brackets')

    def declare(function: F) -> F:
        named = name or getattr(function, "__name__", "")
        where = f"tool {named!r}"
        if NAME.fullmatch(named) is None:
            raise DeclarationError(f"{where}: use 1 to 64 of A-Z a-z 0-9 _ . and - for its name")
        if recovery not in RECOVERIES:
            raise DeclarationError(_undeclared(where))
        again = retry or (Attempts() if recovery == "natural" else ONCE)
        return _marked(
            Tool(
                named,
                function,
                _read(function, where),
                recovery,
                again,
                timeout,
                check,
                sensitive or requires_approval,
                requires_approval,
                redeems,
                model,
                long,
                result_limit,
                truncate,
            ),
            function,
        )

    return declare


def _marked(tool: Tool, function: F) -> F:
    """`function`, which is known to be `tool` from now on."""
    where = f"tool {tool.name!r}"
    _check_recovery(tool, where)
    _check_limits(tool, where)
    try:
        setattr(function, _DECLARED, tool)
    except AttributeError as error:
        raise DeclarationError(f"{where} cannot be marked; wrap it in a function") from error
    return function


def declared(function: Function) -> Tool:
    """How `function` was declared; DeclarationError if it was not, or something is around it."""
    found = getattr(function, _DECLARED, None)
    named = getattr(function, "__name__", repr(function))
    if not isinstance(found, Tool):
        raise DeclarationError(
            f"{named!r} is not a tool; put @tool(recovery=…) above it and list it in the tools= "
            "of its action"
        )
    if found.function is not function:
        raise DeclarationError(f"tool {found.name!r}: put @tool(…) above its other decorators")
    return found


def by_name(functions: Sequence[Function], where: str) -> dict[str, Tool]:
    """The tools of one action."""
    tools = [declared(function) for function in functions]
    found = {each.name: each for each in tools}
    if len(found) < len(tools):
        names = ", ".join(each.name for each in tools)
        raise DeclarationError(f"{where} has two tools of one name ({names}); give one a name=")
    return found


def _undeclared(where: str) -> str:
    choices = "; ".join(f'"{name}": {what}' for name, what in RECOVERIES.items())
    return (
        f"{where}: recovery= must say what is done about a call of which nobody knows whether it "
        f"happened. {choices}"
    )


def _read(function: Function, where: str) -> Signature:
    refuse_generators(function, where)
    hints = hints_of(function, where)
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    takes_call = bool(parameters) and hints.get(parameters[0].name) is Call
    rest = parameters[1:] if takes_call else parameters
    for each in rest:
        if hints.get(each.name) is Call:
            raise DeclarationError(f"{where}: put {each.name!r}, which is the Call, first")
        if each.name == "key":
            raise DeclarationError(f"{where}: ctx.call takes key= itself; rename that parameter")
    adapters = {each.name: adapter_of(hints.get(each.name, Any), where, each.name) for each in rest}
    returns = _value_of(hints.get("return", Any))
    return Signature(
        takes_call,
        inspect.iscoroutinefunction(function),
        signature.replace(parameters=rest),
        {name: adapter for name, adapter in adapters.items() if adapter is not None},
        adapter_of(returns, where, "the return value") or ANYTHING,
        returns,
    )


def _value_of(returns: Any) -> Any:
    """What a caller gets of a tool that is annotated to return this."""
    if get_origin(returns) is Metered:
        return get_args(returns)[0]
    return Any if returns is Metered else returns


def _check_recovery(tool: Tool, where: str) -> None:
    if tool.recovery == "check" and tool.check is None:
        raise DeclarationError(f'{where}: recovery="check" needs check=, a function to ask')
    if tool.recovery != "check" and tool.check is not None:
        raise DeclarationError(f'{where}: check= is for recovery="check" only')
    if tool.recovery == "dedupe_key" and not tool.signature.takes_call:
        raise DeclarationError(
            f'{where}: recovery="dedupe_key" needs a first parameter `call: Call`, whose id the '
            "tool hands on"
        )
    if tool.redeems and not (tool.sensitive and tool.signature.takes_call):
        raise DeclarationError(
            f"{where}: redeems= is for a sensitive tool with a first parameter `call: Call`, whose "
            "token it redeems"
        )


def _check_limits(tool: Tool, where: str) -> None:
    if tool.timeout_s is not None and tool.timeout_s <= 0:
        raise DeclarationError(f"{where}: timeout must be more than 0 seconds")
    if tool.result_limit is None:
        if tool.truncate is not None:
            raise DeclarationError(f"{where}: truncate= needs result_limit=, in bytes")
        return
    if not 0 < tool.result_limit <= INLINE_MAX_BYTES:
        raise DeclarationError(f"{where}: result_limit must be from 1 to {INLINE_MAX_BYTES} bytes")
    if tool.truncate is None and tool.signature.returns is not str:
        raise DeclarationError(
            f"{where}: only a str can be shortened by itself; give truncate=, which makes a "
            "shorter result of a result"
        )
