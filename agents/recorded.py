"""What a task's record tells of its steps: what each was given, and what came of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headway.agents.entries import Entry, Phase
from headway.agents.export_views import TaskRecord


@dataclass(slots=True)
class Outcome:
    """How a step stands at the end of a record. `attempts` are the numbers of the attempts that
    succeeded, by phase."""

    attempts: dict[Phase, int] = field(default_factory=dict)
    known: bool = False
    result: Any = None


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One journal of a record: what its handler was given, and how that ended.

    `completed`: the handler's success is recorded, with `returned` as its result.
    """

    step: str
    phase: Phase
    agent: str
    handler: str
    attempt: int
    input: Any
    results: dict[str, Any]
    result: Any  # of the action, for its compensation
    returned: Any  # by the action
    outcome_unknown: bool
    completed: bool
    entries: list[Entry]


def runs_of(record: TaskRecord) -> Iterator[RecordedRun]:
    """The runs whose journals the record has, in its order."""
    steps, outcomes = _steps(record), _outcomes(record)
    for journal in record.journals:
        step, outcome = steps[journal.step], outcomes[journal.step]
        acting = journal.phase == "action"
        agent, _, handler = (step["action"] if acting else step["compensate"]).partition(".")
        own = step.get("input")
        before = [name for name in _before(steps, journal.step) if outcomes[name].known]
        yield RecordedRun(
            journal.step,
            journal.phase,
            agent,
            handler,
            outcome.attempts.get(journal.phase, 1),
            record.input if own is None else own,
            {name: outcomes[name].result for name in before},
            None if acting else outcome.result,
            outcome.result,
            not acting and not outcome.known,
            journal.phase in outcome.attempts,
            journal.entries,
        )


def _steps(record: TaskRecord) -> dict[str, dict[str, Any]]:
    """The steps of the definition that the task ran last, and those that were handed off to."""
    steps = {step["name"]: step for step in record.definitions[-1]["steps"]}
    for entry in record.history:
        if entry.type != "StepsAppended":
            continue
        for step in entry.data["steps"]:
            steps[step["name"]] = {**step, "after": [*step.get("after", ()), entry.data["by"]]}
    return steps


def _before(steps: dict[str, dict[str, Any]], step: str) -> list[str]:
    """All that a step comes after."""
    found: dict[str, None] = {}
    waiting = list(steps[step].get("after", ()))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting += steps[name].get("after", ())
    return [name for name in steps if name in found]


def _outcomes(record: TaskRecord) -> dict[str, Outcome]:
    outcomes = {name: Outcome() for name in _steps(record)}
    signals: dict[str, Any] = {}
    for entry in record.history:
        data = entry.data
        match entry.type:
            case "SignalReceived":
                signals[data["id"]] = data.get("payload")
            case "SignalTaken":
                _know(outcomes[data["step"]], signals.get(data["id"]))
            case "StepApproved":
                said = {"by": data.get("by", ""), "reason": data.get("reason", "")}
                _know(outcomes[data["step"]], {"approved": True, **said})
            case "StepCompleted" | "LateSuccess":
                outcomes[data["step"]].attempts["action"] = data["attempt"]
                _know(outcomes[data["step"]], data.get("result"))
            case "StepKept":
                _know(outcomes[data["step"]], data.get("result"))
            case "StepCompensated":
                outcomes[data["step"]].attempts["compensation"] = data["attempt"]
            case "StepSettled" if data["status"] == "completed":
                _know(outcomes[data["step"]], data.get("result"))
    return outcomes


def _know(outcome: Outcome, result: Any) -> None:
    outcome.known, outcome.result = True, result
