"""What the travel demo came to, in figures and for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from headway.cli.output import printable
from headway.demo.languages.audit import Case, Finding, audit
from headway.demo.languages.crew import LANGUAGES
from headway.demo.languages.trips import KINDS
from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

FINDINGS_SHOWN_MAX = 20


class AgentReport(BaseModel):
    """One agent. `steps`: results of its own that stand; `undone`: steps that it compensated;
    `recovered`: attempts that another process of it took over."""

    agent: str
    language: str
    kills: int
    steps: int
    undone: int
    recovered: int


class Report(BaseModel):
    """The run in figures. `absorbed`: calls that were repeated, and took effect once. `holds`: the
    audit found nothing at all."""

    seed: int
    trips: dict[str, int]
    kills: dict[str, int]
    agents: list[AgentReport]
    absorbed: int
    duration_s: float
    findings: list[Finding]
    holds: bool


def compile_report(
    seed: int, case: Case, kills: Sequence[str], claims: Mapping[str, int], duration_s: float
) -> Report:
    """`kills` are the victims, `claims` the attempts that were taken over, by step."""
    findings = audit(case)
    killed = Counter(kills)
    statuses = Counter((step.name, step.status) for view in case.views for step in view.steps)
    return Report(
        seed=seed,
        trips=dict(sorted(Counter(view.status for view in case.views).items())),
        kills=dict(sorted(killed.items())),
        agents=[
            AgentReport(
                agent=agent,
                language=LANGUAGES[agent],
                kills=killed[agent],
                steps=statuses[step, "completed"],
                undone=statuses[step, "compensated"],
                recovered=claims.get(step, 0),
            )
            for step, agent in KINDS.items()
        ],
        absorbed=sum(
            each.calls - (2 if each.state == "cancelled" else 1) for each in case.bookings
        ),
        duration_s=round(duration_s, 1),
        findings=findings,
        holds=not findings,
    )


def render(report: Report) -> RenderableType:
    """For people."""
    table = Table("agent", "written in", "kills", "steps done", "undone", "taken over", box=None)
    for each in report.agents:
        figures = (each.kills, each.steps, each.undone, each.recovered)
        table.add_row(each.agent, each.language, *map(str, figures))
    trips = ", ".join(f"{count} {status}" for status, count in report.trips.items())
    kills = ", ".join(f"{count} {victim}" for victim, count in report.kills.items())
    lines = [
        f"trips: {trips}; killed: {kills or 'nobody'}; {report.duration_s:g} s",
        f"{report.absorbed} calls were repeated, and took effect once",
        *(
            printable(f"{one.clause}: {one.task}: {one.detail}")
            for one in report.findings[:FINDINGS_SHOWN_MAX]
        ),
        "The audit holds." if report.holds else f"{len(report.findings)} findings.",
    ]
    return Group(table, *map(Text, lines))
