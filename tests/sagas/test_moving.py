"""A task goes on under another version of its saga only if its history fits that version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from headway.sagas import Saga
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.definition import Definition
from headway.sagas.moving import misfit, relaid
from headway.sagas.replay import replay
from headway.sagas.step import Step
from headway.sagas.task import Phase, StepStatus, Task
from headway.sagas.transition import outstanding, transition


def first() -> Definition:
    saga = Saga("refund", version=1)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="reserve")
    saga.step("ship", "warehouse.ship", after="charge", pivot=True)
    saga.step("notify", "mail.send", after="ship")
    return saga.define()


def ran(
    definition: Definition, *completed: str, handoff: tuple[Step, ...] = ()
) -> tuple[Task, list[e.Event]]:
    """A task of which these steps have completed, the last one handing off; and its history."""
    outcome = transition(definition, None, i.Submit(1))
    history = list(outcome.events)
    for at, step in enumerate(completed, 2):
        last = step == completed[-1]
        done = i.Succeeded(at, step, Phase.ACTION, 1, {}, handoff=handoff if last else ())
        outcome = transition(definition, outcome.task, done)
        history += outcome.events
    return outcome.task, history


def moved(target: Definition, task: Task) -> tuple[Task, tuple[e.Event, ...]]:
    happened = i.Move(50, "eve", "a check was missing", 1, target.version, task.version)
    outcome = transition(target, relaid(target, task), happened)
    assert not outcome.refusal
    return outcome.task, outcome.events


def test_a_task_goes_on_with_the_steps_of_the_version_it_is_moved_to() -> None:
    task, history = ran(first(), "reserve")
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="reserve")
    saga.step("insure", "insurance.cover", compensate="insurance.end", after="charge")
    saga.step("ship", "warehouse.ship", after="insure", pivot=True)
    target = saga.define()
    assert misfit(first(), target, history) == ""
    after, events = moved(target, task)
    assert events == (e.TaskMoved(50, 1, 2, "eve", "a check was missing"),)
    assert list(after.steps) == ["reserve", "charge", "insure", "ship"]
    assert after == replay(target, [*history, *events])
    assert [sent.step for sent in outstanding(target, after)] == ["charge"]
    outcome = transition(target, after, i.Succeeded(60, "charge", Phase.ACTION, 1, {}))
    assert [sent.step for sent in outstanding(target, outcome.task)] == ["insure"]


def test_what_became_ready_by_the_move_is_begun_with_it() -> None:
    task, history = ran(first(), "reserve")
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="reserve")
    saga.step("label", "warehouse.label", compensate="warehouse.peel", after="reserve")
    saga.step("ship", "warehouse.ship", after=("charge", "label"), pivot=True)
    target = saga.define()
    assert misfit(first(), target, history) == ""
    after, events = moved(target, task)
    assert [type(event).__name__ for event in events] == ["TaskMoved", "AttemptDispatched"]
    assert after.steps["label"].status is StepStatus.SCHEDULED
    assert after == replay(target, [*history, *events])


def test_a_task_that_went_on_while_its_history_was_looked_at_is_not_moved() -> None:
    task, _ = ran(first(), "reserve")
    stale = i.Move(50, "eve", "", 1, 2, task.version - 1)
    outcome = transition(first(), task, stale)
    assert outcome.refusal == "the task went on while its history was looked at; ask again"
    assert outcome.task == task
    assert outcome.events == ()


def _gone() -> Saga:
    saga = Saga("refund", version=2)
    saga.step("charge", "payments.charge", compensate="payments.refund")
    return saga


def _inserted() -> Saga:
    saga = Saga("refund", version=2)
    saga.step("check", "risk.check", read_only=True)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release", after="check")
    return saga


def _other_action() -> Saga:
    saga = Saga("refund", version=2)
    saga.step("reserve", "stock.reserve", compensate="stock.release")
    return saga


def _later_pivot() -> Saga:
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="reserve")
    saga.step("ship", "warehouse.ship", compensate="warehouse.fetch", after="charge")
    saga.step("notify", "mail.send", after="ship", pivot=True)
    return saga


def _earlier_pivot() -> Saga:
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", after="reserve", pivot=True)
    return saga


def _another() -> Saga:
    saga = Saga("order", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    return saga


@pytest.mark.parametrize(
    ("saga", "completed", "reason"),
    [
        (_gone, (), "step 'reserve' was begun, and version 2 does not have it"),
        (
            _inserted,
            (),
            "step 'reserve' was begun before step 'check', which it comes after in version 2",
        ),
        (
            _other_action,
            (),
            "step 'reserve' was begun, and its action is another in version 2: 'stock.reserve' "
            "instead of 'inventory.reserve'",
        ),
        (
            _later_pivot,
            ("reserve", "charge"),
            "step 'ship', the point of no return, was begun, and in version 2 it is no such point",
        ),
        (
            _earlier_pivot,
            ("reserve",),
            "step 'charge' was begun, and only version 2 makes it the point of no return",
        ),
        (_another, (), "saga 'order' is another saga than 'refund'"),
    ],
)
def test_a_history_that_another_version_could_not_have_led_to_is_told(
    saga: Callable[[], Saga], completed: tuple[str, ...], reason: str
) -> None:
    _, history = ran(first(), *completed)
    assert misfit(first(), saga().define(), history) == reason


def test_a_task_that_is_undone_or_over_is_not_moved() -> None:
    task, history = ran(first(), "reserve")
    outcome = transition(first(), task, i.Cancel(9, "eve", "no more"))
    reason = misfit(first(), _later_pivot().define(), [*history, *outcome.events])
    assert reason == "the task is compensating; only one that goes forward can be moved"


def test_what_steps_handed_off_to_moves_along() -> None:
    extra = Step("count", "inventory.count", read_only=True)
    task, history = ran(first(), "reserve", handoff=(extra,))
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("bill", "payments.bill", compensate="payments.refund", after="reserve")
    target = saga.define()
    assert task.steps["count"].status is StepStatus.SCHEDULED
    assert misfit(first(), target, history) == ""
    clash = Saga("refund", version=3)
    clash.step("reserve", "inventory.reserve", compensate="inventory.release")
    clash.step("count", "inventory.count_all", read_only=True, after="reserve")
    reason = misfit(first(), clash.define(), history)
    assert reason.startswith("what its steps handed off to does not go with version 3: ")


def test_the_same_version_under_another_number_fits_at_every_point() -> None:
    steps = ("reserve", "charge", "ship")
    saga = Saga("refund", version=2)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("charge", "payments.charge", compensate="payments.refund", after="reserve")
    saga.step("ship", "warehouse.ship", after="charge", pivot=True)
    saga.step("notify", "mail.send", after="ship")
    for count in range(len(steps) + 1):
        task, history = ran(first(), *steps[:count])
        assert misfit(first(), saga.define(), history) == ""
        after, events = moved(saga.define(), task)
        assert after == replace(task, version=task.version + 1)
        assert after == replay(saga.define(), [*history, *events])
