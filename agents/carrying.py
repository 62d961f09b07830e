"""How values travel in the journal's entries: within them, or by reference if they are large.

Always holds: what is read is what was written, by its digest.
"""

from __future__ import annotations

from typing import Any

import orjson
from headway.agents import exchange
from headway.agents.entries import NewEntry
from headway.agents.errors import InvalidInput, JournalMismatch
from headway.agents.exchange import InvalidValue, canonical, digest_of
from headway.agents.journal import Keeping
from headway.agents.messages import INLINE_MAX_BYTES
from headway.agents.tools import Tool
from headway.agents.trial import Failure, Result


async def carrying(keeping: Keeping, entry: NewEntry, body: bytes) -> NewEntry:
    """`entry` with the value whose JSON `body` is, keys sorted."""
    value: dict[str, Any] = {"size": len(body)}
    if len(body) <= INLINE_MAX_BYTES:
        value |= {"data": orjson.loads(body), "datadigest": digest_of(body)}
    else:
        value["dataref"], value["datadigest"] = await keeping.put(body)
    return entry.model_copy(update=value)


async def body_of(keeping: Keeping, entry: NewEntry, inline: Any) -> bytes:
    """The JSON of an entry's value; `inline` is that value if it is not kept by reference.

    Raises PayloadLost, or JournalMismatch if it is not what was written.
    """
    if entry.dataref:
        return await keeping.get(entry.dataref, entry.datadigest)
    body = canonical(inline)
    if entry.datadigest and digest_of(body) != entry.datadigest:
        what = f"the {entry.kind} of call {entry.key!r}" if entry.key else f"a {entry.kind}"
        raise JournalMismatch(f"{what} in the journal is not what was written: its digest differs")
    return body


async def ending(keeping: Keeping, tool: Tool, entry: NewEntry, result: Result) -> NewEntry:
    """`entry` with a result; one over the tool's limit is kept whole by reference, and shortened
    for the caller. Raises InvalidValue."""
    entry = entry.model_copy(update={"kind": "result", "usage": result.usage})
    if tool.result_limit is None or len(result.body) <= tool.result_limit:
        return await carrying(keeping, entry, result.body)
    reference, digest = await keeping.put(result.body)
    short = exchange.shortened(tool, result.body, reference)
    whole = {"dataref": reference, "datadigest": digest, "size": len(result.body)}
    return entry.model_copy(update={"data": orjson.loads(short), **whole})


def failed(entry: NewEntry, failure: Failure, attempt: int) -> NewEntry:
    """`entry` with a failure, as of this attempt of the step."""
    data = {
        "type": failure.kind,
        "message": failure.reason,
        "retryable": failure.retryable,
        "no_effect": failure.no_effect,
        "attempt": attempt,
    }
    return entry.model_copy(update={"kind": "failure", "data": data})


async def outcome_of(keeping: Keeping, tool: Tool, entry: NewEntry) -> Any:
    """What a caller gets of a call that ended so: its result, or ToolFailed is raised.

    Raises JournalMismatch if the result is not of the tool's type (any more).
    """
    if entry.kind == "failure":
        raise _failure_in(entry).error(tool.name)
    if entry.dataref and entry.data is not None:
        body = canonical(entry.data)  # shortened; nobody wants the whole
    else:
        body = await body_of(keeping, entry, entry.data)
    try:
        return exchange.decode_result(tool, body)
    except InvalidInput as error:
        raise JournalMismatch(f"call {entry.key!r} in the journal: {error}") from error


def unkeepable(error: InvalidValue) -> Failure:
    """A result that cannot be given to anybody; the tool did run."""
    return Failure(type(error).__name__, str(error), retryable=False)


def _failure_in(entry: NewEntry) -> Failure:
    data = entry.data if isinstance(entry.data, dict) else {}
    return Failure(
        str(data.get("type", "Failure")),
        str(data.get("message", "")),
        bool(data.get("retryable", True)),
        bool(data.get("no_effect", False)),
    )
