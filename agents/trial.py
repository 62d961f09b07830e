"""One call of a tool, run as often as its policy allows, until it is known how it ended.

Always holds: what may have happened is not called failed, unless running it again does no harm or
dedupes. Then the tool's check is asked, or a person.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from typing import Any

from headway.agents import exchange
from headway.agents.entries import Usage
from headway.agents.errors import (
    Halted,
    InvalidInput,
    Reject,
    Superseded,
    ToolError,
    ToolFailed,
)
from headway.agents.exchange import Arguments, InvalidValue
from headway.agents.gates import GateRefused, GateRejected
from headway.agents.tools import Attempts, Call, Doubt, Happened, Tool
from headway.agents.tracing import invocation_span, nested

REASON_MAX_CHARS = 2_000
CONFIRM_AFTER_S = 1.0  # from asking to acting on the answer: this process may have been frozen
LONG_AGO = float("-inf")
CHECK_ATTEMPTS = Attempts(initial_interval=0.5, maximum_interval=5.0, maximum_attempts=5)

InThread = Callable[[Callable[[], Any], str], Awaitable[Any]]
MakeSure = Callable[[], Awaitable[None]]
"""Raises Superseded if another worker has the attempt by now."""
Leave = Callable[[Tool, Call], Awaitable[str]]
"""Leave to run a sensitive tool once: a token. Raises GateRejected, GateRefused, Halted and
Superseded."""

_log = logging.getLogger("headway.agents.tools")


@dataclass(frozen=True, slots=True)
class Result:
    """A tool's result as JSON, and what it used."""

    body: bytes
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """How a tool failed. `no_effect`: it certainly left nothing behind."""

    kind: str
    reason: str
    retryable: bool = True
    no_effect: bool = False

    def error(self, tool: str) -> ToolFailed:
        return ToolFailed(
            tool, self.kind, self.reason, retryable=self.retryable, no_effect=self.no_effect
        )


async def still_ours(make_sure: MakeSure, asked_at: float) -> None:
    """Return once the attempt was known to be ours a moment before; `asked_at` (monotonic) is when
    it was asked last.

    A process may be frozen while any answer is on its way, and lose its attempt without a word, so
    an answer that came late is asked for again. Each may take twice as long as the one before it:
    servers that are slow hold nobody up for ever. Raises Superseded.
    """
    within_s = CONFIRM_AFTER_S
    while time.monotonic() - asked_at > within_s:
        within_s *= 2
        asked_at = time.monotonic()
        await make_sure()


class Remedy(Enum):
    """What to do about a run that failed."""

    AGAIN = "run it again"
    FAIL = "call it failed"
    ASK = "ask the tool's check"
    HOLD = "leave it to a person"


def remedy(tool: Tool, failure: Failure, tries: int) -> Remedy:
    """What to do after this many tries, the last of which failed so."""
    if not failure.no_effect and tool.recovery == "manual":
        return Remedy.HOLD
    if not failure.no_effect and tool.recovery == "check":
        return Remedy.ASK
    again = failure.retryable and tool.retry.allows(tries)
    return Remedy.AGAIN if again else Remedy.FAIL


def unsettled(tool: str, call: Call, why: str) -> Halted:
    """Nobody here can tell whether a call happened: a person must."""
    return Halted(
        f"nobody knows whether tool {tool!r} took effect (key {call.key!r}, invocation "
        f"{call.id}): {why}; settle it, then resume the task",
        kind="Unsettled",
    )


@dataclass(frozen=True, slots=True)
class Trial:
    """Runs tools. `in_thread` runs a sync function; `leave` is asked before a sensitive tool;
    `make_sure` is asked where an answer was long on its way."""

    in_thread: InThread
    leave: Leave
    make_sure: MakeSure

    async def run(self, tool: Tool, call: Call, arguments: Arguments) -> Result | Failure:
        """Run `tool` until it is known how it ended. Raises Halted if nobody here can tell."""
        tries = 0
        while True:
            ended = await self._once(tool, replace(call, attempt=call.attempt + tries), arguments)
            tries += 1
            if isinstance(ended, Result):
                return ended
            what = remedy(tool, ended, tries)
            if what is Remedy.HOLD:
                raise unsettled(tool.name, call, f"{ended.kind}: {ended.reason}")
            if what is Remedy.ASK:
                known = await self.ask(tool, call, arguments)
                if isinstance(known, Result):
                    return known
                ended = replace(ended, no_effect=True)
                what = remedy(tool, ended, tries)
            if what is Remedy.FAIL:
                return ended
            _log.info("tool %s: %s; try %d follows", tool.name, ended.kind, tries + 1)
            await asyncio.sleep(tool.retry.delay_s(tries))
            await still_ours(self.make_sure, LONG_AGO)

    async def ask(self, tool: Tool, call: Call, arguments: Arguments) -> Result | None:
        """The result of a call that happened, None of one that did not, as the tool's check says.

        Raises Halted if it cannot tell.
        """
        tries = 0
        while True:
            tries += 1
            try:
                answer = await self._perform(
                    inspect.iscoroutinefunction(tool.check),
                    partial(exchange.ask, tool, call, arguments),
                    f"check of {tool.name}",
                )
                break
            except Exception as error:
                _log.warning("the check of tool %s failed", tool.name, exc_info=error)
                if not CHECK_ATTEMPTS.allows(tries):
                    why = f"its check failed: {type(error).__name__}: {error}"
                    raise unsettled(tool.name, call, why) from error
            await asyncio.sleep(CHECK_ATTEMPTS.delay_s(tries))
        if isinstance(answer, Happened):
            try:
                return Result(exchange.encode_result(tool, answer.result))
            except InvalidValue as error:
                raise unsettled(tool.name, call, f"it happened, but {error}") from error
        if answer is Doubt.DID_NOT_HAPPEN:
            return None
        why = "its check cannot tell"
        if answer is not Doubt.CANNOT_TELL:
            why = (
                f"its check answered {type(answer).__name__}, not Happened(result), "
                "DID_NOT_HAPPEN or CANNOT_TELL"
            )
        raise unsettled(tool.name, call, why)

    async def _once(self, tool: Tool, call: Call, arguments: Arguments) -> Result | Failure:
        try:
            if tool.sensitive:
                asked_at = time.monotonic()
                call = replace(call, token=await self.leave(tool, call))
                await still_ours(self.make_sure, asked_at)
        except GateRejected as error:
            return Failure("GateRejected", str(error), retryable=False, no_effect=True)
        except GateRefused as error:
            return Failure("GateRefused", str(error), no_effect=True)
        thunk = partial(exchange.run, tool, _due(tool, call), arguments)
        limit = asyncio.timeout(tool.timeout_s)
        try:
            async with limit:
                with nested(call.task, invocation_span(call.id)):
                    returned = await self._perform(tool.signature.is_async, thunk, tool.name)
            return Result(exchange.encode_result(tool, returned), exchange.usage_of(tool, returned))
        except (Superseded, Halted):
            raise
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            return _failure(error)  # the tool's own doing
        except (KeyboardInterrupt, GeneratorExit):  # the process, or the loop, is ending
            raise
        except BaseException as error:
            if limit.expired():
                return Failure("Timeout", f"no answer within {tool.timeout_s:g} s")
            _log.info("tool %s failed", tool.name, exc_info=error)
            return _failure(error)

    async def _perform(self, is_async: bool, thunk: Callable[[], Any], name: str) -> Any:
        if is_async:
            return await thunk()
        returned = await self.in_thread(thunk, name)
        return await returned if inspect.isawaitable(returned) else returned


def _failure(error: BaseException) -> Failure:
    """What an exception of a tool means."""
    reason = str(error)[:REASON_MAX_CHARS].encode("utf-8", "replace").decode()
    if isinstance(error, ToolError):
        return Failure(type(error).__name__, reason, error.retryable, error.no_effect)
    if isinstance(error, Reject):
        return Failure(error.kind, reason, retryable=False, no_effect=True)
    if isinstance(error, InvalidValue | InvalidInput):
        return Failure(type(error).__name__, reason, retryable=False)
    return Failure(type(error).__name__, reason)


def _due(tool: Tool, call: Call) -> Call:
    """The call with the moment when its caller stops waiting for this very try."""
    if tool.timeout_s is None:
        return call
    due = datetime.fromtimestamp(time.time() + tool.timeout_s, UTC)
    return replace(call, deadline=due if call.deadline is None else min(due, call.deadline))
