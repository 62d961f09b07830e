"""Long random walks with real clocks: the whole history is kept, and replayed at every step.

The exhaustive search knows no measure of time and forgets how it came to a state. A walk does
neither: jitter is drawn, timers go off when they are due or much later, the coordinators' clocks
disagree, and the state at any moment is the fold of all that was recorded since the submission.
A walk that fails prints its seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from calm import next_word
from corpus import ALL_TIMEOUTS, QUICK, SHAPES, Faults, Judged, Shape, steps
from forks import FORKED
from headway.sagas import Definition, ImpossibleInput, Retry, due, replay, transition
from headway.sagas import inputs as i
from headway.sagas.circumstances import Bounds
from headway.sagas.codec import decode_event, decode_task, encode_event, encode_task, event_type
from headway.sagas.deadlines import clock_due
from kinds import FORKS, KINDS, QUALITY, Written, called
from laws import complaints
from menu import everything
from taken import Taken
from telling import START, Story
from witness import NOTHING, Witness, nothing_seen, watch

WALKS = int(os.environ.get("HEADWAY_WALKS", "250"))
STEPS = 40
CALM_STEPS_MAX = 200
CLOCK_ERROR_MS = 500  # by how much two coordinators' clocks may differ

TIMED = Shape(
    "timed diamond",
    steps(
        "timed",
        *(("a", ""), ("b", "a"), ("c ?", "a"), ("p !", "b c"), ("y >", "p"), ("z >", "y")),
        retry=Retry(initial_interval=0.7, backoff_coefficient=3.0, maximum_attempts=3),
        timeouts=ALL_TIMEOUTS,
    ),
)


def of_everything() -> Definition:
    """Every kind of step, with conditions and limits, before and past the point of no return."""
    written = Written("everything").step("a", retry=QUICK, timeouts=ALL_TIMEOUTS)
    written.child("c", "a", timeout=90.0)
    written.saga.approval("ok", after="a", timeout=60.0, default="approve", when="a")
    written.saga.wait("w", signal="go", timeout=200.0).sleep("s", 20.0, after="a")
    written.step("b", "ok", when="a", retry=QUICK, compensation_retry=QUICK)
    written.step("p", "b c w s", kind="!", retry=QUICK)
    written.child("d", "p", timeout=60.0, when="p")
    written.saga.wait("v", signal="go", after="p", timeout=100.0)
    return written.step("z", "d v", kind=">", retry=QUICK, timeouts=ALL_TIMEOUTS).define()


MIXED = Shape(
    "everything",
    of_everything(),
    Faults(attempts=3, claims=True, losses=True, starts=True, holds=True, revoke=True, signals=4),
    bounds=Bounds(deadline=START + 300_000, max_steps=13, on_rejection="retry"),
    child=True,
    checks=Judged(),
    results={"a": ("yes", *FORKS), "p": ("yes", *FORKS), "z": ("bad", *QUALITY)},
    handoffs={"agent.a": (called(),), "agent.z": (called(False), called()), "agent.h": (called(),)},
)
WALKED = (*SHAPES, TIMED, MIXED, TIMED, MIXED, *KINDS, *FORKED, TIMED, MIXED)


class Walk:
    """One task that is walked about at random, with every law checked after each step."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.random = random.Random(seed)
        self.story = Story(
            shape.definition,
            bounds=shape.bounds,
            child=shape.child,
            checks=shape.checks,
            fork=shape.fork,
        )
        self.seen: Witness = watch(
            nothing_seen(shape.definition), None, self.story.inputs[0], self.story.last
        )

    def tell(self, happened: i.Input) -> None:
        before = self.story.state
        moved = self.story.tell(happened)
        seen = watch(self.seen, before, happened, moved)
        known = {**dict.fromkeys(seen, NOTHING), **self.seen}
        taken = Taken(
            self.story.definition, before, happened, moved, known, seen, self.shape.checks
        )
        self.seen = seen
        wrong = complaints(taken)
        assert not wrong, f"{happened}: {wrong}\n{encode_task(before).decode()}"

    def stray(self) -> None:
        """One step of anything that may happen, now and then of what goes well."""
        state = self.story.state
        if self.random.random() < 0.3:
            self._pass_time()
            return
        word = next_word(self.shape, self.story.definition, state, self.story.now)
        if word is not None and self.random.random() < 0.3:
            self.tell(word)
            return
        possible: list[i.Input] = [
            happened
            for found, happened in everything(self.shape, state, self.seen)
            if found is state and not isinstance(happened, i.Cancel)
        ]
        if self.random.random() < 0.02:
            possible = [i.Cancel(START, "somebody", "changed my mind")]
        happened = self.random.choice(possible)
        self.story.now += self.random.choice((0, 1, 40, 900))
        self.tell(self._now(happened))

    def _now(self, happened: i.Input) -> i.Input:
        """The same, by the clock of one of the coordinators and with a drawn jitter."""
        error = self.random.randint(-CLOCK_ERROR_MS, CLOCK_ERROR_MS)
        changes: dict[str, float] = {"at": self.story.now + error}
        if hasattr(happened, "jitter"):
            changes["jitter"] = self.random.uniform(-1.0, 1.0)
        fields = {name: getattr(happened, name) for name in type(happened).__slots__}
        return type(happened)(**{**fields, **changes})

    def _pass_time(self) -> None:
        timer = due(self.story.definition, self.story.state)
        if timer is not None:
            late = self.random.choice((0, 0, 1, 50_000))
            self.story.now = max(self.story.now, timer + late)
            self.tell(i.Tick(self.story.now, self.random.uniform(-1.0, 1.0)))

    def come_to_rest(self) -> None:
        """Without further faults the task ends, with people retrying what is parked."""
        checked_at = 0
        for _ in range(CALM_STEPS_MAX):
            state = self.story.state
            if state.ended:
                return
            word = next_word(self.shape, self.story.definition, state, self.story.now)
            if word is not None:
                self.story.now += 1
                self.tell(word)
                continue
            timer = due(self.story.definition, state, checked_at)
            assert timer is not None
            checked_at = self.story.now = max(self.story.now, timer)
            waits = not clock_due(self.story.definition, state, self.story.now)
            self.tell(i.Tick(self.story.now, self.random.uniform(-1.0, 1.0)))
            assert not waits, "its timer went off, and there was nothing to do"
        raise AssertionError("it does not come to rest")

    def is_what_was_stored(self) -> None:
        """Law 1, from the very beginning, through the stored form of everything."""
        history = [
            decode_event(event_type(event), event.at, encode_event(event))
            for event in self.story.history
        ]
        state = self.story.state
        assert replay(self.shape.definition, history) == state
        assert decode_task(state.status.value, len(history), encode_task(state)) == state


def walks() -> Iterator[tuple[Shape, int]]:
    for seed in range(WALKS):
        yield WALKED[seed % len(WALKED)], seed


@pytest.mark.parametrize("part", range(5))
def test_every_law_holds_on_random_walks_with_real_clocks(part: int) -> None:
    for shape, seed in walks():
        if seed % 5 != part:
            continue
        walk = Walk(shape, seed)
        try:
            for _ in range(STEPS):
                walk.stray()
                walk.is_what_was_stored()
            walk.come_to_rest()
            walk.is_what_was_stored()
        except (AssertionError, ImpossibleInput) as error:
            raise AssertionError(f"shape {shape.name!r}, seed {seed}: {error}") from error


def test_the_same_inputs_are_decided_in_the_same_way() -> None:
    walk = Walk(TIMED, seed=1)
    for _ in range(STEPS):
        walk.stray()
    told_anew = Story(TIMED.definition)
    for happened in walk.story.inputs[1:]:
        told_anew.tell(happened)
    assert told_anew.history == walk.story.history
    assert told_anew.task == walk.story.task
    assert transition(TIMED.definition, None, walk.story.inputs[0]).events
