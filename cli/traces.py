"""How journals and the audit log look to a person."""

from __future__ import annotations

from collections.abc import Iterable

from headway.agents.auditing import AuditEntry
from headway.agents.entries import Entry
from headway.cli.output import printable
from headway.cli.wording import REASON_CHARACTERS_MAX, cut, moment, status_text, table_of
from rich.console import RenderableType
from rich.text import Text


def journal(entries: Iterable[Entry]) -> RenderableType:
    """What a step did, oldest first, of entries `in_short`."""
    table = table_of("seq", "at", "kind", "call", "tool", "bytes", "tokens", "took", "by", "reason")
    for entry in entries:
        table.add_row(
            Text(str(entry.seq), justify="right"),
            Text(moment(entry.at), no_wrap=True),
            status_text(entry.kind),
            Text(printable(entry.key)),
            Text(printable(entry.tool)),
            Text(str(entry.size) if entry.size else "", justify="right"),
            Text("" if entry.usage is None else str(entry.usage.tokens), justify="right"),
            Text(f"{entry.took_ms / 1000:.3f} s" if entry.took_ms else "", justify="right"),
            Text(printable(entry.by)),
            Text(cut(entry.reason, REASON_CHARACTERS_MAX)),
        )
    return table


def act(entry: AuditEntry) -> RenderableType:
    """One line of the audit log."""
    task = "" if entry.task is None else f"{entry.task}"
    place = f"  {task}/{entry.step}" if entry.step else f"  {task}" if task else ""
    words = [entry.kind, printable(entry.what), f"by {printable(entry.who)}" if entry.who else ""]
    line = Text(f"{moment(entry.at)}{place}  {'  '.join(filter(None, words))}")
    return line.append(f"  {cut(entry.reason, REASON_CHARACTERS_MAX)}" if entry.reason else "")


def in_short(entry: Entry) -> Entry:
    """An entry as the table needs it, without the data, which may be large."""
    return entry.model_copy(update={"data": None, "reason": _reason(entry)})


def _reason(entry: Entry) -> str:
    """Why a person wrote it, a note, how a call failed, or why a call may be run again."""
    match entry.kind, entry.data:
        case ("note" | "void", str(words)) if not entry.reason:
            return words
        case "failure", {"type": str(kind), "message": str(why)}:
            return f"{kind}: {why}"
        case _:
            return entry.reason
