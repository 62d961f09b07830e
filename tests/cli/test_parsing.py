"""Arguments that carry JSON, pairs, or a file of inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from headway.cli.failures import BadInput
from headway.cli.parsing import attributes_from, inputs_from, json_from


def test_an_input_is_json_or_absent() -> None:
    assert json_from('{"a": [1, null]}', "the input") == {"a": [1, None]}
    assert json_from(None, "the input") is None


def test_an_input_that_is_not_json_is_named_with_its_place() -> None:
    with pytest.raises(BadInput, match=r"the input is not JSON: .*column 7"):
        json_from('{"a": nope}', "the input")


def test_attributes_may_hold_equals_signs() -> None:
    assert attributes_from(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("pair", ["a", "=1", ""])
def test_an_attribute_without_key_or_value_is_refused(pair: str) -> None:
    with pytest.raises(BadInput, match="KEY=VALUE"):
        attributes_from([pair])


def test_a_file_holds_one_input_a_line(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"n": 1}\n\n"two"\n3')
    assert inputs_from(file) == [{"n": 1}, "two", 3]


def test_a_bad_line_is_named_and_nothing_of_the_file_is_used(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"n": 1}\n{"n": \n')
    with pytest.raises(BadInput, match=r"tasks\.jsonl:2 is not JSON: .*nothing was submitted"):
        inputs_from(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"cannot read .*absent\.jsonl: No such file"):
        inputs_from(tmp_path / "absent.jsonl")
