"""State and history as JSON: nothing is lost, defaults are left out, strangers are refused."""

from __future__ import annotations

from typing import Any, get_type_hints

import orjson
import pytest
from corpus import steps
from headway.sagas import (
    Phase,
    Retry,
    Step,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
    Timeouts,
)
from headway.sagas import events as e
from headway.sagas.circumstances import (
    ORDINARY,
    Appended,
    Bounds,
    Circumstances,
    Hold,
    Signal,
)
from headway.sagas.codec import (
    UnknownEventType,
    decode_event,
    decode_task,
    encode_event,
    encode_task,
    event_type,
)
from headway.sagas.task import Claim, Failure
from hypothesis import given, settings
from hypothesis import strategies as st
from telling import Story

_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)
_times = st.integers(0, 2**53)
_counts = st.integers(0, 10_000)
_words = st.text(st.characters(codec="utf-8"), max_size=20)
_names = st.lists(_words, max_size=2).map(tuple)
_steps = st.builds(
    Step,
    name=_words,
    action=_words,
    compensate=st.none() | _words,
    after=_names,
    read_only=st.booleans(),
    retry=st.just(Retry(initial_interval=0.5, maximum_attempts=2)),
    timeouts=st.just(Timeouts(schedule_to_close=90.5)),
    kind=st.sampled_from(["action", "approval", "wait", "sleep", "child"]),
    input=_json,
)
_bounds = st.none() | st.builds(
    Bounds, _times, _counts, st.none() | _names, st.sampled_from(["retry", "compensate", "park"])
)
_circumstances = st.builds(
    Circumstances,
    _bounds,
    st.lists(st.builds(Hold, _words, _words, _words, _times), max_size=2).map(tuple),
    st.lists(st.builds(Appended, _words, _steps), max_size=2).map(tuple),
    _names,
    st.lists(st.builds(Signal, _words, _words, _json), max_size=2).map(tuple),
    _names,
    _words,
    _counts,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
_states = st.builds(
    StepState,
    status=st.sampled_from(StepStatus),
    attempt=_counts,
    epoch=_counts,
    dispatched_at=_times,
    started_at=_times,
    heartbeat_at=_times,
    retry_at=_times,
    scheduled_at=_times,
    stop_by=_times,
    spent=_counts,
    actions=_counts,
    uncertain=st.booleans(),
    known=st.booleans(),
    empty=st.booleans(),
    doubted=_counts,
    discounted=_counts,
    claims=_counts,
    handed_back=st.booleans(),
    claim=st.none() | st.builds(Claim, _counts, _counts, _words),
    error=st.none() | st.builds(Failure, _words, _words),
    result=_json,
    progress=_json,
)
_tasks = st.builds(
    Task,
    st.sampled_from(TaskStatus),
    _counts,
    st.dictionaries(_words, _states, max_size=3),
    _words,
    _words,
    _words,
    st.just(ORDINARY) | _circumstances,
)
_fields: dict[Any, st.SearchStrategy[Any]] = {
    int: _times,
    str: _words,
    bool: st.booleans(),
    Any: _json,
    Failure: st.builds(Failure, _words, _words),
    Phase: st.sampled_from(Phase),
    StepStatus: st.sampled_from(StepStatus),
    dict[str, int]: st.dictionaries(_words, _times, max_size=2),
    dict[str, StepStatus]: st.dictionaries(_words, st.sampled_from(StepStatus), max_size=2),
    tuple[str, ...]: _names,
    tuple[Step, ...]: st.lists(_steps, max_size=2).map(tuple),
    Bounds | None: _bounds,
}


def _any(kind: type[e.Event]) -> st.SearchStrategy[e.Event]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: _fields[hint] for name, hint in hints.items()})


@settings(derandomize=True, max_examples=150, deadline=None)
@given(_tasks)
def test_any_state_survives_its_json(task: Task) -> None:
    assert decode_task(task.status.value, task.version, encode_task(task)) == task


@settings(derandomize=True, max_examples=600, deadline=None)
@given(st.one_of(*(_any(kind) for kind in e.Event.__args__)))
def test_any_event_survives_its_json(event: e.Event) -> None:
    assert decode_event(event_type(event), event.at, encode_event(event)) == event


@pytest.mark.parametrize("result", [None, False, 0, 0.0, "", [], {}, {"a": None}, [None], True, 1])
def test_a_result_comes_back_with_its_type(result: Any) -> None:
    story = Story(steps("typed", ("a", "")))
    story.done("a", result=result)
    task = decode_task("succeeded", story.state.version, encode_task(story.state))
    assert type(task.steps["a"].result) is type(result)
    completed = story.last.events[0]
    read = decode_event(event_type(completed), completed.at, encode_event(completed))
    assert isinstance(read, e.StepCompleted)
    assert type(read.result) is type(result)


def test_what_is_at_its_default_is_left_out() -> None:
    story = Story(steps("short", ("a", ""), ("b", "a")))
    assert orjson.loads(encode_task(story.state))["steps"]["b"] == {}
    dispatched = encode_event(story.history[1])
    assert orjson.loads(dispatched) == {"step": "a", "phase": "action", "attempt": 1}


def test_an_event_of_a_newer_version_is_refused_with_the_remedy() -> None:
    with pytest.raises(UnknownEventType, match=r"'StepTeleported'; upgrade this coordinator"):
        decode_event("StepTeleported", 1, b"{}")
