"""What is counted of what was committed: listeners of the engine's and the journals' commits."""

from __future__ import annotations

from collections.abc import Sequence

from headway.agents import telemetry as t
from headway.agents.overview_views import OverviewView
from headway.coordinator.decisions import Decision
from headway.coordinator.journal_rows import Change
from headway.coordinator.metrics import Labels, Metrics
from headway.coordinator.observing import (
    AttemptEnded,
    Ended,
    Happening,
    Outcome,
    Parked,
    Recovered,
    Resumed,
    Submitted,
    TurnedAround,
)
from headway.sagas.task import Phase

_ENDINGS = ("result", "failure", "void")


class Counting:
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def commits(self, decisions: Sequence[Decision]) -> None:
        """A batch of the engine's."""
        changed = sum(1 for decision in decisions if decision.change is not None)
        self._metrics.add(t.COMMITS, changed)

    def count(self, committed: Sequence[tuple[str, Happening]]) -> None:
        """Tasks and attempts."""
        attempts: dict[tuple[str, Outcome, Phase], list[AttemptEnded]] = {}
        for saga, happened in committed:
            if isinstance(happened, AttemptEnded):
                of = happened.agent, happened.outcome, happened.phase
                alike = attempts.get(of)
                if alike is None:
                    alike = attempts[of] = []
                alike.append(happened)
            else:
                self._task(saga, happened)
        for (agent, outcome, phase), ended in attempts.items():
            self._attempts((agent, phase.value, outcome), ended)

    def _task(self, saga: str, happened: Happening) -> None:
        add = self._metrics.add
        match happened:
            case Submitted():
                add(t.TASKS_SUBMITTED, 1, saga)
            case Ended(_, status, duration_ms):
                add(t.TASKS_ENDED, 1, saga, status)
                self._metrics.record(t.TASK_DURATION, [duration_ms / 1000], saga, status)
            case Recovered():
                add(t.RECOVERIES, 1, happened.agent, happened.how)
            case TurnedAround():
                add(t.TASKS_TURNED_AROUND, 1, saga)
            case Parked():
                add(t.TASKS_PARKED, 1, saga, happened.status)
            case Resumed():
                add(t.TASKS_RESUMED, 1, saga)

    def _attempts(self, labels: Labels, ended: Sequence[AttemptEnded]) -> None:
        """Attempts of one agent that ended alike."""
        self._metrics.add(t.ATTEMPTS_ENDED, len(ended), *labels)
        took = [each.duration_ms / 1000 for each in ended if each.duration_ms is not None]
        self._metrics.record(t.ATTEMPT_DURATION, took, *labels)
        for each in ended:
            if each.error:
                self._metrics.add(t.FAILURES, 1, each.agent, each.error)
            if each.retry:
                self._metrics.add(t.RETRIES, 1, each.agent)

    def batch(self, items: int, took_s: float) -> None:
        """One batch of the engine's was committed."""
        self._metrics.record(t.COMMIT_DURATION, [took_s])
        self._metrics.record(t.COMMIT_ITEMS, [items])

    def journaled(self, changes: Sequence[Change]) -> None:
        """Calls and what they used, of a batch of the journals'."""
        add = self._metrics.add
        for change in changes:
            agent = change.after.agent
            for row in change.rows:
                if row.kind in _ENDINGS:
                    add(t.CALLS, 1, agent, row.tool or "unknown", row.kind)
            if change.spent.tokens:
                add(t.TOKENS, change.spent.input_tokens, agent, "input")
                add(t.TOKENS, change.spent.output_tokens, agent, "output")
            if change.spent.cost_usd:
                add(t.COSTS, change.spent.cost_usd, agent)

    def look(self, view: OverviewView) -> None:
        """What there is now."""
        now, show = view.now, self._metrics.set
        counts: dict[Labels, float] = {(status,): tasks for status, tasks in view.counts.items()}
        show(t.TASKS, counts)
        show(t.TASKS_WAITING, {(): view.parked})
        show(t.AGENTS, {(): view.agents})
        show(t.INSTANCES, {(): view.instances})
        since = {"commands": view.oldest_dispatch_at, "timers": view.oldest_due_at}
        ages: dict[Labels, float] = {
            (queue,): 0.0 if at is None else max(0.0, (now - at).total_seconds())
            for queue, at in since.items()
        }
        show(t.QUEUE_AGE, ages)
