"""How single things are put for people: statuses, moments, spans of time, texts that are long."""

from __future__ import annotations

from datetime import UTC, datetime

from headway.cli.output import printable
from rich.table import Table
from rich.text import Text

DETAIL_CHARACTERS_MAX = 160  # of a history entry's data on its line; --json shows it whole
REASON_CHARACTERS_MAX = 300
KEY_CHARACTERS_MAX = 100

MINUTE_S = 60
HOUR_S = 60 * MINUTE_S
DAY_S = 24 * HOUR_S

_STYLES = {
    "succeeded": "green",
    "completed": "green",
    "compensated": "yellow",
    "compensating": "yellow",
    "parked": "bold red",
    "failed_to_compensate": "bold red",
    "failed": "red",
    "unknown": "magenta",
    "waiting": "dim",
    "skipped": "dim",
}


def status_text(status: str) -> Text:
    """A status, or a kind of waiting, in its colour."""
    return Text(status.replace("_", " "), style=_STYLES.get(status, ""), no_wrap=True)


def moment(at: datetime) -> str:
    """In UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def elapsed(seconds: float) -> str:
    """A time span in the units that people think in."""
    if seconds < MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < HOUR_S:
        return f"{seconds // MINUTE_S:.0f} min"
    if seconds < DAY_S:
        return f"{seconds // HOUR_S:.0f} h {seconds % HOUR_S // MINUTE_S:.0f} min"
    return f"{seconds // DAY_S:.0f} d {seconds % DAY_S // HOUR_S:.0f} h"


def labelled(label: str, text: str) -> Text:
    """A line that says what its text is."""
    return Text(f"{label}: ", style="dim").append(printable(text), style="not dim")


def cut(text: str, characters_max: int) -> str:
    """On one line, without control characters, and not longer than that."""
    shown = printable(text)
    return shown if len(shown) <= characters_max else f"{shown[: characters_max - 1]}…"


def table_of(*columns: str) -> Table:
    """An empty table with these columns."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column)
    return table
