"""What a drill found: a trial for each round of each fault, and the verdict. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal
from uuid import UUID

from headway.agents.views import HistoryEntry
from pydantic import BaseModel, Field

_DONE = {"StepCompleted", "LateSuccess"}


class Trial(BaseModel):
    """One round of one fault. `took_s` is from the fault to what was expected; `bound_s` is what
    is documented, and being late fails nothing."""

    fault: str
    round: int
    recovered: bool
    took_s: float | None = None
    bound_s: float
    how: str = Field(description="what recovered, or what did not")
    why: str = Field(description="why it counts")
    tasks: list[UUID] = Field(default_factory=list)

    @property
    def verdict(self) -> Literal["recovered", "late", "FAILED"]:
        if not self.recovered or self.took_s is None:
            return "FAILED"
        return "recovered" if self.took_s <= self.bound_s else "late"


class FaultView(BaseModel):
    """A fault as `--list` shows it."""

    name: str
    does: str
    how: str
    why: str
    bound_s: float


class FaultList(BaseModel):
    faults: list[FaultView]


class Report(BaseModel):
    """`differences`: where the downstream's log and the tasks' histories disagree."""

    ok: bool
    trials: list[Trial]
    tasks: int
    differences: list[str]


def report(trials: list[Trial], differences: list[str]) -> Report:
    recovered = all(trial.recovered for trial in trials)
    return Report(
        ok=recovered and not differences,
        trials=trials,
        tasks=len({task for trial in trials for task in trial.tasks}),
        differences=differences,
    )


def differences(
    task: UUID, history: Sequence[HistoryEntry], effects: dict[str, str], payments: int
) -> Iterable[str]:
    """Where a task's history says otherwise than the downstream: `effects` by step, and how often
    it was paid for."""
    done = {entry.data["step"] for entry in history if entry.type in _DONE}
    undone = {entry.data["step"] for entry in history if entry.type == "StepCompensated"}
    for step in sorted(done - undone):
        if effects.get(step) != "done":
            yield f"task {task}: {step} is done, but its effect is {effects.get(step, 'lost')}"
    for step in sorted(step for step, state in effects.items() if state == "done"):
        if step not in done or step in undone:
            yield f"task {task}: the effect of {step} is there, but it is not done"
    if payments > 1:
        yield f"task {task}: paid {payments} times"
    if "charge" in done and payments == 0:
        yield f"task {task}: charge is done, but nothing was paid"
