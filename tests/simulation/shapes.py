"""The sagas of a run: each shape that the machine knows, with clocks short enough to go off."""

from __future__ import annotations

from headway.sagas import Definition, Retry, Saga, Timeouts

QUICK = Retry(initial_interval=0.2, maximum_interval=1.0, maximum_attempts=3)
TWICE = Retry(initial_interval=0.5, maximum_interval=1.0, maximum_attempts=2)
ENDLESS = Retry(initial_interval=0.2, maximum_interval=2.0, maximum_attempts=0)
ATTEMPT = Timeouts(start_to_close=2.5)
ERRAND = Timeouts(start_to_close=12.0)  # time enough for others to take over
WATCHED = Timeouts(start_to_close=6.0, heartbeat=1.5)
ACTIONS = {"@": "errand", "#": "tally", "+": "lead"}
AGENTS = ("bank", "shop", "ware")


def _built(name: str, *described: str, retry: Retry = QUICK) -> Definition:
    """Steps from "name kind < what it comes after"; kinds as in the corpus of the machine:
    none is compensated, `!` the pivot, `?` reads only, `>` comes after the pivot, `~` is watched,
    `@` calls tools, `#` writes a document that all share, `+` hands off."""
    saga = Saga(name)
    for place, text in enumerate(described):
        head, _, after = text.partition("<")
        step, _, kinds = head.strip().partition(" ")
        plain = not set(kinds) & set("!?>")
        agent = AGENTS[place % len(AGENTS)]
        action = next((name for mark, name in ACTIONS.items() if mark in kinds), "act")
        saga.step(
            step,
            f"{agent}.{action}",
            compensate=f"{agent}.undo" if plain else None,
            after=after.split(),
            pivot="!" in kinds,
            read_only="?" in kinds,
            retry=retry if retry is TWICE or ">" not in kinds else ENDLESS,
            compensation_retry=QUICK,
            timeouts=WATCHED if "~" in kinds else ERRAND if "@" in kinds else ATTEMPT,
        )
    return saga.define()


def _waiting() -> Definition:
    saga = Saga("waits")
    saga.step("a", "shop.act", compensate="shop.undo", retry=QUICK, timeouts=ATTEMPT)
    saga.approval("ok", after="a", timeout=20.0, default="reject")
    saga.wait("news", after="a", timeout=25.0)
    saga.sleep("nap", 1.5, after="ok")
    saga.step(
        "b", "bank.act", compensate="bank.undo", after=("news", "nap"), retry=QUICK,
        timeouts=ATTEMPT,
    )  # fmt: skip
    return saga.define()


def _choosing() -> Definition:
    """Steps that are done, skipped, or of which nobody can tell, by the number in the order."""
    saga = Saga("chooses")
    saga.step("a", "shop.act", compensate="shop.undo", retry=QUICK, timeouts=ATTEMPT)
    for name, condition in (("b", "input.n > 1"), ("c", "input.n != 2"), ("d", "10 / input.n > 1")):
        saga.step(
            name, "bank.act", compensate="bank.undo", after="a", retry=TWICE, timeouts=ATTEMPT,
            when=condition,
        )  # fmt: skip
    saga.step("e", "ware.act", compensate="ware.undo", after=("b", "c"), timeouts=ATTEMPT)
    return saga.define()


def _parent() -> Definition:
    saga = Saga("parent")
    saga.step("a", "shop.act", compensate="shop.undo", retry=QUICK, timeouts=ATTEMPT)
    saga.child("kid", "linear", input={"of": "parent"}, after="a", timeout=90.0)
    saga.step("z", "ware.act", compensate="ware.undo", after="kid", retry=TWICE, timeouts=ATTEMPT)
    return saga.define()


SHAPES: dict[str, Definition] = {
    shape.name: shape
    for shape in (
        _built("linear", "a", "b < a", "c < b"),
        _built("single", "a", retry=TWICE),
        _built("fan", "a", "b < a", "c < a", "d < a"),
        _built("diamond", "a", "b ~ < a", "c < a", "d < b c"),
        _built("pivot", "a", "p ! < a", "z > < p"),
        _built("tail", "a", "p ! < a", "x > < p", "y > < p", "z > < x y", retry=TWICE),
        _built("looks", "l ?", "a < l", "m ? < a", "b < m"),
        _built("roots", "a", "b", "c < a b", retry=TWICE),
        _built("errands", "e @", "f @ < e", "a < f"),
        _built("tallies", "a #", "b #", "c # < a b"),
        _built("leads", "a", "h + < a", "c < h"),
        _waiting(),
        _choosing(),
        _parent(),
    )
}
