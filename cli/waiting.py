"""How the queue of all that waits for a person looks: what, since when, why, and what to type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import UUID

import orjson
from headway.agents.views import WaitingPage, WaitingView
from headway.cli.offers import offer
from headway.cli.output import printable
from headway.cli.wording import REASON_CHARACTERS_MAX, cut, elapsed, status_text
from rich.console import Group, RenderableType
from rich.text import Text

ABOUT_CHARACTERS_MAX = 300  # of what a call is about; --json shows it whole


def queue(page: WaitingPage) -> RenderableType:
    """Each thing that waits, and how to ask for the next page."""
    parts = [line for one in page.waiting for line in _one(one)]
    if page.cursor is not None:
        parts.append(Text(f"more: --cursor {page.cursor}", style="dim"))
    return Group(*parts)


def settled(task: UUID, key: str) -> RenderableType:
    """That a call's end is known now, and how its task goes on."""
    return Text(f"call {printable(key)} is settled; go on with: {offer('resume', task)}")


def _one(waiting: WaitingView) -> Iterator[Text]:
    yield _headline(waiting)
    if waiting.tool:
        yield Text(f"  {cut(_call(waiting), ABOUT_CHARACTERS_MAX)}")
    if waiting.reason:
        yield Text(f"  {cut(waiting.reason, REASON_CHARACTERS_MAX)}")
    for action in waiting.actions:
        yield Text(f"    {_offered(waiting, action)}", no_wrap=True)


def _headline(waiting: WaitingView) -> Text:
    line = Text()
    line.append_text(status_text(waiting.kind))
    line.append(f"  {waiting.task}  {waiting.saga}")
    line.append(f"  step {waiting.step}" if waiting.step else "")
    age_s = (datetime.now(UTC) - waiting.since).total_seconds()
    line.append(f"  for {elapsed(max(0.0, age_s))}")
    if waiting.context:
        line.append(f"  context {waiting.context}", style="dim")
    return line


def _call(waiting: WaitingView) -> str:
    """The tool and what it is called with."""
    arguments = waiting.details
    shown = "" if arguments is None else f": {orjson.dumps(arguments).decode()}"
    return f"{waiting.tool} (call {waiting.key}){shown}"


def _offered(waiting: WaitingView, action: str) -> str:
    step = "" if ", " in waiting.step else waiting.step  # several are stuck
    return offer(
        action,
        waiting.task,
        step=step,
        invocation=waiting.invocation if action in ("approve", "reject") else None,
        key=waiting.key if action == "settle" else "",
        phase=waiting.phase,
    )
