"""Sagas as data: what is refused and with which remedy, and that their JSON is canonical."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from corpus import steps
from headway.sagas import Definition, DefinitionError, Retry, Saga, Step, Timeouts
from headway.sagas.checking import STEPS_MAX
from headway.sagas.definition import DEFINITION_MAX_BYTES
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel


def refusal(saga: Saga) -> str:
    with pytest.raises(DefinitionError) as caught:
        saga.define()
    return str(caught.value)


def refusal_of_json(**changes: Any) -> str:
    body = orjson.loads(steps("json", ("a", "")).to_json())
    body["steps"][0].update(changes)
    with pytest.raises(DefinitionError) as caught:
        Definition.from_json(orjson.dumps(body))
    return str(caught.value)


def test_a_cycle_is_refused() -> None:
    saga = Saga("round")
    saga.step("start", "x.start", compensate="x.undo")
    saga.step("a", "x.a", compensate="x.undo", after=["start", "c"])
    saga.step("b", "x.b", compensate="x.undo", after="a")
    saga.step("c", "x.c", compensate="x.undo", after="b")
    assert refusal(saga) == (
        "saga 'round': steps a, b, c wait for each other; remove one `after` of the cycle"
    )


def test_a_step_after_itself_is_refused() -> None:
    saga = Saga("self").step("a", "x.a", compensate="x.undo", after="a")
    assert "steps a wait for each other; remove" in refusal(saga)


def test_a_step_after_an_unknown_step_is_refused() -> None:
    saga = Saga("gap").step("a", "x.a", compensate="x.undo", after="reserve")
    assert refusal(saga) == (
        "saga 'gap': step 'a' comes after 'reserve', which is not a step; the steps are a"
    )


def test_a_missing_compensation_is_refused() -> None:
    assert refusal(Saga("bare").step("a", "x.a")) == (
        "saga 'bare': step 'a' has no compensation; add compensate='agent.action', "
        "mark it read_only=True, or make it the pivot"
    )


def test_two_pivots_are_refused() -> None:
    saga = Saga("twice").step("p", "x.p", pivot=True).step("q", "x.q", pivot=True, after="p")
    assert refusal(saga) == (
        "saga 'twice' has 2 pivots (p, q); keep one: after it, steps are retried until they succeed"
    )


def test_a_compensation_after_the_pivot_is_refused() -> None:
    saga = Saga("late").step("p", "x.p", pivot=True)
    saga.step("z", "x.z", compensate="x.undo", after="p")
    assert refusal(saga) == (
        "saga 'late': step 'z' is not before the pivot 'p', so it is never compensated; "
        "drop its `compensate` or move the pivot behind it"
    )


def test_a_compensation_of_the_pivot_itself_is_refused() -> None:
    saga = Saga("own").step("p", "x.p", pivot=True, compensate="x.undo")
    assert "step 'p' is not before the pivot 'p'" in refusal(saga)


def test_a_step_beside_the_pivot_is_refused() -> None:
    saga = Saga("beside").step("p", "x.p", pivot=True).step("a", "x.a", compensate="x.undo")
    assert refusal(saga) == (
        "saga 'beside': step 'a' runs beside the pivot 'p'; "
        "put one after the other, so that it is clear which is undone"
    )


@pytest.mark.parametrize("also", [{"compensate": "x.undo"}, {"pivot": True}])
def test_a_read_only_step_with_something_to_undo_is_refused(also: dict[str, Any]) -> None:
    saga = Saga("look").step("l", "x.l", read_only=True, **also)
    assert "step 'l' is read_only, so it can be neither compensated nor the pivot" in refusal(saga)


def test_an_action_that_compensates_itself_is_refused() -> None:
    saga = Saga("same").step("a", "x.a", compensate="x.a")
    assert "step 'a': 'x.a' cannot compensate itself; give" in refusal(saga)


def test_timeouts_that_cannot_hold_are_refused() -> None:
    with pytest.raises(DefinitionError, match=r"start_to_close \(60.0 s\) cannot hold within"):
        Timeouts(schedule_to_close=30.0)
    with pytest.raises(DefinitionError, match=r"heartbeat \(90.0 s\) is longer than start_to_clo"):
        Timeouts(heartbeat=90.0)
    with pytest.raises(DefinitionError, match="start_to_close must be more than 0 and at most"):
        Timeouts(start_to_close=0)
    with pytest.raises(DefinitionError, match="step 'w': timeout: schedule_to_close must be more"):
        Saga("s").wait("w", timeout=0)


def test_timeouts_that_cannot_hold_are_refused_in_json_by_the_name_of_the_step() -> None:
    assert refusal_of_json(timeouts={"start_to_close": 9, "schedule_to_close": 1}) == (
        "not a saga definition: step 'a'.timeouts: start_to_close (9.0 s) cannot hold within "
        "schedule_to_close (1.0 s): lower the first or raise the second"
    )
    assert "step 'a'.retry: maximum_attempts must" in refusal_of_json(
        retry={"maximum_attempts": -1}
    )


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a" * 65, "*", ">", "a\n"])
def test_bad_names_are_refused(name: str) -> None:
    assert "a name has 1 to 64 of" in refusal(Saga(name).step("a", "x.a", pivot=True))
    assert "a name has 1 to 64 of" in refusal(Saga("s").step(name, "x.a", pivot=True))


@pytest.mark.parametrize("action", ["", "x", "x.", ".a", "x.a.b", "x a.b", "x.a\n"])
def test_actions_that_name_no_agent_are_refused(action: str) -> None:
    why = f"saga 's': step 'a': {action!r} must be 'agent.action'"
    assert refusal(Saga("s").step("a", action, pivot=True)) == why
    assert refusal(Saga("s").step("a", "x.a", compensate=action)) == why


def test_two_steps_of_one_name_are_refused() -> None:
    saga = Saga("s").step("a", "x.a", read_only=True).step("a", "x.b", read_only=True)
    assert refusal(saga) == "saga 's': two steps are named 'a'; rename one"


def test_no_steps_and_too_many_are_refused() -> None:
    many = Saga("many")
    for place in range(STEPS_MAX + 1):
        many.step(f"s{place}", "x.a", read_only=True)
    assert refusal(many) == f"saga 'many': a saga has 1 to {STEPS_MAX} steps, not {STEPS_MAX + 1}"
    assert "has 1 to 256 steps, not 0" in refusal(Saga("none"))


@pytest.mark.parametrize("version", [0, -1, 2**31])
def test_versions_are_positive(version: int) -> None:
    assert "version must be a positive" in refusal(
        Saga("s", version=version).step("a", "x.a", pivot=True)
    )


def test_wrong_types_and_misspelt_fields_are_refused() -> None:
    with pytest.raises(
        DefinitionError, match=r"'a' of saga 's' has no field 'pivo'; the fields are name, "
    ):
        Saga("s").step("a", "x.a", pivo=True)
    with pytest.raises(DefinitionError, match=r"step 'a' of saga 's'.*not iterable"):
        Saga("s").step("a", "x.a", after=5)  # type: ignore[arg-type]
    assert "step 'a'.retry: " in refusal(Saga("s").step("a", "x.a", pivot=True, retry="often"))
    assert "step 'a'.compensat: Unexpected" in refusal_of_json(compensat="x.undo")
    assert "step 'a'.retry.attempts: Unexpected" in refusal_of_json(retry={"attempts": 3})
    assert "step 'a'.after.0: " in refusal_of_json(after=[1])


@pytest.mark.parametrize("body", [b"", b"junk", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000])
def test_junk_is_no_definition(body: bytes) -> None:
    with pytest.raises(DefinitionError, match="not a saga definition: "):
        Definition.from_json(body)


@pytest.mark.parametrize("steps", [[None], [1], [{"action": "x.a"}], [{}], {}, [[]], [{"name": 5}]])
def test_junk_in_place_of_a_step_is_no_step(steps: Any) -> None:
    body = orjson.dumps({"name": "s", "version": 1, "steps": steps})
    with pytest.raises(DefinitionError, match=r"not a saga definition: (steps|step )"):
        Definition.from_json(body)


def test_numbers_that_json_cannot_carry_on_are_refused() -> None:
    body = b'{"name":"s","version":1,"input_schema":{"maximum":1%s},"steps":[%s]}' % (
        b"0" * 40,
        b'{"name":"a","action":"x.a","pivot":true}',
    )
    with pytest.raises(DefinitionError, match="cannot be written as JSON"):
        Definition.from_json(body)


def test_a_definition_of_another_format_or_of_too_many_bytes_is_refused() -> None:
    body = orjson.loads(steps("s", ("a", "")).to_json())
    with pytest.raises(DefinitionError, match="format 2 is not known here"):
        Definition.from_json(orjson.dumps({**body, "format": 2}))
    with pytest.raises(DefinitionError, match="at most 524288 bytes"):
        Definition.from_json(b" " * (DEFINITION_MAX_BYTES + 1))


class Order(BaseModel):
    item: str
    amount: int = 1


@dataclass
class Parcel:
    weight: float


@pytest.mark.parametrize("described", [Order, Parcel, dict[str, int], Order.model_json_schema()])
def test_the_input_may_be_described_by_types_or_by_a_schema(described: Any) -> None:
    saga = Saga("s", input=described).step("a", "x.a", pivot=True).define()
    assert saga.input_schema is not None
    assert saga.input_schema["type"] == "object"


def test_an_input_that_has_no_schema_is_refused() -> None:
    with pytest.raises(DefinitionError, match="has no JSON Schema; use a pydantic model"):
        Saga("s", input=object())
    assert "cannot be written as JSON" in refusal(
        Saga("s", input={"default": object()}).step("a", "x.a", pivot=True)
    )


def test_steps_are_kept_in_an_order_in_which_they_can_run() -> None:
    saga = Saga("s").step("c", "x.c", read_only=True, after=["a", "b"])
    saga.step("b", "x.b", read_only=True, after="a").step("a", "x.a", read_only=True)
    definition = saga.define()
    assert list(definition.steps) == ["a", "b", "c"]
    assert definition.ancestors["c"] == {"a", "b"}
    assert definition.descendants["a"] == {"b", "c"}


def test_the_agents_of_a_saga_are_those_of_its_actions_and_compensations() -> None:
    saga = Saga("s").step("a", "stock.reserve", compensate="desk.release")
    saga.step("p", "mail.send", pivot=True, after="a")
    assert saga.define().agents() == {"stock", "desk", "mail"}
    assert saga.define().steps["a"].agent == "stock"


def test_whole_numbers_and_fractions_of_the_same_value_have_one_digest() -> None:
    one = Saga("s").step("a", "x.a", pivot=True, retry=Retry(initial_interval=5)).define()
    other = Saga("s").step("a", "x.a", pivot=True, retry=Retry(initial_interval=5.0)).define()
    assert one.digest == other.digest
    assert one.to_json() == other.to_json() == Definition.from_json(one.to_json()).to_json()


def test_the_digest_of_a_definition_never_changes() -> None:
    """Sagas are stored by it: a change here is a change of the format."""
    saga = Saga("fixed", version=3, input={"type": "object"})
    saga.step("a", "x.a", compensate="x.undo").step("p", "x.p", pivot=True, after="a")
    assert saga.define().digest == (
        "0f390c21600c05114aff5eb6a24f67b9e831c44ee6c58e1583f781caf3c94baa"
    )


def test_any_change_of_meaning_changes_the_digest() -> None:
    plain: dict[str, Any] = {"compensate": "x.undo"}
    variants: list[dict[str, Any]] = [
        plain,
        {"pivot": True},
        {"read_only": True},
        {**plain, "retry": Retry(maximum_attempts=7)},
        {**plain, "compensation_retry": Retry(maximum_attempts=7)},
        {**plain, "timeouts": Timeouts(heartbeat=5.0)},
    ]
    digests = {Saga("s").step("a", "x.a", **change).define().digest for change in variants}
    digests.add(Saga("s", version=2).step("a", "x.a", **plain).define().digest)
    digests.add(Saga("s", input={}).step("a", "x.a", **plain).define().digest)
    assert len(digests) == len(variants) + 2


_names = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8)
_durations = st.floats(0.001, 1000.0) | st.integers(1, 1000)
_retries = st.builds(
    Retry,
    initial_interval=_durations,
    backoff_coefficient=st.floats(1, 100) | st.integers(1, 100),
    maximum_interval=st.integers(1000, 10_000),
    maximum_attempts=st.integers(0, 50),
    non_retryable_error_types=st.lists(st.text(max_size=5), max_size=2).map(tuple),
)


@st.composite
def _sagas(draw: st.DrawFn) -> Saga:
    saga = Saga(draw(_names), version=draw(st.integers(1, 100)))
    names: list[str] = []
    for name in draw(st.lists(_names, min_size=1, max_size=6, unique=True)):
        after = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
        retry = draw(_retries)
        saga.step(name, f"x.{name}", compensate="y.undo", after=after, retry=retry)
        names.append(name)
    return saga


@settings(derandomize=True, max_examples=100, deadline=None)
@given(_sagas())
def test_a_definition_survives_its_json_and_is_canonical(saga: Saga) -> None:
    definition = saga.define()
    again = Definition.from_json(definition.to_json())
    assert again == definition
    assert again.to_json() == definition.to_json()
    assert again.digest == definition.digest
    assert list(again.steps) == list(definition.steps)
    for step in definition.steps.values():
        assert isinstance(step, Step)
        assert definition.ancestors[step.name] >= set(step.after)
