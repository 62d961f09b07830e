"""Stored histories lead to their stored states, and are decided today as they once were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from golden import FOLDER, STORIES, file_of, lines, read_input
from headway.sagas import Definition, replay
from headway.sagas import events as e
from headway.sagas.codec import decode_event, decode_task
from telling import Story

FILES = sorted(FOLDER.glob("*.jsonl"))


def read(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


def read_event(line: dict[str, Any]) -> e.Event:
    data = {name: line[name] for name in line if name not in ("event", "at")}
    return decode_event(line["event"], line["at"], orjson.dumps(data))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_stored_history_leads_to_the_stored_state(file: Path) -> None:
    first, *told, last = read(file)
    definition = Definition.from_json(orjson.dumps(first["saga"]))
    task = replay(definition, [read_event(line) for line in told if "event" in line])
    assert task == decode_task(last["status"], last["version"], orjson.dumps(last["state"]))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_recorded_inputs_are_decided_as_they_were(file: Path) -> None:
    first, *told, _ = read(file)
    definition = Definition.from_json(orjson.dumps(first["saga"]))
    inputs = [read_input(line) for line in told if "input" in line]
    told_anew = list(lines(definition, inputs))[1:-1]
    assert len(told_anew) == len(told)
    for anew, stored in zip(told_anew, told, strict=True):
        if "event" in stored:
            assert read_event(anew) == read_event(stored)
        elif "input" in stored:
            assert read_input(anew) == read_input(stored)
        else:
            assert anew == stored


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_every_story_has_its_file(story: Callable[[], Story]) -> None:
    assert file_of(story) in FILES, "write it with: python tests/sagas/golden.py"


def test_the_files_cover_every_kind_of_event() -> None:
    kinds = {line["event"] for file in FILES for line in read(file) if "event" in line}
    assert kinds == {kind.__name__ for kind in e.Event.__args__}
