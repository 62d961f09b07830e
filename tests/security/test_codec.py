"""The keyring: what is encrypted can be read by whoever has the key, for the task that it is of."""

from __future__ import annotations

import base64
import os

import orjson
import pytest
from headway.agents.codec import (
    TEXT_MAX_BYTES,
    Keyring,
    Sealing,
    Undecryptable,
    has_sealed,
    is_sealed,
    is_sealed_body,
    shown,
)
from headway.agents.errors import InvalidInput

ONE, TWO = (base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
TASK, OTHER = "01a228d3-8b1d-728f-a4a8-c99741d7b99b", "01a228d3-8b1d-728f-a4a8-c99741d7b99c"


def keyring(text: str = f"one:{ONE}") -> Keyring:
    found = Keyring.parse(text)
    assert found is not None
    return found


@pytest.mark.parametrize(
    "value", [None, 0, "", "é\0😀", [1, [2]], {"$sealed": "x"}, {"a": {"b": 1}}]
)
def test_what_is_sealed_is_opened_as_it_was(value: object) -> None:
    sealing = Sealing(keyring(), TASK)
    sealed = sealing.value(value)
    assert is_sealed(sealed)
    assert is_sealed_body(orjson.dumps(sealed))
    assert sealing.opened(sealed) == value
    assert sealing.opened({"a": [sealed, 1]}) == {"a": [value, 1]}


def test_a_text_is_opened_wherever_it_stands() -> None:
    sealing = Sealing(keyring(), TASK)
    said = f"step 'a': {sealing.text('no carrier')} (3 times)"
    assert has_sealed([said])
    assert sealing.opened(said) == "step 'a': no carrier (3 times)"
    assert sealing.text("") == ""
    assert sealing.opened(sealing.text("é" * TEXT_MAX_BYTES)) == "é" * (TEXT_MAX_BYTES // 2)


def test_nothing_of_the_plain_text_is_left() -> None:
    sealed = Sealing(keyring(), TASK).body(orjson.dumps("MARKER" * 10))
    raw = base64.urlsafe_b64decode(orjson.loads(sealed)["$sealed"].partition(".")[2] + "==")
    assert b"MARKER" not in sealed + raw


def test_the_same_value_of_one_task_is_sealed_alike_and_of_another_otherwise() -> None:
    one, other = Sealing(keyring(), TASK), Sealing(keyring(), OTHER)
    assert one.value(1) == one.value(1)
    assert one.value(1) != one.value(2)
    assert one.value(1) != other.value(1)


def test_a_value_cannot_be_moved_to_another_task_nor_changed() -> None:
    sealed = Sealing(keyring(), TASK).value({"amount": 5})
    with pytest.raises(Undecryptable) as moved:
        Sealing(keyring(), OTHER).opened(sealed)
    assert str(moved.value) == (
        "an encrypted value is not what was written for this task: it was changed, or is "
        "another task's"
    )
    token = sealed["$sealed"]
    for place in range(4, len(token), 7):
        changed = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        with pytest.raises(Undecryptable):
            Sealing(keyring(), TASK).opened({"$sealed": changed})
    for broken in ("one.", "one.AA", "one.*", "one", "", ".", "one." + "A" * 39):
        with pytest.raises(Undecryptable):
            Sealing(keyring(), TASK).opened({"$sealed": broken})


def test_a_new_key_in_front_encrypts_and_the_old_one_still_decrypts() -> None:
    old = Sealing(keyring(f"one:{ONE}"), TASK).value(7)
    rotated = Sealing(keyring(f"two:{TWO},one:{ONE}"), TASK)
    assert rotated.opened(old) == 7
    new = rotated.value(7)
    assert new["$sealed"].startswith("two.")
    with pytest.raises(Undecryptable) as unknown:
        Sealing(keyring(f"one:{ONE}"), TASK).opened(new)
    assert str(unknown.value) == "a value is encrypted with key 'two', which is not here"


def test_another_key_under_the_same_name_reads_nothing() -> None:
    sealed = Sealing(keyring(f"one:{ONE}"), TASK).value(7)
    with pytest.raises(Undecryptable):
        Sealing(keyring(f"one:{TWO}"), TASK).opened(sealed)


def test_an_empty_keyring_is_none() -> None:
    assert Keyring.parse("") is Keyring.parse(" , ") is None


@pytest.mark.parametrize(
    "text", [ONE, f":{ONE}", f"a b:{ONE}", f"a:{ONE},a:{TWO}", "a:", f"a:{ONE[:-4]}", "a:!!", "a"]
)
def test_a_keyring_that_is_not_one_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Keyring.parse(text)
    assert ONE[:20] not in str(refused.value)
    assert "kid:base64" in str(refused.value) or "is not 32 bytes in base64" in str(refused.value)


def test_an_answer_is_shown_by_the_task_that_each_part_names() -> None:
    mine, yours = Sealing(keyring(), TASK), Sealing(keyring(), OTHER)
    answer = {
        "entries": [
            {"task": TASK, "data": {"result": mine.value("mine")}, "reason": mine.text("why")},
            {"task": OTHER, "data": yours.value("yours")},
            {"task": OTHER, "data": mine.value("moved")},
        ]
    }
    seen = shown(answer, keyring())["entries"]
    assert seen[0] == {"task": TASK, "data": {"result": "mine"}, "reason": "why"}
    assert seen[1]["data"] == "yours"
    assert is_sealed(seen[2]["data"])
    assert shown({"data": mine.value(1)}, keyring(), TASK) == {"data": 1}


def test_random_bytes_are_never_opened() -> None:
    sealing = Sealing(keyring(), TASK)
    for size in range(60):
        token = "one." + base64.urlsafe_b64encode(os.urandom(size)).decode()
        with pytest.raises(Undecryptable):
            sealing.opened({"$sealed": token.rstrip("=")})
