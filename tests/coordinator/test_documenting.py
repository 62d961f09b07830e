"""Decisions about documents, as values: which write goes through, and why another one does not."""

from __future__ import annotations

import itertools
import random
import sys
from uuid import uuid4

import orjson
import pytest
from headway.agents.document_views import CollectionRequest, Transitions, WriteOutcome
from headway.coordinator.documenting import (
    NEVER,
    Done,
    Rules,
    Stored,
    Write,
    decide,
    definition_of,
    digest_of,
    rules_of,
    state_in,
)
from headway.coordinator.errors import Refusal

FREE = Rules(1, None, None)
STAGES = Transitions(
    field="/order/status", initial=["new"], legal={"new": ["paid"], "paid": ["new", "sent"]}
)
STAGED = Rules(1, None, STAGES)


def there(version: int, value: object) -> Stored:
    return Stored(version, orjson.dumps(value), digest_of(value))


def put(value: object, expected: int | None = None, **fields: object) -> Write:
    return Write("c", "k", expected, body=orjson.dumps(value), value=value, **fields)


def delete(expected: int | None = None) -> Write:
    return Write("c", "k", expected)


def words(decision: object) -> str:
    if isinstance(decision, Refusal):
        return f"{decision.code} {decision.kind}: {decision.reason}"
    assert isinstance(decision, WriteOutcome), decision
    assert decision.conflict is not None
    return f"conflict at {decision.conflict.current_version}: {decision.conflict.detail}"


@pytest.mark.parametrize(
    ("stored", "write", "following"),
    [
        (NEVER, put(1), there(1, 1)),
        (NEVER, put(1, 0), there(1, 1)),
        (there(4, "old"), put("new"), there(5, "new")),
        (there(4, "old"), put("new", 4), there(5, "new")),
        (there(4, "old"), put("old", 4), there(5, "old")),
        (there(4, "old"), delete(4), Stored(5, None, "")),
        (there(4, "old"), delete(), Stored(5, None, "")),
        (Stored(5, None, ""), put(1, 0), there(6, 1)),
        (Stored(5, None, ""), put(1), there(6, 1)),
    ],
)
def test_a_write_that_meets_what_it_expects_makes_the_next_version(stored, write, following):
    assert decide(FREE, stored, None, write) == following


@pytest.mark.parametrize(
    ("stored", "write", "expected"),
    [
        (there(4, 1), put(1, 3), "conflict at 4: {} is at version 4, not 3: read it again"),
        (there(4, 1), put(1, 5), "conflict at 4: {} is at version 4, not 5: read it again"),
        (there(4, 1), delete(3), "conflict at 4: {} is at version 4, not 3: read it again"),
        (there(4, 1), put(1, 0), "conflict at 4: {} is there already, at version 4"),
        (there(4, 1), delete(0), "conflict at 4: {} is there already, at version 4"),
        (NEVER, put(1, 1), "conflict at 0: {} is not there, so it is not at version 1"),
        (
            Stored(5, None, ""),
            put(1, 5),
            "conflict at 0: {} is not there, so it is not at version 5",
        ),
        (
            Stored(5, None, ""),
            delete(5),
            "conflict at 0: {} is not there, so it is not at version 5",
        ),
        (NEVER, delete(), "404 about:blank: there is no document 'k' in collection 'c'"),
        (NEVER, delete(0), "404 about:blank: there is no document 'k' in collection 'c'"),
        (Stored(5, None, ""), delete(), "404 about:blank: {} was deleted, as version 5"),
    ],
)
def test_a_write_that_does_not_changes_nothing(stored, write, expected):
    decision = decide(FREE, stored, None, write)
    assert words(decision) == expected.format("document 'k' of collection 'c'")


def test_without_rules_there_is_no_collection():
    assert words(decide(None, NEVER, None, put(1))) == (
        "404 about:blank: there is no collection 'c'; register it first "
        "(headway document collection)"
    )


def test_an_operation_that_was_carried_out_is_answered_as_the_first_time_whatever_came_since():
    done = Done(2, "digest", 1_700_000_000_123)
    decision = decide(FREE, there(9, "newer"), done, put("older", 1, operation=uuid4()))
    assert isinstance(decision, WriteOutcome)
    assert decision.written is not None
    assert decision.written.model_dump(mode="json") == {
        "version": 2,
        "digest": "digest",
        "at": "2023-11-14T22:13:20.123000Z",
        "repeated": True,
    }


def order(status: object) -> dict[str, object]:
    return {"order": {"status": status}}


def test_every_pair_of_states_is_legal_exactly_as_declared():
    states = ["new", "paid", "sent", "unheard of"]
    legal = {("new", "paid"), ("paid", "new"), ("paid", "sent")} | {(s, s) for s in states}
    for old, new in itertools.product(states, states):
        decision = decide(STAGED, there(1, order(old)), None, put(order(new), 1))
        assert isinstance(decision, Stored) == ((old, new) in legal), (old, new)
    for new in states:
        for stored in (NEVER, Stored(5, None, ""), there(1, "no state yet"), there(1, order(7))):
            decision = decide(STAGED, stored, None, put(order(new)))
            assert isinstance(decision, Stored) == (new == "new"), (stored, new)


@pytest.mark.parametrize(
    ("stored", "value", "expected"),
    [
        (NEVER, order("paid"), "/order/status may not begin as 'paid'; legal is 'new'"),
        (
            there(1, order("paid")),
            order("lost"),
            "/order/status may not go from 'paid' to 'lost'; legal from there is 'new', 'sent'",
        ),
        (
            there(1, order("sent")),
            order("new"),
            "/order/status may not go from 'sent' to 'new'; legal from there is nothing",
        ),
    ],
)
def test_an_illegal_transition_names_both_states_and_what_is_legal(stored, value, expected):
    assert words(decide(STAGED, stored, None, put(value))) == (
        f"409 illegal-transition: document 'k' of collection 'c': {expected}"
    )


def test_deleting_is_no_transition():
    assert decide(STAGED, there(3, order("sent")), None, delete(3)) == Stored(4, None, "")


@pytest.mark.parametrize(
    ("field", "state"),
    [
        ("status", "a"),
        ("/status", "a"),
        ("/deep/er/1/x", "b"),
        ("/deep/er/0", None),
        ("/deep/er/2", None),
        ("/deep/er/-1", None),
        ("/deep/er/x", None),
        ("/deep", None),
        ("a/b", "c"),
        ("/a~1b", "c"),
        ("/m~0n", "d"),
        ("/", "e"),
        ("/status/0", None),
        ("absent", None),
    ],
)
def test_a_state_is_found_by_name_or_by_json_pointer(field, state):
    body = {"status": "a", "deep": {"er": [7, {"x": "b"}]}, "a/b": "c", "m~n": "d", "": "e"}
    assert state_in(body, field) == state


def test_a_definition_is_known_by_its_content():
    one = CollectionRequest(name="c", body_schema={"type": "object", "title": "t"})
    same = CollectionRequest(name="c", body_schema={"title": "t", "type": "object"})
    other = CollectionRequest(name="c", body_schema={"type": "object"})
    assert definition_of(one)[1] == definition_of(same)[1] != definition_of(other)[1]
    body, _ = definition_of(CollectionRequest(name="c", transitions=STAGES))
    assert rules_of(3, CollectionRequest.model_validate_json(body)) == Rules(3, None, STAGES)


def test_a_schema_that_holds_what_json_does_not_is_refused():
    with pytest.raises(Refusal) as caught:
        definition_of(CollectionRequest(name="c", body_schema={"maximum": float("inf")}))
    assert (caught.value.code, caught.value.reason) == (
        422,
        "body_schema: a number is not finite",
    )


def test_whatever_is_written_versions_have_no_gap_and_an_expected_one_was_the_newest():
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed: {seed}\n")
    rng = random.Random(seed)
    for _ in range(200):
        stored = NEVER
        for _ in range(30):
            expected = rng.choice([None, 0, stored.version, rng.randrange(6)])
            deleting = rng.random() < 0.3
            value = order(rng.choice(["new", "paid", "sent"]))
            write = delete(expected) if deleting else put(value, expected)
            following = decide(STAGED, stored, None, write)
            if not isinstance(following, Stored):
                continue
            assert following.version == stored.version + 1
            newest = 0 if stored.body is None else stored.version
            assert expected in (None, newest)
            assert (following.body is None) == deleting
            stored = following
