"""Histories that the machine once made, as files: what is stored must lead to the same for ever.

`python tests/sagas/golden.py` writes those that are missing. One that exists is never written
again: if the machine decides otherwise now, that is a change for everybody's stored tasks.

A file has one JSON object a line: the saga; then each input with the events and actions that came
of it; last the state. Its name says what happens in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
from corpus import ONCE, QUICK, Judged, steps
from golden_kinds import STORIES_OF_KINDS
from headway.sagas import Action, Definition, Retry, Saga, Timeouts
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.circumstances import Fork
from headway.sagas.codec import encode_event, encode_task, event_type
from pydantic import TypeAdapter
from telling import COMPENSATION, Story

ORIGIN = "019e5c00-0000-7000-8000-000000000001"
FOLDER = Path(__file__).parent / "histories"

_INPUTS: dict[str, TypeAdapter[i.Input]] = {
    kind.__name__: TypeAdapter(kind) for kind in i.Input.__args__
}


def order_desk() -> Definition:
    """Reserve beside a credit check, charge, then ship past the point of no return, and tell."""
    saga = Saga("fulfil-order", version=1)
    saga.step("reserve", "inventory.reserve", compensate="inventory.release")
    saga.step("credit", "payments.check-credit", read_only=True)
    saga.step(
        "charge", "payments.charge", compensate="payments.refund", after=["reserve", "credit"]
    )
    saga.step("ship", "warehouse.ship", after="charge", pivot=True)
    saga.step("notify", "mail.send", after="ship", retry=Retry(maximum_attempts=0))
    return saga.define()


def until_charged() -> Story:
    story = Story(order_desk())
    story.wait(3)
    story.done("reserve", result={"shelf": 12})
    story.wait(1)
    story.done("credit", result="good")
    story.wait(5)
    return story


def an_order_is_fulfilled() -> Story:
    story = until_charged()
    story.done("charge", result={"receipt": "r-1"})
    story.wait(4)
    story.done("ship", result={"parcel": 7})
    story.wait(2)
    story.done("notify")
    return story


def a_declined_card_releases_the_stock() -> Story:
    story = until_charged()
    story.rejected("charge")
    story.wait(3)
    story.undone("reserve")
    return story


def a_charge_times_out_and_its_late_success_is_refunded() -> Story:
    story = Story(steps("late", ("reserve", ""), ("charge", "reserve"), retry=ONCE))
    story.done("reserve", result=1)
    story.timed_out("charge")
    story.wait(50)
    story.done("charge", result="r-2")
    story.undone("charge")
    story.undone("reserve")
    return story


def an_empty_compensation_is_contradicted_and_repeated() -> Story:
    story = Story(steps("fence", ("a", ""), ("b", "a"), retry=ONCE))
    story.done("a")
    story.timed_out("b")
    story.undone("b", empty=True)
    story.done("b", result="after all")
    story.undone("b", attempt=2)
    story.undone("a")
    return story


def an_empty_answer_after_the_late_success_is_doubted() -> Story:
    story = Story(steps("doubt", ("a", ""), retry=ONCE))
    story.timed_out("a")
    story.done("a", result="after all")
    story.undone("a", empty=True)
    story.undone("a", attempt=2)
    return story


def a_retry_succeeds_after_faults() -> Story:
    story = Story(steps("again", ("a", ""), retry=Retry(1.0, 2.0, 100.0, 5)))
    story.started("a")
    story.faulted("a", jitter=0.25)
    story.wait_until_due()
    story.faulted("a", attempt=2, no_effect=True, retry_after_ms=500)
    story.wait_until_due()
    story.done("a", attempt=3, result=[1, 2, 3])
    return story


def a_cancelled_task_waits_for_its_running_branches() -> Story:
    story = Story(steps("cancelled", ("a", ""), ("b", ""), ("c", ""), retry=QUICK))
    story.done("a")
    story.faulted("b")
    story.cancel()
    story.wait_until_due()
    story.undone("b")
    story.undone("a")
    story.undone("c", empty=True)
    return story


def a_lost_command_is_published_again_and_taken_over() -> Story:
    story = Story(steps("lossy", ("a", "")))
    story.wait(45_000)
    story.lost("a")
    story.claim("a", command_epoch=1, delivery=2, worker="w-2")
    story.claim("a", command_epoch=1, delivery=1, worker="w-1")
    story.heartbeat("a", epoch=2)
    story.wait(10)
    story.heartbeat("a", epoch=2)
    story.done("a")
    return story


def an_unknown_pivot_is_settled_as_happened() -> Story:
    story = until_charged()
    story.done("charge", result={"receipt": "r-3"})
    for attempt in range(1, 6):
        story.timed_out("ship", attempt)
        if attempt < 5:
            story.wait_until_due()
    story.happened("ship", {"parcel": 8})
    story.done("notify")
    return story


def an_unknown_pivot_is_settled_as_not_happened_and_had() -> Story:
    story = Story(steps("leap", ("a", ""), ("p !", "a"), retry=ONCE))
    story.done("a")
    story.timed_out("p")
    story.did_not_happen("p")
    story.done("p", result="had")
    story.undone("a")
    return story


def a_failed_compensation_is_retried_by_a_person() -> Story:
    story = Story(steps("stuck", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE))
    story.done("a")
    story.rejected("b")
    story.faulted("a", phase=COMPENSATION)
    story.retry("a")
    story.undone("a", attempt=2)
    return story


def a_failed_compensation_is_settled_by_a_person() -> Story:
    story = Story(steps("stuck", ("a", ""), ("b", "a"), retry=ONCE, compensation_retry=ONCE))
    story.done("a")
    story.timed_out("b")
    story.faulted("b", phase=COMPENSATION)
    story.did_not_happen("b")
    story.undone("a")
    return story


def every_clock_runs_out() -> Story:
    limits = Timeouts(
        schedule_to_start=10.0, start_to_close=20.0, schedule_to_close=60.0, heartbeat=5.0
    )
    story = Story(steps("clocks", ("a", ""), retry=Retry(maximum_attempts=0), timeouts=limits))
    _run_out(story, "schedule_to_start")
    story.started("a", attempt=2)
    _run_out(story, "heartbeat")
    story.started("a", attempt=3)
    for _ in range(6):
        story.wait(4_000)
        story.heartbeat("a", attempt=3)
    _run_out(story, "start_to_close")
    story.wait(60_000)
    story.tick()
    story.undone("a", empty=True)
    return story


def a_fork_keeps_what_was_done_and_undoes_its_own_alone() -> Story:
    fork = Fork(ORIGIN, "charge", {"reserve": {"shelf": 12}, "credit": "good"}, "ada", "new card")
    story = Story(order_desk(), fork=fork)
    story.wait(2)
    story.done("charge", result={"receipt": "r-4"})
    story.rejected("ship")
    story.undone("charge")
    return story


def a_fork_past_the_point_of_no_return_only_goes_forward() -> Story:
    done = {"reserve": {"shelf": 12}, "credit": "good", "charge": 1, "ship": {"parcel": 9}}
    story = Story(order_desk(), fork=Fork(ORIGIN, "notify", done))
    story.cancel()
    story.done("notify")
    return story


def _run_out(story: Story, clock: str) -> None:
    """Until this clock of the step has run out, and its next attempt is sent."""
    story.wait_until_due()
    lapsed = story.last.events[0]
    assert isinstance(lapsed, e.AttemptTimedOut)
    assert lapsed.timeout == clock
    story.wait_until_due()


STORIES: tuple[Callable[[], Story], ...] = (
    an_order_is_fulfilled,
    a_declined_card_releases_the_stock,
    a_charge_times_out_and_its_late_success_is_refunded,
    an_empty_compensation_is_contradicted_and_repeated,
    an_empty_answer_after_the_late_success_is_doubted,
    a_retry_succeeds_after_faults,
    a_cancelled_task_waits_for_its_running_branches,
    a_lost_command_is_published_again_and_taken_over,
    an_unknown_pivot_is_settled_as_happened,
    an_unknown_pivot_is_settled_as_not_happened_and_had,
    a_failed_compensation_is_retried_by_a_person,
    a_failed_compensation_is_settled_by_a_person,
    every_clock_runs_out,
    a_fork_keeps_what_was_done_and_undoes_its_own_alone,
    a_fork_past_the_point_of_no_return_only_goes_forward,
    *STORIES_OF_KINDS,
)


def lines(definition: Definition, inputs: list[i.Input]) -> Iterator[dict[str, Any]]:
    """The story as the lines of its file, told anew, input by input."""
    submitted = inputs[0]
    assert isinstance(submitted, i.Submit)
    bounds, child, fork = submitted.bounds, submitted.child, submitted.fork
    decide = Story(definition, bounds=bounds, child=child, checks=Judged(), fork=fork)
    yield {"saga": orjson.loads(definition.to_json())}
    for place, happened in enumerate(inputs):
        moved = decide.last if place == 0 else decide.tell(happened)
        yield {"input": type(happened).__name__, **_fields(happened)}
        for event in moved.events:
            yield {"event": event_type(event), "at": event.at, **orjson.loads(encode_event(event))}
        for action in moved.actions:
            yield {"action": type(action).__name__, **_fields(action)}
        if moved.refusal:
            yield {"refusal": moved.refusal}
    task = decide.state
    yield {
        "status": task.status.value,
        "version": task.version,
        "state": orjson.loads(encode_task(task)),
    }


def read_input(line: dict[str, Any]) -> i.Input:
    fields = {name: value for name, value in line.items() if name != "input"}
    return _INPUTS[line["input"]].validate_python(fields)


def _fields(value: i.Input | Action) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(orjson.dumps(value))
    return {name: field for name, field in fields.items() if field is not None}


def file_of(story: Callable[[], Story]) -> Path:
    return FOLDER / f"{story.__name__.replace('_', '-')}.jsonl"


def write_missing() -> list[Path]:
    FOLDER.mkdir(exist_ok=True)
    written = []
    for story in STORIES:
        if not file_of(story).exists():
            told = story()
            saga = Definition.from_json(told.definition.to_json())  # without what was appended
            told_anew = lines(saga, told.inputs)
            text = b"".join(orjson.dumps(line) + b"\n" for line in told_anew)
            file_of(story).write_bytes(text)
            written.append(file_of(story))
    return written


if __name__ == "__main__":
    write_missing()
