"""What a run came to: counted from the claims, the evidence and the audit's findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from headway.cli.output import printable
from headway.demo.audit import Case, Clause, Finding
from headway.demo.killer import Killed
from pydantic import BaseModel
from rich.console import Group, RenderableType
from rich.table import Table

FINDINGS_SHOWN_MAX = 20


class ParkedOrder(BaseModel):
    """An order that waits for a person, and why."""

    order: str
    saga: str
    task: str
    reason: str


class FindingView(BaseModel):
    clause: Clause
    subject: str
    detail: str


class Latency(BaseModel):
    """From a submission until its end, or until it was parked; milliseconds."""

    p50_ms: float
    p99_ms: float


class Report(BaseModel):
    """The run in figures.

    Attributes:
        tasks: how many tasks ended in which status, by saga.
        kills: by role.
        recoveries: attempts that a worker took over from one that was gone.
        republished: commands that were lost in the streams and published again.
        timed_out, retried: attempts given up as unknown; attempts that failed and were due again.
        duplicates_absorbed: calls that the service answered from its fence.
        late_actions_refused: actions that came after their compensation.
        duplicates_applied, lost: the audit's findings of these kinds; both must be 0.
        holds: whether the audit found nothing at all.
    """

    seed: int
    orders: int
    duration_s: float
    tasks: dict[str, dict[str, int]]
    kills: dict[str, int]
    recoveries: int
    republished: int
    timed_out: int
    retried: int
    calls: int
    duplicates_absorbed: int
    late_actions_refused: int
    duplicates_applied: int
    lost: int
    latency: Latency
    parked: list[ParkedOrder]
    findings: list[FindingView]
    holds: bool


def compile_report(
    seed: int,
    case: Case,
    findings: Sequence[Finding],
    kills: Iterable[Killed],
    latencies_s: Sequence[float],
    duration_s: float,
) -> Report:
    """Count everything that the report tells."""
    happened = Counter(entry.type for claim in case.claims for entry in claim.history)
    outcomes = Counter(call.outcome for call in case.evidence.calls)
    clauses = Counter(finding.clause for finding in findings)
    return Report(
        seed=seed,
        orders=len(case.orders),
        duration_s=round(duration_s, 2),
        tasks=_tasks(case),
        kills=dict(sorted(Counter(killed.victim for killed in kills).items())),
        recoveries=happened["AttemptClaimed"],
        republished=happened["AttemptRepublished"],
        timed_out=happened["AttemptTimedOut"],
        retried=_retried(case),
        calls=len(case.evidence.calls),
        duplicates_absorbed=outcomes["duplicate"],
        late_actions_refused=outcomes["fenced"],
        duplicates_applied=clauses["twice"],
        lost=clauses["lost"],
        latency=Latency(
            p50_ms=percentile(latencies_s, 50) * 1000, p99_ms=percentile(latencies_s, 99) * 1000
        ),
        parked=_parked(case),
        findings=[FindingView(**asdict(finding)) for finding in findings],
        holds=not findings,
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """The smallest value that `percent` per cent of all do not exceed; 0 of nothing."""
    if not values:
        return 0.0
    rank = math.ceil(len(values) * percent / 100)
    return sorted(values)[max(rank, 1) - 1]


def render(report: Report) -> RenderableType:
    """The report for people."""
    title = f"Order desk: {report.orders} orders in {report.duration_s:.1f} s, seed {report.seed}"
    table = Table(title=title, show_header=False, title_justify="left")
    for saga, statuses in report.tasks.items():
        table.add_row(saga, _in_words(statuses))
    table.add_row("kills", _in_words(report.kills) or "none")
    table.add_row("recoveries", f"{report.recoveries} attempts taken over")
    table.add_row("republished", f"{report.republished} commands")
    table.add_row("timed out, retried", f"{report.timed_out}, {report.retried} attempts")
    table.add_row("duplicates absorbed", f"{report.duplicates_absorbed} of {report.calls} calls")
    table.add_row("late actions refused", str(report.late_actions_refused))
    table.add_row("duplicates applied", str(report.duplicates_applied))
    table.add_row("lost", str(report.lost))
    p50, p99 = report.latency.p50_ms, report.latency.p99_ms
    table.add_row("latency", f"p50 {p50:,.0f} ms, p99 {p99:,.0f} ms")
    table.add_row("audit", "holds" if report.holds else f"{len(report.findings)} findings")
    return Group(table, *_parked_lines(report), *_finding_lines(report))


def _tasks(case: Case) -> dict[str, dict[str, int]]:
    counts = Counter((claim.task.saga, claim.task.status) for claim in case.claims)
    tasks: dict[str, dict[str, int]] = {}
    for (saga, status), count in sorted(counts.items()):
        tasks.setdefault(saga, {})[status] = count
    return tasks


def _retried(case: Case) -> int:
    return sum(
        entry.type == "AttemptFailed" and bool(entry.data.get("retry_at"))
        for claim in case.claims
        for entry in claim.history
    )


def _parked(case: Case) -> list[ParkedOrder]:
    return [
        ParkedOrder(
            order=claim.order.order,
            saga=claim.task.saga,
            task=str(claim.task.task),
            reason=claim.task.reason,
        )
        for claim in case.claims
        if claim.is_parked
    ]


def _in_words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())


def _parked_lines(report: Report) -> list[str]:
    return [printable(f"parked: {one.order}, {one.saga}: {one.reason}") for one in report.parked]


def _finding_lines(report: Report) -> list[str]:
    shown = report.findings[:FINDINGS_SHOWN_MAX]
    lines = [printable(f"{one.clause}: {one.subject}: {one.detail}") for one in shown]
    more = len(report.findings) - len(shown)
    return [*lines, f"and {more} more findings"] if more > 0 else lines
