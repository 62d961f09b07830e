"""A task in a terminal while it goes on: its timeline, drawn anew as time passes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from headway.agents.client import Client
from headway.agents.timeline_views import MarkView, StepLine, TimelineView
from headway.agents.views import TaskView
from headway.cli import output
from headway.cli.charts import lane
from headway.cli.wording import (
    REASON_CHARACTERS_MAX,
    cut,
    elapsed,
    labelled,
    moment,
    status_text,
    table_of,
)
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

FRAME_S = 0.25  # between two pictures of the same state
LANE_WIDTH_MIN = 10
BESIDE_LANE = 62  # characters that the other columns take
REMARK_CHARACTERS_MAX = 60
MARKS_SHOWN_MAX = 5  # what people did last

_BY_ITSELF = ("submitted", "skipped", "succeeded", "compensated", "parked", "recovery")


async def watch_live(client: Client, task: UUID) -> TaskView:
    """Draw the task until it is settled; how it stands then."""
    console = output.data_console()
    drawn: list[tuple[TimelineView, float]] = []
    with Live(console=console, auto_refresh=False) as live:

        def draw() -> None:
            if drawn:
                view, at = drawn[-1]
                now = view.settled_at or view.now + timedelta(seconds=time.monotonic() - at)
                live.update(picture(view, now, console.width), refresh=True)

        frames = asyncio.create_task(_each_frame(draw))
        try:
            async for seen in client.watch(task):
                last = seen
                drawn[:] = [(await client.timeline(task), time.monotonic())]
                draw()
        finally:
            frames.cancel()
            with suppress(asyncio.CancelledError):
                await frames
    return last


async def _each_frame(draw: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(FRAME_S)
        draw()


def picture(view: TimelineView, now: datetime, width: int) -> RenderableType:
    """A task's steps on one line of time, which ends at `now`; and what people did."""
    lane_width = max(width - BESIDE_LANE, LANE_WIDTH_MIN)
    table = table_of("step", "status", "attempt", "for", "timeline", "remarks")
    table.columns[4].min_width = lane_width
    for step in view.steps:
        table.add_row(
            Text(cut(step.name, 20), no_wrap=True),
            status_text(step.status),
            Text(str(_attempts(step) or ""), justify="right"),
            Text(_took(step, now), no_wrap=True, justify="right"),
            lane(step.bars, view.began_at, now, lane_width),
            Text(_remark(step), no_wrap=True, overflow="ellipsis"),
        )
    parts: list[RenderableType] = [_headline(view, now), table]
    parts += [
        labelled("held", cut(hold.reason, REASON_CHARACTERS_MAX))
        for hold in view.holds
        if hold.ended_at is None
    ]
    told = [mark for mark in view.marks if mark.kind not in _BY_ITSELF]
    parts += [_mark(mark) for mark in told[-MARKS_SHOWN_MAX:]]
    return Group(*parts)


def _headline(view: TimelineView, now: datetime) -> Text:
    line = Text(f"{view.task}  {view.saga} v{view.saga_version}  ", no_wrap=True)
    line.append_text(status_text(view.status))
    line.append(f"  {elapsed(max(0.0, (now - view.began_at).total_seconds()))}")
    return line


def _attempts(step: StepLine) -> int:
    return max((bar.attempt for bar in step.bars if bar.kind == "attempt"), default=0)


def _took(step: StepLine, now: datetime) -> str:
    """From its first attempt to its last end, or until now."""
    if not step.bars:
        return ""
    until = now if step.bars[-1].ended_at is None else step.bars[-1].ended_at
    return elapsed(max(0.0, (until - step.bars[0].began_at).total_seconds()))


def _remark(step: StepLine) -> str:
    if step.kept_from is not None:
        return f"kept from task {step.kept_from}"
    if not step.bars:
        return ""
    last = step.bars[-1]
    said = [error for bar in step.bars if (error := bar.error)][-1:]
    if last.ended_at is None and last.kind == "attempt":
        said.append(last.worker or (f"with {last.agent}" if last.agent else f"task {last.child}"))
    if last.ended_at is None and last.due_at is not None:
        said.append(f"until {moment(last.due_at)}")
    if last.kind == "hold" and last.ended_at is None:
        said.append(last.reason)
    return cut("; ".join(said), REMARK_CHARACTERS_MAX)


def _mark(mark: MarkView) -> Text:
    about = " ".join(part for part in (mark.step, mark.name) if part)
    line = Text(f"{moment(mark.at)}  {mark.kind.replace('_', ' ')}", style="dim", no_wrap=True)
    line.append(f"  {cut(about, REMARK_CHARACTERS_MAX)}" if about else "")
    line.append(f"  by {cut(mark.by, REMARK_CHARACTERS_MAX)}" if mark.by else "")
    line.append(f"  {cut(mark.reason, REMARK_CHARACTERS_MAX)}" if mark.reason else "")
    return line
