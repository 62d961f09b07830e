"""Every metric, in one table: what it counts, in what, and what it is told apart by.

Always holds: a metric has as many series as its attributes allow and no more. An attribute whose
values come from outside (a saga's name, an agent's, an error's type) has a bound; what is beyond
it is counted under OTHER.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.agents import telemetry as t

OTHER = "other"
DURATIONS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400)
COMMITS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

VALUES_MAX = {
    t.SAGA: 100,
    t.AGENT: 100,
    t.GEN_AI_TOOL: 100,
    t.ERROR_TYPE: 50,
    t.STATUS: 6,
    t.PHASE: 2,
    t.OUTCOME: 4,
    t.HOW: 2,
    t.QUEUE: 2,
    t.SIGNAL: 2,
    t.GEN_AI_TOKEN_TYPE: 2,
}
"""How many values of an attribute are told apart."""

SERIES_MAX = 2_000  # of one metric, whatever its attributes


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric. `unit` as in UCUM, which is what OpenTelemetry takes; `bounds` are a histogram's
    upper limits."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    description: str
    attributes: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    @property
    def prometheus(self) -> str:
        """Its name on `/metrics`, as a collector gives it, too."""
        unit = "_seconds" if self.unit == "s" else ""
        total = "_total" if self.kind == "counter" else ""
        return f"{self.name.replace('.', '_')}{unit}{total}"


INSTRUMENTS = {
    each.name: each
    for each in (
        Instrument(t.TASKS_SUBMITTED, "counter", "{task}", "Tasks that were submitted.", (t.SAGA,)),
        Instrument(
            t.TASKS_ENDED,
            "counter",
            "{task}",
            "Tasks that succeeded or were compensated.",
            (t.SAGA, t.STATUS),
        ),
        Instrument(
            t.TASKS_PARKED,
            "counter",
            "{task}",
            "Tasks that came to wait for a person.",
            (t.SAGA, t.STATUS),
        ),
        Instrument(
            t.TASKS_RESUMED, "counter", "{task}", "Parked tasks that were sent on.", (t.SAGA,)
        ),
        Instrument(
            t.TASKS_TURNED_AROUND,
            "counter",
            "{task}",
            "Tasks that began to be undone.",
            (t.SAGA,),
        ),
        Instrument(
            t.TASK_DURATION,
            "histogram",
            "s",
            "From a task's submission to its end.",
            (t.SAGA, t.STATUS),
            DURATIONS_S,
        ),
        Instrument(
            t.ATTEMPTS_ENDED,
            "counter",
            "{attempt}",
            "Attempts that ended.",
            (t.AGENT, t.PHASE, t.OUTCOME),
        ),
        Instrument(
            t.ATTEMPT_DURATION,
            "histogram",
            "s",
            "From an attempt's last publication to its end.",
            (t.AGENT, t.PHASE, t.OUTCOME),
            DURATIONS_S,
        ),
        Instrument(
            t.FAILURES,
            "counter",
            "{attempt}",
            "Attempts that failed or were given up.",
            (t.AGENT, t.ERROR_TYPE),
        ),
        Instrument(
            t.RETRIES,
            "counter",
            "{attempt}",
            "Failures after which another attempt follows.",
            (t.AGENT,),
        ),
        Instrument(
            t.RECOVERIES,
            "counter",
            "{recovery}",
            "Commands that were taken over, or published again because they were lost.",
            (t.AGENT, t.HOW),
        ),
        Instrument(
            t.CALLS,
            "counter",
            "{call}",
            "Tool and model calls that ended, from the journals.",
            (t.AGENT, t.GEN_AI_TOOL, t.OUTCOME),
        ),
        Instrument(
            t.TOKENS,
            "counter",
            "{token}",
            "Tokens that model calls used.",
            (t.AGENT, t.GEN_AI_TOKEN_TYPE),
        ),
        Instrument(t.COSTS, "counter", "{USD}", "What model calls cost.", (t.AGENT,)),
        Instrument(t.COMMITS, "counter", "{commit}", "Changes of tasks that were committed."),
        Instrument(
            t.COMMIT_DURATION,
            "histogram",
            "s",
            "Load, decide and commit one batch.",
            bounds=COMMITS_S,
        ),
        Instrument(t.COMMIT_ITEMS, "histogram", "{item}", "Items in one batch.", bounds=ITEMS),
        Instrument(t.TASKS, "gauge", "{task}", "Tasks there are, as counted last.", (t.STATUS,)),
        Instrument(t.TASKS_WAITING, "gauge", "{task}", "Tasks and calls that wait for a person."),
        Instrument(
            t.QUEUE_AGE,
            "gauge",
            "s",
            "Age of the oldest command without an answer, and by how much the first timer is late.",
            (t.QUEUE,),
        ),
        Instrument(t.AGENTS, "gauge", "{agent}", "Agents with a live instance."),
        Instrument(t.INSTANCES, "gauge", "{instance}", "Live instances of agents."),
        Instrument(
            t.SPANS_DROPPED,
            "counter",
            "{item}",
            "Batch spans and log records that were given up because nobody took them in time.",
            (t.SIGNAL,),
        ),
    )
}
