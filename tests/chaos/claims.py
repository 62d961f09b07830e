"""The audit from outside: what tasks claim, held against what the service's log says was done.

Pure functions. The clauses:

    lost         an accepted task is unknown; a completed step's effect is missing
    doubled      an effect was applied twice; a model was asked again for what the journal had
    left over    an effect stands that no step of its task claims, or that it says was undone
    stuck        a task neither ended nor waits for a person
    unexplained  a task waits for a person without a reason, or ended as it cannot have
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from chaos.crew import EFFECTS_OF_RUN
from chaos.downstream import Entry
from headway.agents.identity import ACTION, operation_id
from headway.agents.views import ENDED, PARKED

Clause = Literal["lost", "doubled", "left over", "stuck", "unexplained", "law"]

OPEN = frozenset({"unknown", "scheduled", "compensating", "failed_to_compensate"})
WITHOUT_EFFECT = frozenset({"crash"})  # steps that only end their process


@dataclass(frozen=True)
class Finding:
    clause: Clause
    subject: str
    detail: str

    def __str__(self) -> str:
        return f"{self.clause}: {self.subject}: {self.detail}"


@dataclass(frozen=True)
class Told:
    """What the coordinators' database says of a task."""

    id: str
    saga: str
    status: str
    reason: str
    steps: dict[str, str] = field(default_factory=dict)


@dataclass
class Done:
    """What the log says of one effect."""

    task: str
    of: str
    step: str
    applied: int = 0
    undone: bool = False

    @property
    def stands(self) -> bool:
        return self.applied > 0 and not self.undone


def effects(log: Iterable[Entry]) -> dict[str, Done]:
    """Every effect that was ever applied, by its id."""
    found: dict[str, Done] = {}
    of: defaultdict[str, list[Done]] = defaultdict(list)
    for entry in log:
        match entry.what, entry.outcome:
            case (("do" | "use" | "send"), "applied"):
                if entry.id not in found:
                    found[entry.id] = Done(entry.task, entry.of, entry.step)
                    of[entry.of].append(found[entry.id])
                found[entry.id].applied += 1
            case (("undo" | "recall"), "undone"):
                for done in of[entry.of]:
                    done.undone = True
    return found


def audit(told: Collection[Told], accepted: Collection[str], log: list[Entry]) -> list[Finding]:
    """Every breach; none means that the promise held."""
    known = {task.id: task for task in told}
    done = effects(log)
    standing: defaultdict[str, defaultdict[str, list[Done]]]
    standing = defaultdict(lambda: defaultdict(list))
    for each in done.values():
        if each.stands:
            standing[each.task][each.of].append(each)
    found = [
        Finding("lost", task, "was accepted, and nobody knows it")
        for task in accepted
        if task not in known
    ]
    for task in told:
        found += _of_task(task, standing[task.id])
    found += _doubled(done)
    found += _asked_again(log)
    strange = {entry.task for entry in log} - known.keys()
    found += [Finding("left over", task, "something was asked for in its name") for task in strange]
    return found


def _of_task(task: Told, standing: dict[str, list[Done]]) -> Iterator[Finding]:
    if task.status not in ENDED | PARKED:
        yield Finding("stuck", task.id, f"is {task.status}: {task.steps}")
        return
    if task.status in PARKED and not task.reason:
        yield Finding("unexplained", task.id, f"is {task.status} without a reason")
    if task.saga == "doomed" and task.status != "parked":
        yield Finding("unexplained", task.id, f"is {task.status}, though its agent always crashes")
    if task.status == "succeeded" and set(task.steps.values()) != {"completed"}:
        yield Finding("unexplained", task.id, f"succeeded with {task.steps}")
    if task.status == "compensated" and set(task.steps.values()) & (OPEN | {"completed"}):
        yield Finding("unexplained", task.id, f"is compensated with {task.steps}")
    claimed = set()
    for step, status in task.steps.items():
        operation = str(operation_id(UUID(task.id), step, ACTION))
        there = standing.get(operation, [])
        claimed.add(operation)
        if status == "completed" and not _whole(step, there):
            yield Finding("lost", task.id, f"{step} is completed, of its effect there is {there}")
        elif status not in OPEN | {"completed"} and there:
            yield Finding("left over", task.id, f"{step} is {status}, yet {there} stands")
    for operation in standing.keys() - claimed:
        yield Finding("left over", task.id, f"{standing[operation]} belongs to none of its steps")


def _whole(step: str, standing: list[Done]) -> bool:
    if step in WITHOUT_EFFECT:
        return True
    if step != "run":
        return len(standing) == 1
    tools = [done.step for done in standing]
    return {tool: tools.count(tool) for tool in tools} == EFFECTS_OF_RUN


def _doubled(done: dict[str, Done]) -> Iterator[Finding]:
    for each in done.values():
        if each.applied > 1:
            yield Finding("doubled", each.task, f"{each.step} was applied {each.applied} times")


def _asked_again(log: list[Entry]) -> Iterator[Finding]:
    """`pay` is called once the answer of `think` is in the journal: nobody may think after that."""
    paid: set[str] = set()
    for entry in log:
        if entry.what == "use" and entry.outcome:
            paid.add(entry.of)
        elif entry.what == "model" and not entry.outcome and entry.of in paid:
            yield Finding("doubled", entry.task, "the model was asked again after its answer")
