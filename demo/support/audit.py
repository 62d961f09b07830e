"""The audit of a kill sweep: each harmed task held against the unharmed one of its kind.

Pure functions over the tasks as the coordinator tells them, their journals, the books of the model
and of the services, and what the person approved. The clauses:

    met         the order to kill was carried out
    ended       the task succeeded
    same        it ended with the same result, after the same calls with the same answers
    once        each call that has an effect, or is paid for, was applied exactly once, and no
                order was paid back twice and no customer written to twice
    effects     the same payments, mails and purchases, and no others
    billed      the model billed exactly what the journal has
    approved    a person approved each large refund exactly once

No finding means that killing made no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal
from uuid import UUID

import orjson
from headway.agents.entries import Entry
from headway.agents.identity import ACTION, invocation_id, operation_id
from headway.agents.views import TaskView
from headway.demo.support.downstream import LARGE_REFUND_TOOL, REFUND_TOOL
from headway.demo.support.evidence import Effect, Evidence
from headway.demo.support.stub import COMPLETIONS

WITH_EFFECT = frozenset({REFUND_TOOL, LARGE_REFUND_TOOL, "send_mail", "purchase"})

Clause = Literal["met", "ended", "same", "once", "effects", "billed", "approved"]


@dataclass(frozen=True)
class Run:
    """One task: what was done to it, and what is known of it.

    Attributes:
        kind: runs of one kind are to end alike.
        number: the digits that tell its customer from all others.
        victim: who was to be killed or frozen; empty for the unharmed one.
        entry, when: of its journal, and on which side of it.
        met: whether that happened.
        approvals: how often a person approved one of its calls.
        took_s: from its submission until it was settled, in seconds.
    """

    kind: str
    number: str
    victim: str
    entry: str
    when: str
    met: bool
    view: TaskView
    entries: tuple[Entry, ...]
    approvals: int
    took_s: float

    @property
    def task(self) -> UUID:
        return self.view.task

    @property
    def name(self) -> str:
        """What was done to it, in words."""
        return f"{self.kind}, {self.victim} {self.when} {self.entry}" if self.victim else self.kind

    @cached_property
    def results(self) -> dict[str, Entry]:
        """The results in its journal, by invocation."""
        [step] = self.view.steps
        operation = operation_id(self.task, step.name, ACTION)
        return {
            str(invocation_id(operation, entry.key)): entry
            for entry in self.entries
            if entry.kind == "result"
        }

    @cached_property
    def story(self) -> list[tuple[str, str]]:
        """Its calls by key, each with its answer, as they would be for any other customer."""
        return sorted((entry.key, self.plain(entry.data)) for entry in self.results.values())

    def plain(self, value: Any) -> str:
        """JSON without what tells this customer from the others."""
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode().replace(self.number, "#")


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach: of which clause, by what was done to which task, and how."""

    clause: Clause
    subject: str
    detail: str


@dataclass(frozen=True)
class Case:
    """Everything that the audit looks at. Each kind has exactly one unharmed run.

    A model that is not `scripted` says something else each time, and keeps its books elsewhere:
    then only what holds of any conversation is looked at.
    """

    runs: Sequence[Run]
    evidence: Evidence
    scripted: bool = True

    @cached_property
    def unharmed(self) -> dict[str, Run]:
        return {run.kind: run for run in self.runs if not run.victim}

    @cached_property
    def harmed(self) -> list[Run]:
        return [run for run in self.runs if run.victim]

    @cached_property
    def applied(self) -> Counter[str]:
        """How often each invocation was applied."""
        return Counter(call.invocation for call in self.evidence.calls if call.outcome == "applied")

    @cached_property
    def owners(self) -> dict[str, Run]:
        """Whose an invocation is."""
        return {invocation: run for run in self.runs for invocation in run.results}

    def effects_of(self, run: Run) -> list[str]:
        """What took effect for a run, as it would be told of any other."""
        return sorted(
            run.plain([effect.service, effect.subject, effect.detail])
            for effect in self.evidence.effects
            if effect.invocation in run.results
        )


def audit(case: Case) -> list[Finding]:
    """Every breach of every clause; none means that killing made no difference."""
    clauses = _ALWAYS + _SCRIPTED if case.scripted else _ALWAYS
    return [finding for clause in clauses for finding in clause(case)]


def _met(case: Case) -> Iterator[Finding]:
    for run in case.harmed:
        if not run.met:
            yield Finding("met", run.name, "was never carried out")


def _ended(case: Case) -> Iterator[Finding]:
    for run in case.runs:
        if run.view.status != "succeeded":
            yield Finding("ended", run.name, f"is {run.view.status}: {run.view.reason}")


def _same(case: Case) -> Iterator[Finding]:
    for run in case.harmed:
        model = case.unharmed[run.kind]
        if run.plain(run.view.results) != model.plain(model.view.results):
            yield Finding("same", run.name, f"ended with {run.plain(run.view.results)}")
        if run.story != model.story:
            yield Finding("same", run.name, f"made other calls: {_difference(run, model)}")


def _difference(run: Run, model: Run) -> str:
    calls, wanted = dict(run.story), dict(model.story)
    keys = sorted(calls.keys() | wanted.keys())
    return ", ".join(key for key in keys if calls.get(key) != wanted.get(key))


def _once(case: Case) -> Iterator[Finding]:
    for invocation, times in case.applied.items():
        owner = case.owners.get(invocation)
        if owner is None:
            yield Finding("once", invocation, "was applied, and is in no journal")
        elif times > 1:
            key = owner.results[invocation].key
            yield Finding("once", owner.name, f"{key} was applied {times} times")
    for run in case.runs:
        for invocation, entry in run.results.items():
            if entry.tool in WITH_EFFECT and not case.applied[invocation]:
                yield Finding("once", run.name, f"{entry.key} was never applied")
    twice = Counter(map(_target, case.evidence.effects))
    for target, times in twice.items():
        if times > 1:
            yield Finding("once", " ".join(target), f"took effect {times} times")


def _target(effect: Effect) -> tuple[str, str]:
    return effect.service, effect.subject


def _effects(case: Case) -> Iterator[Finding]:
    for run in case.harmed:
        found, wanted = case.effects_of(run), case.effects_of(case.unharmed[run.kind])
        if found != wanted:
            yield Finding("effects", run.name, f"had {found}, not {wanted}")


def _billed(case: Case) -> Iterator[Finding]:
    billed: Counter[str] = Counter()
    for call in case.evidence.calls:
        if call.service == COMPLETIONS:
            billed[call.invocation] += call.tokens
    for run in case.runs:
        for invocation, entry in run.results.items():
            used = entry.usage.tokens if entry.usage else 0
            if used != billed[invocation]:
                detail = f"{entry.key} used {used} tokens, billed were {billed[invocation]}"
                yield Finding("billed", run.name, detail)


def _approved(case: Case) -> Iterator[Finding]:
    for run in case.harmed:
        wanted = sum(entry.tool == LARGE_REFUND_TOOL for entry in run.results.values())
        if run.approvals != wanted:
            detail = f"a person approved {run.approvals} times, not {wanted}"
            yield Finding("approved", run.name, detail)


_ALWAYS = (_ended, _once, _approved)
_SCRIPTED = (_met, _same, _effects, _billed)
