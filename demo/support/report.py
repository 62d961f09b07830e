"""What a kill sweep came to, in figures and for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from headway.cli.output import printable
from headway.demo.report import percentile
from headway.demo.support.audit import Case, Clause, Finding, Run
from headway.demo.support.downstream import MAIL, PAYMENTS, PURCHASES
from headway.demo.support.stub import COMPLETIONS
from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.table import Table

FINDINGS_SHOWN_MAX = 20


class FindingView(BaseModel):
    clause: Clause
    subject: str
    detail: str


class HarmedTask(BaseModel):
    """One task: who was killed or frozen, at which entry of its journal, and how it ended."""

    kind: str
    victim: str
    entry: str
    when: str
    task: str
    status: str
    took_s: float


class Report(BaseModel):
    """The sweep in figures.

    Attributes:
        places: how many places there are in the journal of each kind of task: before, during and
            after each request.
        harmed: tasks by what was done to them.
        unharmed_s: how long a task takes that nobody harms.
        model_calls, tokens: as journals have them.
        billed: model calls in the books of the scripted model.
        payments, mails, purchases: how many took effect.
        absorbed: calls that were repeated, and answered as before.
        approvals: by a person.
        holds: whether the audit found nothing at all.
    """

    places: dict[str, int]
    harmed: dict[str, int]
    unharmed_s: dict[str, float]
    p50_s: float
    slowest_s: float
    duration_s: float
    model_calls: int
    billed: int
    tokens: int
    payments: int
    mails: int
    purchases: int
    absorbed: int
    approvals: int
    tasks: list[HarmedTask]
    findings: list[FindingView]
    holds: bool


def compile_report(
    case: Case, findings: Sequence[Finding], places: dict[str, int], duration_s: float
) -> Report:
    """Count."""
    calls = case.evidence.calls
    took_s = [run.took_s for run in case.harmed]
    effects = Counter(effect.service for effect in case.evidence.effects)
    answers = [entry for run in case.runs for entry in run.results.values() if entry.model]
    return Report(
        places=places,
        harmed=dict(Counter(f"{run.kind}, {run.victim}" for run in case.harmed)),
        unharmed_s={run.kind: run.took_s for run in case.unharmed.values()},
        p50_s=percentile(took_s, 50),
        slowest_s=percentile(took_s, 100),
        duration_s=duration_s,
        model_calls=len(answers),
        billed=sum((each.service, each.outcome) == (COMPLETIONS, "applied") for each in calls),
        tokens=sum(entry.usage.tokens for entry in answers if entry.usage),
        payments=effects[PAYMENTS],
        mails=effects[MAIL],
        purchases=effects[PURCHASES],
        absorbed=sum(each.outcome == "repeated" for each in calls),
        approvals=sum(run.approvals for run in case.runs),
        tasks=[_told(run) for run in case.harmed],
        findings=[FindingView(**asdict(finding)) for finding in findings],
        holds=not findings,
    )


def render(report: Report) -> RenderableType:
    """The report for people."""
    took = [_took(report)] if report.tasks else []
    return Group(*took, _summary(report), *_finding_lines(report))


def _took(report: Report) -> Table:
    """A line for each entry of a journal, and a column for each victim."""
    victims = list(dict.fromkeys(task.victim for task in report.tasks))
    title = (
        "Seconds until done, when killed before, during and after the request that wrote an entry"
    )
    table = Table(title=title, title_justify="left")
    for column in ("task", "entry", *victims):
        table.add_column(column)
    lines: dict[tuple[str, str], dict[str, list[str]]] = {}
    for task in report.tasks:
        ending = f"{task.took_s:.1f}" + ("" if task.status == "succeeded" else f" {task.status}")
        line = lines.setdefault((task.kind, task.entry), {})
        line.setdefault(task.victim, []).append(ending)
    for (kind, entry), endings in lines.items():
        table.add_row(kind, entry, *("  ".join(endings.get(each, ())) for each in victims))
    return table


def _told(run: Run) -> HarmedTask:
    return HarmedTask(
        kind=run.kind,
        victim=run.victim,
        entry=run.entry,
        when=run.when,
        task=str(run.task),
        status=run.view.status,
        took_s=round(run.took_s, 3),
    )


def _summary(report: Report) -> Table:
    table = Table(show_header=False)
    for kind, count in report.places.items():
        table.add_row(f"places in a journal, {kind}", f"{count}")
    for harm, count in report.harmed.items():
        table.add_row(f"tasks harmed, {harm}", f"{count}")
    if report.tasks:
        table.add_row("until done", f"p50 {report.p50_s:.1f} s, slowest {report.slowest_s:.1f} s")
    table.add_row("model calls", f"{report.model_calls}, {report.tokens} tokens")
    table.add_row("billed by the scripted model", f"{report.billed}")
    table.add_row("payments, mails", f"{report.payments}, {report.mails}")
    table.add_row("purchases", f"{report.purchases}")
    table.add_row("approvals by a person", f"{report.approvals}")
    table.add_row("repeated calls absorbed", f"{report.absorbed}")
    table.add_row("audit", "holds" if report.holds else f"{len(report.findings)} findings")
    return table


def _finding_lines(report: Report) -> list[str]:
    shown = report.findings[:FINDINGS_SHOWN_MAX]
    lines = [printable(f"{one.clause}: {one.subject}: {one.detail}") for one in shown]
    more = len(report.findings) - len(shown)
    return [*lines, f"and {more} more findings"] if more > 0 else lines
