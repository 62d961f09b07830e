"""The shapes of sagas that every law is checked against, and what may go wrong in each.

A new feature of the machine adds a shape here and inherits every law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headway.sagas import Definition, Retry, Saga, Step, Timeouts
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.circumstances import Bounds, Fork
from headway.sagas.task import Failure

QUICK = Retry(initial_interval=1.0, maximum_attempts=2)
ONCE = Retry(maximum_attempts=1)
ENDLESS = Retry(initial_interval=1.0, maximum_attempts=0)
NO_LIMIT = Timeouts(start_to_close=None)
RESULT = "result"


@dataclass(frozen=True, slots=True)
class Faults:
    """What may go wrong in a search, and how often. It is printed when a law is broken.

    Attributes:
        attempts: attempts of one phase of one step beyond which the search does not go.
        faults: handlers may fail, retryably or not, with or without effect.
        timeouts: workers may report timeouts, and the machine's own clocks may run out.
        stale: failures and timeouts of earlier attempts and epochs may arrive.
        empties: compensations may answer that there was nothing to undo.
        failing_compensations: compensations may fail.
        claims: commands may be redelivered, so that workers ask for claims.
        losses: commands may be lost.
        starts: agents may say that they begin, and that they are still at it.
        cancel: a person may cancel.
        people: a person may retry and settle what is parked.
        holds: agents may fail so that a person must look, and guards may stop them.
        deadline: the task's deadline may pass.
        revoke: the task that it is a child of may have it undone.
        signals: how many signals of each name may come.
        handoffs: steps handed off to beyond which the search does not go.
        epochs: claims and losses of one attempt beyond which the search does not go.
    """

    attempts: int = 2
    faults: bool = True
    timeouts: bool = True
    stale: bool = True
    empties: bool = True
    failing_compensations: bool = True
    claims: bool = False
    losses: bool = False
    starts: bool = False
    cancel: bool = True
    people: bool = True
    holds: bool = False
    deadline: bool = False
    revoke: bool = False
    signals: int = 0
    handoffs: int = 2
    epochs: int = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A saga and the faults of its search.

    Attributes:
        downstream: what the agents' effects go to: "" none, every answer may come at any time;
            "fenced" refuses an action once its compensation was there; "keyed" only dedupes.
            "family" are child tasks that are what they are said to be.
        bounds, child, fork: what its task is submitted with.
        checks: what its conditions and its output are judged by.
        results: what the agents of some steps may give; first what they give when all goes well.
        handoffs: what an agent's action may hand off to, if it hands off.
    """

    name: str
    definition: Definition
    faults: Faults = Faults()
    downstream: str = ""
    bounds: Bounds | None = None
    child: bool = False
    checks: Checks = UNCHECKED
    results: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    handoffs: Mapping[str, tuple[Step, ...]] = field(default_factory=dict)
    fork: Fork | None = None

    def may_give(self, step: str) -> tuple[str, ...]:
        return self.results.get(step, (RESULT,))


class Judged:
    """Conditions and acceptance that go by what agents gave.

    A condition is the name of a step: its result "yes" fulfils it, "no" does not, and with any
    other nobody can tell. An output that is, or has among its parts, "bad" is not accepted.
    """

    def when(self, expression: str, results: Mapping[str, Any], /) -> bool | Failure:
        verdict = {"yes": True, "no": False}.get(results.get(expression, ""))
        return Failure("ConditionError", "nobody can tell") if verdict is None else verdict

    def rejected(self, output: Any, /) -> str:
        parts = output.values() if isinstance(output, dict) else [output]
        return "it is bad" if "bad" in parts else ""


def steps(
    saga: str,
    *described: tuple[str, str],
    retry: Retry = QUICK,
    compensation_retry: Retry = QUICK,
    timeouts: Timeouts = NO_LIMIT,
) -> Definition:
    """A saga from pairs of "name kind" and "what it comes after", both separated by spaces.

    Kinds: none is an ordinary step with a compensation, `!` the pivot, `?` a read-only step,
    `>` a step after the pivot.
    """
    built = Saga(saga)
    for name_and_kind, after in described:
        name, _, kind = name_and_kind.partition(" ")
        built.step(
            name,
            f"agent.{name}",
            compensate=None if kind else f"agent.undo-{name}",
            after=after.split(),
            pivot=kind == "!",
            read_only=kind == "?",
            retry=retry,
            compensation_retry=compensation_retry,
            timeouts=timeouts,
        )
    return built.define()


ALL_TIMEOUTS = Timeouts(
    schedule_to_start=10.0, start_to_close=20.0, schedule_to_close=60.0, heartbeat=5.0
)

SHAPES: tuple[Shape, ...] = (
    Shape("single", steps("single", ("a", "")), Faults(attempts=3, starts=True)),
    Shape(
        "single, redelivered and lost",
        steps("lossy", ("a", "")),
        Faults(claims=True, losses=True),
    ),
    Shape(
        "single, all timeouts",
        steps("timed", ("a", ""), timeouts=ALL_TIMEOUTS),
        Faults(claims=True, starts=True, epochs=1),
    ),
    Shape("single, endless", steps("endless", ("a", ""), retry=ENDLESS), Faults(attempts=4)),
    Shape("single read-only", steps("look", ("a ?", "")), Faults(claims=True, losses=True)),
    Shape("single pivot", steps("leap", ("a !", "")), Faults(claims=True, losses=True)),
    Shape(
        "linear",
        steps("linear", ("a", ""), ("b", "a"), compensation_retry=ONCE),
        Faults(stale=False, people=False),
    ),
    Shape(
        "linear of three",
        steps("linear3", ("a", ""), ("b", "a"), ("c", "b"), retry=ONCE, compensation_retry=ONCE),
        Faults(attempts=1),
    ),
    Shape(
        "two roots",
        steps("roots", ("a", ""), ("b", ""), retry=ONCE, compensation_retry=ONCE),
        Faults(people=False, stale=False),
    ),
    Shape(
        "fan-out",
        steps("fan", ("a", ""), ("b", "a"), ("c", "a"), retry=ONCE, compensation_retry=ONCE),
        Faults(attempts=1, stale=False, people=False),
    ),
    Shape(
        "wide join",
        steps(
            "join",
            *(("a", ""), ("b", ""), ("c", ""), ("d", "a b c")),
            retry=ONCE,
            compensation_retry=ONCE,
        ),
        Faults(attempts=1, stale=False, empties=False, failing_compensations=False),
    ),
    Shape(
        "diamond",
        steps(
            "diamond",
            *(("a", ""), ("b", "a"), ("c", "a"), ("d", "b c")),
            retry=ONCE,
            compensation_retry=ONCE,
        ),
        Faults(attempts=1, stale=False, empties=False),
    ),
    Shape("pivot in the middle", steps("pivot", ("a", ""), ("p !", "a"), ("z >", "p"))),
    Shape(
        "retriable tail",
        steps("tail", ("p !", ""), ("x >", "p"), ("y >", "p"), ("z >", "x y"), retry=ONCE),
        Faults(attempts=1, stale=False),
    ),
    Shape(
        "read-only steps between",
        steps("looks", ("l ?", ""), ("a", "l"), ("m ?", "a"), ("b", "m"), retry=ONCE),
        Faults(failing_compensations=False),
    ),
    Shape(
        "read-only beside",
        steps("beside", ("a", ""), ("l ?", ""), ("p !", "a l")),
        Faults(stale=False, failing_compensations=False),
    ),
    Shape(
        "single, fenced",
        steps("fenced1", ("a", "")),
        Faults(claims=True, losses=True, epochs=1),
        "fenced",
    ),
    Shape("single, keyed", steps("keyed1", ("a", "")), Faults(losses=True, epochs=1), "keyed"),
    Shape(
        "linear, fenced", steps("fenced2", ("a", ""), ("b", "a"), retry=ONCE), downstream="fenced"
    ),
    Shape(
        "linear, keyed",
        steps("keyed2", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE),
        Faults(stale=False),
        "keyed",
    ),
    Shape(
        "two roots, fenced",
        steps("fenced3", ("a", ""), ("b", ""), retry=ONCE, compensation_retry=ONCE),
        Faults(attempts=1, stale=False),
        "fenced",
    ),
    Shape(
        "pivot, fenced",
        steps("fenced4", ("a", ""), ("p !", "a"), ("z >", "p"), retry=ONCE),
        downstream="fenced",
    ),
)


def widened(shape: Shape) -> Shape:
    """The same saga with more of everything, for a search that takes many minutes."""
    faults = replace(
        shape.faults,
        attempts=shape.faults.attempts + 1,
        stale=True,
        people=True,
        empties=True,
        failing_compensations=True,
    )
    return replace(shape, faults=faults)
