"""Small pictures in characters: bars on a line of time, and lines of columns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headway.agents.timeline_views import BarView
from rich.text import Text

EIGHTHS = " ▁▂▃▄▅▆▇█"

_STYLES = {
    "running": "cyan",
    "completed": "green",
    "approved": "green",
    "failed": "red",
    "timed_out": "red",
    "rejected": "red",
    "cancelled": "dim",
    "superseded": "dim",
}


def columns(values: Sequence[int | None]) -> str:
    """One column a value, the largest one in full height; None and 0 are gaps."""
    top = max((value or 0 for value in values), default=0)
    return "".join(EIGHTHS[_height(value or 0, top)] for value in values)


def _height(value: int, top: int) -> int:
    return 0 if value <= 0 else max(1, round(value * (len(EIGHTHS) - 1) / top))


def lane(bars: Sequence[BarView], began_at: datetime, now: datetime, width: int) -> Text:
    """Bars on a line of `width` characters that goes from `began_at` to `now`. Each has at least
    one character; of those that share one, the latest is seen."""
    line = [(" ", "")] * width
    span = max((now - began_at).total_seconds(), 0.001)
    for bar in bars:
        first = _place(bar.began_at, began_at, span, width)
        last = _place(bar.ended_at or now, began_at, span, width)
        mark, style = _look(bar)
        for place in range(first, max(first + 1, last)):
            line[place] = (mark, style)
    text = Text(no_wrap=True)
    for mark, style in line:
        text.append(mark, style=style)
    return text


def _place(moment: datetime, began_at: datetime, span: float, width: int) -> int:
    passed = (moment - began_at).total_seconds() / span
    return min(max(int(passed * width), 0), width - 1)


def _look(bar: BarView) -> tuple[str, str]:
    match bar.kind:
        case "hold":
            return "▒", "bold red"
        case "retry_wait":
            return "·", "dim"
        case "wait":
            return "─", "yellow" if bar.ended_at is None else "dim"
    if bar.phase == "compensation":
        return "◄", "red" if bar.outcome in ("failed", "timed_out") else "yellow"
    return "━", _STYLES.get(bar.outcome, "green")
