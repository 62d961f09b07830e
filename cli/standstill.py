"""Waiting for a task: after a while that brought nothing, a person is told what it waits for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import HeadwayError
from headway.agents.views import ABSENT, StepView
from headway.cli import output
from headway.cli.wording import REASON_CHARACTERS_MAX, cut, moment

LOOK_S = 2.0  # between two looks; what both see is told
START_IT = "start it: headway agent MODULE:NAME"


@asynccontextmanager
async def told(client: Client, task: UUID) -> AsyncIterator[None]:
    """Within, a person is told what the task waits for, once of each step."""
    looking = asyncio.create_task(_look(client, task))
    try:
        yield
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


async def _look(client: Client, task: UUID) -> None:
    told_of: set[str] = set()
    seen = 0
    while True:
        await asyncio.sleep(LOOK_S)
        try:
            view = await client.status(task)
        except HeadwayError:  # whoever waits is told, or rides it out
            continue
        waiting = {
            step.name: text
            for step in view.steps
            if (text := standstill(step)) and (step.error is not None or view.version == seen)
        }
        seen = view.version
        new = [text for step, text in waiting.items() if step not in told_of]
        if new and not view.settled:
            output.narrate(f"still {view.status}: {'; '.join(new)}")
            told_of.update(waiting)


def standstill(step: StepView) -> str:
    """What a step waits for, or when it is tried again; "" if neither."""
    failed = "" if step.error is None else f"{step.error.type}: {step.error.message}"
    failed = cut(failed, REASON_CHARACTERS_MAX)
    if step.waiting_for:
        after = f" after {failed}" if failed else ""
        return f"step {step.name!r} waits for {awaited(step)}{after}"
    if step.next_attempt_at is not None:
        because = f" ({failed})" if failed else ""
        return f"step {step.name!r} failed{because}; next attempt {moment(step.next_attempt_at)}"
    return ""


def awaited(step: StepView) -> str:
    """What a step waits for; of an agent that is not there, how to start it."""
    waits_for = step.waiting_for or ""
    return f"{waits_for}; {START_IT}" if ABSENT in waits_for else waits_for
