"""Settling the calls that a gone worker left open, before its successor's handler begins.

A call whose intent is in the journal and whose end is not may have happened. Its tool says what to
do: let it be run again, ask its check, or leave it to a person. Always holds: after `settle`, no
call of the journal is open.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from headway.agents import carrying, exchange
from headway.agents.about import About
from headway.agents.entries import NewEntry
from headway.agents.errors import Halted, InvalidInput
from headway.agents.exchange import InvalidValue
from headway.agents.journal import Journal
from headway.agents.replay import Recorded
from headway.agents.tools import RECOVERIES
from headway.agents.trial import Trial, unsettled

RUN_AGAIN = ("natural", "dedupe_key")


async def settle(
    open_calls: Sequence[Recorded], about: About, journal: Journal, trial: Trial
) -> None:
    """Settle each of `open_calls`. Raises Halted for those that only a person can tell about, when
    all others are settled."""
    left: list[Halted] = []
    for recorded in open_calls:
        try:
            entry = await _ending(recorded, about, journal, trial)
        except Halted as halted:
            left.append(halted)
            continue
        await journal.append(entry)
        recorded.voided = entry.kind == "void"
        recorded.ending = None if recorded.voided else entry
    if left:
        raise Halted("; and ".join(str(each) for each in left), kind="Unsettled")


async def _ending(recorded: Recorded, about: About, journal: Journal, trial: Trial) -> NewEntry:
    """How an open call is to be taken to have ended. Raises Halted."""
    intent = recorded.intent
    call = about.call(intent, recorded.runs)
    tool = (about.tools or {}).get(intent.tool)
    if tool is None:
        raise unsettled(intent.tool, call, "its action does not declare it any more")
    if tool.recovery in RUN_AGAIN:
        return _void(recorded, RECOVERIES[tool.recovery])
    if tool.recovery == "manual":
        raise unsettled(tool.name, call, "its worker was lost during the call")
    named = orjson.loads(await carrying.body_of(journal.keeping, intent, intent.data))
    try:
        happened = await trial.ask(tool, call, exchange.arguments_again(tool, named))
        if happened is None:
            return _void(recorded, "its check says that it did not happen")
        entry = NewEntry(kind="result", key=intent.key, tool=intent.tool)
        return await carrying.ending(journal.keeping, tool, entry, happened)
    except InvalidInput as error:
        raise unsettled(tool.name, call, f"its check cannot be asked: {error}") from error
    except InvalidValue as error:
        raise unsettled(tool.name, call, f"it happened, but {error}") from error


def _void(recorded: Recorded, why: str) -> NewEntry:
    return NewEntry(kind="void", key=recorded.key, tool=recorded.intent.tool, data=why)
