"""The command `top`: the whole system at a glance, in the terminal, as long as one looks."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

import typer
from headway.agents.catalogue_views import AgentList
from headway.agents.client import Client
from headway.agents.news import news_on, wait_for
from headway.agents.overview_views import OverviewView
from headway.agents.subjects import FEED
from headway.agents.top_views import TopView
from headway.agents.views import TaskPage
from headway.cli import output, tables
from headway.cli.charts import columns
from headway.cli.terminal import Terminal, command
from headway.cli.wording import elapsed, moment, status_text
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

PANEL = "Look at the system"
EVERY_S = 2.0  # without news
AT_MOST_EVERY_S = 0.5  # with any number of them
RECENT = 10  # tasks
LATE_S = 5.0  # of a timer that is due, after which it is told
LEAVE = (b"q", b"Q", b"\x1b")  # the last one is the key Esc


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(top)


def top(
    terminal: Terminal,
    once: Annotated[bool, typer.Option("--once", help="Show it once, and end.")] = False,
) -> None:
    """Show throughput, latency, what is parked, agents and recent tasks, live; q leaves.

    Where standard output is no terminal, and with --json, it is shown once.
    """
    if once or terminal.as_json or not output.is_for_a_person():
        terminal.show(terminal.ask(look), screen)
    else:
        terminal.ask(look_on)


async def look(client: Client) -> TopView:
    """The system at this moment."""
    overview, agents, page = await asyncio.gather(
        client.overview(), client.agents(), client.list(limit=RECENT)
    )
    return TopView(overview=overview, agents=agents.agents, recent=page.tasks)


async def look_on(client: Client) -> None:
    """Draw the system anew with every news, until a person leaves."""
    leave = asyncio.Event()
    live = Live(console=output.data_console(), screen=True, auto_refresh=False)
    async with news_on(client.connection.wire, FEED) as news:
        with _keys(leave), live:
            while not leave.is_set():
                news.clear()
                live.update(Group(screen(await look(client)), _hint()), refresh=True)
                await wait_for(leave, AT_MOST_EVERY_S)
                await _either(news, leave, EVERY_S - AT_MOST_EVERY_S)


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    """Until one of two is set, or so long."""
    waits = [asyncio.ensure_future(each.wait()) for each in (one, other)]
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()


@contextmanager
def _keys(leave: asyncio.Event) -> Iterator[None]:
    """Hear single keys while this lasts, if somebody is at a keyboard; the terminal is as it was
    afterwards."""
    if not sys.stdin.isatty():
        yield
        return
    keyboard, loop = sys.stdin.fileno(), asyncio.get_running_loop()

    def pressed() -> None:
        if os.read(keyboard, 64) in LEAVE:
            leave.set()

    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    loop.add_reader(keyboard, pressed)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def screen(view: TopView) -> RenderableType:
    """The last minute and the last hour, tasks by status, agents, and the newest tasks."""
    overview = view.overview
    parts: list[RenderableType] = [_counts(overview), _last_minute(overview), *_hour(overview)]
    parts += _queue(overview)
    parts += [Text(), tables.agents(AgentList(agents=view.agents))] if view.agents else []
    parts += [Text(), tables.tasks(TaskPage(tasks=view.recent))] if view.recent else []
    return Group(*parts)


def _counts(overview: OverviewView) -> Text:
    line = Text(f"{moment(overview.now)}", no_wrap=True)
    for status, count in overview.counts.items():
        if count:
            line.append("  ").append_text(status_text(status)).append(f" {count}")
    line.append(f"  agents {overview.agents}, instances {overview.instances}")
    if overview.parked:
        line.append(f"  {overview.parked} wait for a person", style="bold red")
    return line


def _last_minute(overview: OverviewView) -> Text:
    last = overview.last_minute
    seconds = max((overview.now - last.at).total_seconds(), 1.0)
    ended = last.succeeded + last.compensated
    line = Text("last minute: ", style="dim", no_wrap=True)
    told = (
        f"{last.submitted / seconds:.1f}/s submitted, {ended / seconds:.1f}/s ended, "
        f"{last.failures} failures, {last.retries} retries, {last.recoveries} recoveries"
    )
    line.append(told, style="not dim")
    if last.p50_ms is not None and last.p95_ms is not None:
        p50, p95 = elapsed(last.p50_ms / 1000), elapsed(last.p95_ms / 1000)
        line.append(f", half within {p50}, 95% within {p95}", style="not dim")
    return line


def _hour(overview: OverviewView) -> list[RenderableType]:
    """The last hour, a column a minute."""
    series: dict[str, list[int | None]] = {
        "ended": [minute.succeeded + minute.compensated for minute in overview.minutes],
        "failures": [minute.failures for minute in overview.minutes],
        "95% within": [minute.p95_ms for minute in overview.minutes],
    }
    lines: list[RenderableType] = []
    for name, values in series.items():
        largest = max((value or 0 for value in values), default=0)
        most = elapsed(largest / 1000) if name == "95% within" else f"{largest}/min"
        line = Text(f"{name:>10}  ", style="dim", no_wrap=True)
        line.append(columns(values), style="not dim cyan")
        line.append(f"  at most {most}")
        lines.append(line)
    return lines


def _queue(overview: OverviewView) -> list[RenderableType]:
    """What waits too long, if anything does."""
    lines: list[RenderableType] = []
    if overview.oldest_dispatch_at is not None:
        age = _age(overview.oldest_dispatch_at, overview.now)
        lines.append(Text(f"the oldest command waits for its answer since {elapsed(age)}"))
    if overview.oldest_due_at is not None:
        late = _age(overview.oldest_due_at, overview.now)
        if late > LATE_S:
            lines.append(Text(f"a timer is late by {elapsed(late)}", style="bold red"))
    return lines


def _age(since: datetime, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds())


def _hint() -> Text:
    return Text("\nq leaves", style="dim")
