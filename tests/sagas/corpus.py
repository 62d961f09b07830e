"""The shapes of sagas that every law is checked against, and what may go wrong in each.

A new feature of the machine adds a shape here and inherits every law.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headway.sagas import Definition, Retry, Saga, Timeouts

QUICK = Retry(initial_interval=1.0, maximum_attempts=2)
ONCE = Retry(maximum_attempts=1)
ENDLESS = Retry(initial_interval=1.0, maximum_attempts=0)
NO_LIMIT = Timeouts(start_to_close=None)


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
    epochs: int = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """A saga and the faults of its search.

    `downstream`: what the agents' effects go to: "" none, every answer may come at any time;
    "fenced" refuses an action once its compensation was there; "keyed" only dedupes.
    """

    name: str
    definition: Definition
    faults: Faults = Faults()
    downstream: str = ""


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
