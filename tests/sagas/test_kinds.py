"""Steps of other kinds as data: what each may have, and what is refused with which remedy."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from corpus import steps
from headway.sagas import Definition, DefinitionError, Saga, Step, Timeouts
from headway.sagas.checking import WHEN_MAX_CHARS


def complaint(**fields: Any) -> str:
    """What is wrong with a step `s` that has these fields."""
    body = orjson.loads(steps("kinds", ("a ?", "")).to_json())
    body["steps"] = [{"name": "s", "timeouts": {"start_to_close": None}, **fields}]
    with pytest.raises(DefinitionError) as caught:
        Definition.from_json(orjson.dumps(body))
    return str(caught.value).removeprefix("saga 'kinds': step 's': ")


def test_every_kind_survives_its_json() -> None:
    saga = Saga("all").step("a", "x.a", read_only=True, when="input.big", input={"deep": [1]})
    saga.approval("ok", after="a", timeout=3600.0, default="reject")
    saga.wait("w", signal="paid", after="ok", timeout=5.0)
    saga.sleep("s", 0.5, after="w", when="results.w > 1")
    saga.child("c", "smaller", version=3, input={"order": 7}, after="s", timeout=60.0)
    definition = saga.define()
    again = Definition.from_json(definition.to_json())
    assert again == definition
    assert again.digest == definition.digest
    assert again.conditional
    assert [step.kind for step in again.steps.values()] == [
        "action",
        "approval",
        "wait",
        "sleep",
        "child",
    ]


def test_a_saga_of_plain_steps_says_nothing_of_other_kinds() -> None:
    definition = steps("plain", ("a", ""))
    assert not definition.conditional
    assert b"kind" not in definition.to_json()
    assert b"seconds" not in definition.to_json()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"kind": "approval", "action": "x.a"}, "action"),
        ({"kind": "child", "saga": "s", "compensate": "x.undo"}, "compensate"),
        ({"kind": "approval", "pivot": True}, "pivot"),
        ({"kind": "wait", "read_only": True}, "read_only"),
        ({"kind": "sleep", "seconds": 1, "input": 7}, "input"),
        ({"kind": "sleep", "seconds": 1, "signal": "go"}, "signal"),
        ({"kind": "wait", "seconds": 1}, "seconds"),
        ({"kind": "wait", "saga": "smaller"}, "saga"),
        ({"kind": "wait", "saga_version": 1}, "saga_version"),
        ({"kind": "wait", "default": "approve"}, "default"),
        ({"action": "x.a", "read_only": True, "seconds": 1}, "seconds"),
        ({"action": "x.a", "read_only": True, "default": "reject"}, "default"),
    ],
)
def test_what_another_kind_has_is_refused(fields: dict[str, Any], name: str) -> None:
    kind = fields.get("kind", "action")
    assert complaint(**fields) == f"{name!r} is not for a step of kind {kind!r}; drop it"


@pytest.mark.parametrize("limit", ["schedule_to_start", "heartbeat"])
@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "approval"},
        {"kind": "wait"},
        {"kind": "sleep", "seconds": 1},
        {"kind": "child", "saga": "smaller"},
    ],
)
def test_limits_that_only_agents_know_are_refused(fields: dict[str, Any], limit: str) -> None:
    """Once known: an approval's default counted before its own timeout was over."""
    timeouts = {"start_to_close": None, limit: 5.0}
    assert complaint(**fields, timeouts=timeouts) == (
        f"{limit!r} is no limit of a step of kind {fields['kind']!r}; drop it"
    )


def test_a_sleep_needs_a_length_and_no_other_end() -> None:
    for seconds in (0, -1, 366 * 86_400 + 1):
        assert complaint(kind="sleep", seconds=seconds) == (
            "seconds must be more than 0 and at most 31622400"
        )
    timeouts = {"start_to_close": None, "schedule_to_close": 5.0}
    assert complaint(kind="sleep", seconds=1, timeouts=timeouts) == (
        "a sleep ends by itself; drop schedule_to_close"
    )


def test_a_default_needs_a_time_after_which_it_counts() -> None:
    assert complaint(kind="approval", default="approve") == (
        "default='approve' needs a schedule_to_close: without one it never comes up"
    )


def test_a_signal_and_a_childs_saga_have_names() -> None:
    assert complaint(kind="wait", signal="go now") == (
        "signal 'go now': a name has 1 to 64 of A-Z a-z 0-9 _ and -"
    )
    assert complaint(kind="child") == "saga '': name the saga that the child runs"
    assert complaint(kind="child", saga="smaller", saga_version=0) == (
        "saga_version must be a positive 32-bit number"
    )


def test_the_point_of_no_return_has_no_condition() -> None:
    assert complaint(action="x.a", pivot=True, when="input.big") == (
        "the point of no return cannot depend on a condition; put `when` on a step before it"
    )


def test_a_condition_has_an_end() -> None:
    assert complaint(action="x.a", read_only=True, when="x" * (WHEN_MAX_CHARS + 1)) == (
        f"when: at most {WHEN_MAX_CHARS} characters are taken"
    )


def test_kinds_that_nobody_knows_are_refused() -> None:
    assert "kind: Input should be 'action', 'approval', 'wait', 'sleep' or 'child'" in complaint(
        kind="prayer"
    )


def test_what_has_no_effect_needs_no_compensation_and_a_child_is_its_own() -> None:
    saga = Saga("bare").approval("ok").wait("w").sleep("s", 1.0).child("c", "smaller")
    definition = saga.define()
    assert [step.undoable for step in definition.steps.values()] == [False, False, False, True]


def test_a_child_past_the_pivot_is_never_undone() -> None:
    saga = Saga("leap").step("p", "x.p", pivot=True).child("c", "smaller", after="p")
    assert saga.define().is_after_pivot("c")


def test_a_step_may_be_built_by_hand() -> None:
    step = Step("s", kind="sleep", seconds=1.0, timeouts=Timeouts(start_to_close=None))
    assert (step.agent, step.without_effect, step.waits_for) == ("", True, "s")
