"""The stored histories: a saga's definition, and what happened to a task of it."""

from __future__ import annotations

from pathlib import Path

import orjson
from headway.sagas import Definition
from headway.sagas import events as e
from headway.sagas.codec import decode_event

FILES = sorted((Path(__file__).parent.parent / "sagas" / "histories").glob("*.jsonl"))


def told(file: Path) -> tuple[Definition, list[e.Event]]:
    """What a file tells; states that stand between the events are left out."""
    first, *lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    events = [
        decode_event(
            line["event"],
            line["at"],
            orjson.dumps({name: line[name] for name in line if name not in ("event", "at")}),
        )
        for line in lines
        if "event" in line
    ]
    return Definition.from_json(orjson.dumps(first["saga"])), events
