"""What `headway doctor` finds: one line per check, with what to do where something is wrong."""

from __future__ import annotations

from typing import Literal

from headway.cli.output import printable
from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.text import Text

CLOCK_SKEW_MAX_S = 1.0  # deadlines, claims and list filters compare clocks of several machines

_STYLES = {"ok": "green", "note": "yellow", "wrong": "bold red"}


class Finding(BaseModel):
    """`wrong` fails the examination, a `note` does not."""

    check: str
    state: Literal["ok", "note", "wrong"]
    found: str
    remedy: str = ""


class Report(BaseModel):
    """All findings of one examination."""

    healthy: bool
    findings: list[Finding]


def ok(check: str, found: str) -> Finding:
    return Finding(check=check, state="ok", found=found)


def note(check: str, found: str, remedy: str) -> Finding:
    return Finding(check=check, state="note", found=found, remedy=remedy)


def wrong(check: str, found: str, remedy: str) -> Finding:
    return Finding(check=check, state="wrong", found=found, remedy=remedy)


def report(findings: list[Finding]) -> Report:
    return Report(healthy=all(one.state != "wrong" for one in findings), findings=findings)


def clock(whose: str, asked_at: float, told: float, answered_at: float) -> Finding:
    """Compare a clock to this machine's: `told` was read between the other two (Unix seconds)."""
    check = f"clock of {whose}"
    offset, unsure = told - (asked_at + answered_at) / 2, (answered_at - asked_at) / 2
    found = f"{offset:+.3f} s from this machine's (± {unsure:.3f} s)"
    if abs(offset) - unsure <= CLOCK_SKEW_MAX_S:
        return ok(check, found)
    return wrong(check, found, "set both clocks by NTP (chrony, systemd-timesyncd)")


def lines(examined: Report) -> RenderableType:
    """The report for a person."""
    width = max(len(one.check) for one in examined.findings)
    return Group(*(_line(one, width) for one in examined.findings))


def _line(finding: Finding, width: int) -> Text:
    line = Text(f"{finding.state:<5}  ", style=_STYLES[finding.state])
    line.append(f"{finding.check:<{width}}  {printable(finding.found)}", style="default")
    if finding.remedy:
        line.append(f"\n{'':<{width + 9}}→ {printable(finding.remedy)}", style="default")
    return line
