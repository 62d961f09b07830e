"""Today's machine decides recorded histories as they were decided, and tells where it would not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from corpus import Judged, Shape
from golden import order_desk, until_charged
from headway.sagas import Definition, Retry, Saga
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.retrace import retrace
from test_histories import FILES, read, read_event
from test_walks import WALKED, Walk

STEPS = 25


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_golden_history_is_decided_as_it_was(file: Path) -> None:
    first, *told, last = read(file)
    definition = Definition.from_json(orjson.dumps(first["saga"]))
    history = [read_event(line) for line in told if "event" in line]
    found = retrace(definition, history, lambda _: Judged())
    assert found.divergence is None
    assert (found.events, found.task.status.value) == (last["version"], last["status"])


@pytest.mark.parametrize("part", range(3))
def test_random_walks_are_decided_as_they_were(part: int) -> None:
    for seed, shape in enumerate(WALKED):
        if seed % 3 == part:
            _walked(shape, seed)


def _walked(shape: Shape, seed: int) -> None:
    walk = Walk(shape, seed)
    for _ in range(STEPS):
        walk.stray()
    found = retrace(shape.definition, walk.story.history, lambda _: shape.checks)
    assert found.divergence is None, f"shape {shape.name!r}, seed {seed}: {found.divergence}"
    assert found.task == walk.story.state


def paid() -> list[e.Event]:
    story = until_charged()
    story.done("charge", result={"receipt": "r-1"})
    story.done("ship", result={"parcel": 7})
    story.done("notify")
    return story.history


def test_a_step_that_is_now_begun_later_is_the_first_divergence() -> None:
    saga = Saga("fulfil-order", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("credit", "payments.check-credit", read_only=True, after="reserve")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="credit")
    saga.step("ship", "warehouse.ship", after="charge", pivot=True)
    saga.step("notify", "mail.send", after="ship", retry=Retry(maximum_attempts=0))
    found = retrace(saga.define(), paid())
    assert found.divergence is not None
    assert (found.events, found.divergence.version) == (2, 3)
    assert found.divergence.recorded == paid()[2]
    assert found.divergence.decided is None


def test_a_policy_that_gives_up_earlier_is_a_divergence() -> None:
    story = until_charged()
    story.faulted("charge", no_effect=True)
    story.wait_until_due()
    story.done("charge", attempt=2)
    definition = order_desk()
    assert retrace(definition, story.history).divergence is None
    once = replace(definition.steps["charge"], retry=Retry(maximum_attempts=1))
    steps = tuple({**definition.steps, "charge": once}.values())
    found = retrace(definition.with_steps(steps), story.history)
    assert found.divergence is not None
    assert isinstance(found.divergence.recorded, e.AttemptFailed)
    assert isinstance(found.divergence.decided, e.AttemptFailed)
    assert (found.divergence.recorded.status, found.divergence.decided.status) == (
        "scheduled",
        "failed",
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_history_with_one_event_less_or_changed_is_not_decided_so(seed: int) -> None:
    chance = random.Random(seed)
    history = paid()
    place = chance.randrange(1, len(history) - 1)
    if chance.random() < 0.5:
        del history[place]
    else:
        history[place], history[place + 1] = history[place + 1], history[place]
        if history == paid():
            return
    found = retrace(order_desk(), history)
    assert found.divergence is not None, f"seed {seed}, event {place + 1}"


def test_a_history_that_ends_too_early_is_told() -> None:
    history = paid()[:2]
    found = retrace(order_desk(), history)
    assert found.divergence is not None
    assert (found.divergence.version, found.divergence.recorded) == (3, None)


def test_a_task_is_retraced_under_the_versions_it_was_moved_to() -> None:
    story = until_charged()
    target = replace(order_desk(), version=2)
    story.tell(i.Move(story.now, "ada", "", 1, 2, story.state.version))
    story.done("charge")
    found = retrace(order_desk(), story.history, moved_to=lambda _: target)
    assert found.divergence is None
    assert found.task == story.state
