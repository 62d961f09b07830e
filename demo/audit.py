"""The audit: what the tasks claim, held against what the downstream service really did.

Pure functions over the orders, the tasks as the coordinator tells them, and the service's books,
fence and call log; what agents said on the way is not asked. The clauses:

    ended       each task succeeded, was compensated or is parked with its reason, and its status
                agrees with the steps below it
    lost        each order has its task, and each returned one its refund; each completed step has
                its effect, with the receipt that the task holds; each compensated step is undone,
                or barred for good
    twice       no order has two tasks of a saga, no operation was applied or undone twice, and no
                order met one action twice
    left over   each effect that stands belongs to a completed step, or to one that is parked
    log         the call log, the fence and the books tell the same story
    stock, money, parcels, mails
                each account holds what it opened with and what the claims move, to the unit
    history     each task's history has no gap and leads to its present version

No finding means that the promise held.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from uuid import UUID

from headway.agents.identity import ACTION, operation_id
from headway.agents.views import PARKED, HistoryEntry, StepView, TaskView
from headway.demo.books import ACTIONS, Entry, opening
from headway.demo.evidence import Evidence
from headway.demo.orders import Order
from headway.demo.sagas import FULFIL_ORDER, REFUND

Clause = Literal[
    "ended", "lost", "twice", "left over", "log", "stock", "money", "parcels", "mails", "history"
]

_CLAUSE_OF_ACCOUNT: dict[str, Clause] = {
    "shelf": "stock",
    "reserved": "stock",
    "wallet": "money",
    "till": "money",
    "parcel": "parcels",
    "returns": "parcels",
    "letter": "mails",
    "post-office": "mails",
}
_NEVER_NEGATIVE = frozenset({"shelf", "reserved", "wallet", "till", "parcel", "returns", "letter"})
_NO_EFFECT = frozenset({"waiting", "skipped", "compensated"})


@dataclass(frozen=True, slots=True)
class Claim:
    """What the coordinator says of the task that ran one saga for one order."""

    order: Order
    task: TaskView
    history: tuple[HistoryEntry, ...]

    def operation(self, step: StepView) -> str:
        return str(operation_id(self.task.task, step.name, ACTION))

    @property
    def is_parked(self) -> bool:
        return self.task.status in PARKED


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach: of which clause, by which order or account, and how."""

    clause: Clause
    subject: str
    detail: str


@dataclass(frozen=True)
class Case:
    """Everything that the audit looks at."""

    orders: Sequence[Order]
    claims: Sequence[Claim]
    evidence: Evidence

    @cached_property
    def writing_steps(self) -> list[tuple[Claim, StepView, str]]:
        """Each step that could have an effect, with its operation."""
        return [
            (claim, step, claim.operation(step))
            for claim in self.claims
            for step in claim.task.steps
            if not ACTIONS[step.action].read_only
        ]

    @cached_property
    def entries(self) -> dict[str, list[Entry]]:
        """What was posted, by operation."""
        found: defaultdict[str, list[Entry]] = defaultdict(list)
        for posted in self.evidence.entries:
            found[posted.operation].append(posted.entry)
        return found

    def stands(self, operation: str) -> bool:
        row = self.evidence.fence.get(operation)
        return row is not None and row.state == "done"


def audit(orders: Sequence[Order], claims: Sequence[Claim], evidence: Evidence) -> list[Finding]:
    """Every breach of every clause; none means that the audit holds."""
    case = Case(orders, claims, evidence)
    return [finding for clause in _CLAUSES for finding in clause(case)]


def _ended(case: Case) -> Iterator[Finding]:
    for claim in case.claims:
        yield from _ended_as_it_says(claim)


def _ended_as_it_says(claim: Claim) -> Iterator[Finding]:
    task, subject = claim.task, claim.order.order
    completed = [step.name for step in task.steps if step.status == "completed"]
    standing = [
        step.name
        for step in task.steps
        if step.status not in _NO_EFFECT | {"failed"} and not ACTIONS[step.action].read_only
    ]
    if not task.settled:
        yield Finding("ended", subject, f"{task.saga} is still {task.status}")
    elif claim.is_parked and not (task.reason and task.actions):
        yield Finding("ended", subject, f"{task.saga} is parked without a reason or a way on")
    elif task.status == "succeeded" and len(completed) != len(task.steps):
        yield Finding("ended", subject, f"{task.saga} succeeded with only {completed} completed")
    elif task.status == "compensated" and standing:
        yield Finding("ended", subject, f"{task.saga} is compensated, but for {standing}")


def _accounted_for(case: Case) -> Iterator[Finding]:
    statuses: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for claim in case.claims:
        statuses[claim.task.saga, claim.order.order].append(claim.task.status)
    for order in case.orders:
        fulfilments = statuses[FULFIL_ORDER, order.order]
        refunds = statuses[REFUND, order.order]
        is_refundable = order.returned and "succeeded" in fulfilments
        for saga, found, wanted in (
            (FULFIL_ORDER, len(fulfilments), 1),
            (REFUND, len(refunds), int(is_refundable)),
        ):
            if found != wanted:
                clause: Clause = "lost" if found < wanted else "twice"
                yield Finding(clause, order.order, f"has {found} tasks of {saga}, not {wanted}")


def _lost(case: Case) -> Iterator[Finding]:
    for claim, step, operation in case.writing_steps:
        row = case.evidence.fence.get(operation)
        state = row.state if row else "unheard of"
        detail = f"step {step.name} is {step.status}, its effect is {state}"
        if step.status == "completed":
            if row is None or row.state != "done":
                yield Finding("lost", claim.order.order, detail)
            elif _receipt_number(step) != row.number:
                detail = f"step {step.name} holds another receipt than number {row.number}"
                yield Finding("lost", claim.order.order, detail)
        elif step.status == "compensated" and state not in ("undone", "barred"):
            yield Finding("lost", claim.order.order, detail)


def _receipt_number(step: StepView) -> int | None:
    return step.result.get("number") if isinstance(step.result, dict) else None


def _twice(case: Case) -> Iterator[Finding]:
    effects = Counter(
        (call.operation, call.action, call.order, call.outcome)
        for call in case.evidence.calls
        if call.outcome in ("applied", "undone")
    )
    for (_, action, order, outcome), times in effects.items():
        if times > 1:
            yield Finding("twice", order, f"{action} was {outcome} {times} times")
    standing = Counter(
        (row.order, row.action) for row in case.evidence.fence.values() if row.state == "done"
    )
    for (order, action), times in standing.items():
        if times > 1:
            yield Finding("twice", order, f"{action} stands {times} times")


def _left_over(case: Case) -> Iterator[Finding]:
    claimed = {
        operation
        for claim, step, operation in case.writing_steps
        if step.status == "completed" or _is_open(claim, step)
    }
    for operation, row in case.evidence.fence.items():
        if row.state == "done" and operation not in claimed:
            yield Finding("left over", row.order, f"{row.action} stands, and no task claims it")


def _is_open(claim: Claim, step: StepView) -> bool:
    """Whether a person has yet to say how this step of a parked task ended."""
    return claim.is_parked and step.status not in _NO_EFFECT | {"completed"}


def _log(case: Case) -> Iterator[Finding]:
    logged = {(call.operation, call.outcome) for call in case.evidence.calls}
    orders = {order.order: order for order in case.orders}
    for operation in case.entries.keys() - case.evidence.fence.keys():
        yield Finding("log", operation, "is in the books without a fence row")
    for operation, row in case.evidence.fence.items():
        applied = row.state in ("done", "undone")
        undone = row.state == "undone"
        if applied != ((operation, "applied") in logged):
            yield Finding("log", row.order, f"{row.action} is {row.state}, the log disagrees")
        if undone != ((operation, "undone") in logged):
            yield Finding("log", row.order, f"{row.action} is {row.state}, the log disagrees")
        if row.order not in orders or row.action not in ACTIONS:
            yield Finding("log", row.order, f"{row.action} was never ordered")
            continue
        entries = ACTIONS[row.action].entries(orders[row.order])
        wanted = [*(entries if applied else ()), *(e.reversed() for e in entries if undone)]
        if Counter(case.entries.get(operation, [])) != Counter(wanted):
            yield Finding("log", row.order, f"the books do not show {row.action} as {row.state}")


def _balances(case: Case) -> Iterator[Finding]:
    opened = Counter({entry.account: entry.amount for entry in opening(case.orders)})
    if opened != Counter(case.evidence.opening):
        yield Finding("stock", "opening", "the books opened with something else")
    expected = Counter(opened)
    for claim, step, operation in case.writing_steps:
        if step.status == "completed" or (_is_open(claim, step) and case.stands(operation)):
            _add(expected, ACTIONS[step.action].entries(claim.order))
    posted = Counter(case.evidence.opening)
    _add(posted, (posted_entry.entry for posted_entry in case.evidence.entries))
    for account in sorted(expected.keys() | posted.keys() | case.evidence.balances.keys()):
        kind = account.partition("/")[0]
        holds = case.evidence.balances.get(account, 0)
        clause = _CLAUSE_OF_ACCOUNT.get(kind, "stock")
        if holds != expected[account]:
            detail = f"holds {holds}, by the tasks' claims it should hold {expected[account]}"
            yield Finding(clause, account, detail)
        if holds != posted[account]:
            detail = f"holds {holds}, its entries come to {posted[account]}"
            yield Finding(clause, account, detail)
        if holds < 0 and kind in _NEVER_NEGATIVE:
            yield Finding(clause, account, f"holds {holds}")


def _add(balances: Counter[str], entries: Iterable[Entry]) -> None:
    for entry in entries:
        balances[entry.account] += entry.amount


def _history(case: Case) -> Iterator[Finding]:
    seen: set[UUID] = set()
    for claim in case.claims:
        versions = [entry.version for entry in claim.history]
        if versions != list(range(1, len(versions) + 1)):
            yield Finding("history", claim.order.order, "its history has a gap")
        if not versions or versions[-1] != claim.task.version:
            detail = f"its history does not lead to version {claim.task.version}"
            yield Finding("history", claim.order.order, detail)
        if claim.task.task in seen:
            yield Finding("history", claim.order.order, "two claims are of one task")
        seen.add(claim.task.task)


_CLAUSES = (_ended, _accounted_for, _lost, _twice, _left_over, _log, _balances, _history)
