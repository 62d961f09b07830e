"""Replaying a task's record: whether its history is decided today as it was. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from headway.agents.export_views import TaskRecord
from headway.agents.messages import describe
from headway.agents.replay_views import DivergenceView, ReplayReport
from headway.agents.views import HistoryEntry
from headway.coordinator.taskchecks import checks_of
from headway.sagas import codec
from headway.sagas import events as e
from headway.sagas.checks import Checks
from headway.sagas.definition import Definition
from headway.sagas.errors import SagaError
from headway.sagas.retrace import Divergence, retrace
from pydantic import ValidationError


class UnreadableRecord(SagaError):
    """A record that cannot be replayed; the text says why."""


def replayed(record: TaskRecord, saga: Definition | None = None) -> ReplayReport:
    """What the machine makes of a record: under the definitions it ran, or under `saga` instead.

    Raises UnreadableRecord for one that was cut or edited so that it is no history any more, or
    whose payloads are masked or encrypted, where they matter.
    """
    _check_whole(record)
    history = [_event(entry) for entry in record.history]
    own = [Definition.from_json(_json(body, "definitions")) for body in record.definitions]
    first = own[0] if saga is None else saga
    found = retrace(first, history, _checks(record), _versions(own) if saga is None else None)
    divergence = found.divergence
    if divergence is None and found.task.status != record.status:
        raise UnreadableRecord(
            f"the record says {record.status}, but its history leads to {found.task.status}"
        )
    return ReplayReport(
        task=record.task,
        against=f"{first.name} version {first.version}" + ("" if saga else ", as recorded"),
        reproduced=divergence is None,
        events=found.events,
        decisions=found.decisions,
        divergence=None if divergence is None else _shown(divergence),
    )


def is_masked(record: TaskRecord) -> bool:
    """Whether its payloads are digests: it was exported with role `view`."""
    return isinstance(record.input, dict) and record.input.keys() == {"sha256", "bytes"}


def _checks(record: TaskRecord) -> Callable[[Definition], Checks]:
    body = _json(record.input, "input")

    def checks(definition: Definition) -> Checks:
        acceptance = record.manifest is not None and record.manifest.acceptance is not None
        if is_masked(record) and (definition.conditional or acceptance):
            raise UnreadableRecord(
                "the payloads of this record are digests, and its saga depends on them; export it "
                "with role 'operate'"
            )
        return checks_of(definition, body, record.manifest)

    return checks


def _versions(own: Sequence[Definition]) -> Callable[[int], Definition]:
    by_version = {definition.version: definition for definition in own}

    def version(number: int) -> Definition:
        if number not in by_version:
            raise UnreadableRecord(
                f"the task was moved to version {number}, whose definition the record lacks"
            )
        return by_version[number]

    return version


def _event(entry: HistoryEntry) -> e.Event:
    at, where = round(entry.at.timestamp() * 1000), f"event {entry.version}"
    data = _json(entry.data, where)
    try:
        return codec.decode_event(entry.type, at, data)
    except ValidationError as error:
        raise UnreadableRecord(f"{where} is no {entry.type}: {describe(error)}") from error


def _json(value: Any, where: str) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise UnreadableRecord(f"{where}: {error}") from error


def _shown(divergence: Divergence) -> DivergenceView:
    return DivergenceView(
        version=divergence.version,
        recorded=_fields(divergence.recorded),
        decided=_fields(divergence.decided),
    )


def _fields(event: e.Event | None) -> dict[str, Any] | None:
    if event is None:
        return None
    return {"type": codec.event_type(event), **orjson.loads(codec.encode_event(event))}


def _check_whole(record: TaskRecord) -> None:
    """UnreadableRecord for a history of which something is missing."""
    numbers = [entry.version for entry in record.history]
    if len(numbers) != record.version or numbers != [*range(1, len(numbers) + 1)]:
        raise UnreadableRecord(
            f"the record says version {record.version}, but its history does not go from version 1 "
            "to that one"
        )
