"""Shapes with what is no plain step: approvals, waits, sleeps, children, conditions, holds, plans
that grow, deadlines, outputs that must be accepted, and tasks that are themselves children.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corpus import NO_LIMIT, ONCE, Faults, Judged, Shape, steps
from headway.sagas import Definition, Saga, Step, Timeouts
from headway.sagas.circumstances import Bounds
from menu import LATER

FEW = Faults(attempts=1, stale=False, empties=False, failing_compensations=False, timeouts=False)
"""What may go wrong where something else is looked at: failures, cancelling, and people."""

FORKS = ("yes", "no", "odd")
QUALITY = ("good", "bad")


class Written:
    """A saga in the making, whose agents' steps are as those of `steps`."""

    def __init__(self, name: str) -> None:
        self.saga = Saga(name)

    def step(self, name: str, after: str = "", kind: str = "", **fields: Any) -> Written:
        policies: dict[str, Any] = {"retry": ONCE, "compensation_retry": ONCE, "timeouts": NO_LIMIT}
        self.saga.step(
            name,
            f"agent.{name}",
            compensate=None if kind else f"agent.undo-{name}",
            after=after.split(),
            pivot=kind == "!",
            read_only=kind == "?",
            **{**policies, **fields},
        )
        return self

    def child(self, name: str, after: str = "", **fields: Any) -> Written:
        policies = {"retry": ONCE, "compensation_retry": ONCE}
        self.saga.child(name, "smaller", after=after.split(), **{**policies, **fields})
        return self

    def define(self) -> Definition:
        return self.saga.define()


def asked(default: Any = "", timeout: float | None = 10.0) -> Definition:
    """An approval after something that must be undone if it is not given."""
    written = Written("asked").step("a")
    written.saga.approval("ok", after="a", timeout=timeout, default=default)
    return written.step("b", "ok").define()


def awaited() -> Definition:
    """Two waits for signals of one name, one of them later than the first may come."""
    written = Written("awaited").step("a")
    written.saga.wait("w", signal="go", timeout=10.0)
    written.saga.wait("v", signal="go", after="a")
    return written.define()


def slept() -> Definition:
    written = Written("slept").step("a")
    written.saga.sleep("s", 5.0)
    return written.step("b", "a s").define()


def past_return() -> Definition:
    """Everything that is no agent's, past the point of no return, where it can get stuck."""
    written = Written("past").step("p", kind="!")
    written.saga.approval("ok", after="p", timeout=10.0)
    written.saga.wait("w", signal="go", after="p", timeout=10.0)
    return written.define()


def forked() -> Definition:
    """What `a` gives decides on `c` and `d`, beside `b`; `e` comes after what may be skipped."""
    written = Written("forked").step("a").step("b", "a").step("c", "a", when="a")
    return written.step("d", "b", when="a").step("e", "c", kind="?").define()


def forked_past_return() -> Definition:
    written = Written("forked2").step("p", kind="!")
    written.step("c", "p", kind=">", when="p").step("z", "c", kind=">")
    return written.define()


def forked_at_a_signal() -> Definition:
    """A signal that is there already decides, at once, what becomes of a step beside another."""
    written = Written("forked3").step("a")
    written.saga.wait("w", signal="go", after="a")
    return written.step("b", "a").step("c", "w", when="a").define()


def handing_off(pivot: bool = False) -> Definition:
    written = Written("handing").step("a", kind="!" if pivot else "")
    return written.step("b", "a", kind=">" if pivot else "").define()


def called(compensate: bool = True, **fields: Any) -> Step:
    """A step that is handed off to."""
    undo = "agent.undo-h" if compensate else None
    return Step(
        fields.pop("name", ""),
        "agent.h",
        undo,
        retry=ONCE,
        compensation_retry=ONCE,
        timeouts=NO_LIMIT,
        **fields,
    )


LINEAR = steps("linear", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE)
HELD = steps("held", ("a", ""), ("b", ""), ("c", "b"), retry=ONCE, compensation_retry=ONCE)
PIVOT = steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE)
CLOSED = Timeouts(start_to_close=None, schedule_to_close=60.0)
TIMED = steps("timed", ("a", ""), timeouts=CLOSED)
TWO_TIMED = steps("timed2", ("a", ""), ("l ?", ""), timeouts=CLOSED)
GIVEN = steps("given", ("a", ""), retry=ONCE, compensation_retry=ONCE)
GIVEN_BY_TWO = steps("two", ("p !", ""), ("y >", "p"), ("l ?", "p"), retry=ONCE)
LEAP = steps("leap", ("p !", ""), ("z >", "p"), retry=ONCE)
LATE = Bounds(deadline=LATER)


def children() -> tuple[Shape, ...]:
    """Each saga with children twice: with any news of them in any order, and with true news."""
    sagas = {
        "a child": (Written("c1").child("c", timeout=10.0).define(), 2),
        "a child before the pivot": (
            Written("c2").child("c").step("p", "c", kind="!").step("z", "p", kind=">").define(),
            2,
        ),
        "a child as the pivot": (
            Written("c3").step("a").child("c", "a", pivot=True, timeout=10.0).define(),
            2,
        ),
        "a child past the pivot": (
            Written("c4").step("p", kind="!").child("c", "p", timeout=10.0).define(),
            2,
        ),
        "a child beside a step": (Written("c5").child("c").step("b", kind="?").define(), 1),
    }
    any_news = replace(FEW, timeouts=True, failing_compensations=True)
    true_news = replace(any_news, losses=True, epochs=1)
    return tuple(
        Shape(f"{name}{how}", saga, replace(faults, attempts=attempts), downstream)
        for name, (saga, attempts) in sagas.items()
        for how, faults, downstream in (("", any_news, ""), (", truly", true_news, "family"))
    )


KINDS: tuple[Shape, ...] = (
    Shape("an approval", asked(), replace(FEW, timeouts=True, holds=True)),
    Shape("an approval by default", asked("approve"), replace(FEW, timeouts=True, attempts=2)),
    Shape("a rejection by default", asked("reject"), replace(FEW, timeouts=True, attempts=2)),
    Shape("waits", awaited(), replace(FEW, timeouts=True, signals=3, holds=True)),
    Shape("a sleep", slept(), replace(FEW, timeouts=True, holds=True)),
    Shape("past return", past_return(), replace(FEW, timeouts=True, signals=2, attempts=2)),
    *children(),
    Shape(
        "forks",
        forked(),
        replace(FEW, cancel=False, people=False),
        checks=Judged(),
        results={"a": FORKS, "p": FORKS},
    ),
    Shape(
        "forks past return",
        forked_past_return(),
        FEW,
        checks=Judged(),
        results={"a": FORKS, "p": FORKS},
    ),
    Shape(
        "a fork at a signal",
        forked_at_a_signal(),
        replace(FEW, signals=1),
        checks=Judged(),
        results={"a": FORKS, "p": FORKS},
    ),
    Shape("holds", HELD, replace(FEW, holds=True)),
    Shape(
        "holds, two steps",
        LINEAR,
        replace(FEW, holds=True, attempts=2, timeouts=True, revoke=True),
    ),
    Shape("holds, pivot", LEAP, replace(FEW, holds=True, attempts=2, timeouts=True)),
    Shape("holds, timed", TIMED, replace(FEW, holds=True, attempts=2, timeouts=True)),
    Shape("holds, two timed", TWO_TIMED, replace(FEW, holds=True, cancel=False)),
    Shape(
        "hand-offs",
        handing_off(),
        FEW,
        handoffs={"agent.a": (called(),), "agent.h": (called(),)},
    ),
    Shape(
        "hand-offs, refused",
        handing_off(),
        replace(FEW, holds=True),
        bounds=Bounds(max_steps=3, agents=("agent",)),
        handoffs={"agent.a": (called(), called(compensate=False)), "agent.h": (called(),)},
    ),
    Shape(
        "hand-offs past return",
        handing_off(pivot=True),
        FEW,
        handoffs={"agent.a": (called(), called(compensate=False)), "agent.b": (called(False),)},
    ),
    Shape(
        "hand-offs, late",
        GIVEN,
        replace(FEW, attempts=2, faults=False, holds=True, cancel=False),
        handoffs={"agent.a": (called(),)},
    ),
    Shape("a deadline", PIVOT, replace(FEW, deadline=True, holds=True), bounds=LATE),
    Shape("a deadline, asleep", slept(), replace(FEW, deadline=True, attempts=2), bounds=LATE),
    *(
        Shape(
            f"an output of {len(saga.last)}, {then}",
            saga,
            replace(FEW, attempts=2, holds=saga is GIVEN, people=saga is GIVEN),
            bounds=Bounds(on_rejection=then),
            checks=Judged(),
            results=dict.fromkeys(saga.last, QUALITY),
        )
        for then in ("retry", "compensate", "park")
        for saga in (GIVEN, GIVEN_BY_TWO)
    ),
    Shape("itself a child", LINEAR, Faults(stale=False, people=False, revoke=True), child=True),
    Shape("itself a child, pivot", PIVOT, replace(FEW, revoke=True, holds=True), child=True),
)
