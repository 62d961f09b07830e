"""History and state as JSON, for whoever stores them. Fields at their default are left out."""

from __future__ import annotations

from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any

import orjson
from headway.sagas import events as e
from headway.sagas.circumstances import ORDINARY, Circumstances
from headway.sagas.errors import SagaError
from headway.sagas.task import (
    UNTOUCHED,
    Claim,
    Failure,
    StepState,
    StepStatus,
    Task,
    TaskStatus,
)
from pydantic import TypeAdapter

_EVENT_TYPES: dict[str, type[e.Event]] = {
    kind.__name__: kind
    for kind in (
        e.TaskSubmitted,
        e.AttemptDispatched,
        e.AttemptStarted,
        e.AttemptHeartbeat,
        e.AttemptClaimed,
        e.AttemptHandedBack,
        e.AttemptRepublished,
        e.StepCompleted,
        e.AttemptFailed,
        e.AttemptTimedOut,
        e.RecoveryStarted,
        e.StepCompensated,
        e.LateSuccess,
        e.EmptyDoubted,
        e.TaskSucceeded,
        e.TaskCompensated,
        e.TaskParked,
        e.TaskFailedToCompensate,
        e.TaskResumed,
        e.StepSettled,
        e.StepSkipped,
        e.ConditionFailed,
        e.StepApproved,
        e.StepRejected,
        e.SignalReceived,
        e.SignalTaken,
        e.StepsAppended,
        e.TaskHeld,
        e.OutputRejected,
        e.TaskMoved,
        e.TaskForked,
        e.StepKept,
    )
}
_ADAPTERS: dict[str, TypeAdapter[e.Event]] = {
    name: TypeAdapter(kind) for name, kind in _EVENT_TYPES.items()
}


def _default(field: Any) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


class _Fields:
    """Reads the fields of an event that are not at their default."""

    def __init__(self, kind: type) -> None:
        read = [field for field in fields(kind) if field.name != "at"]
        self._names = tuple(field.name for field in read)
        self._defaults = tuple(_default(field) for field in read)
        self._get = attrgetter(*self._names, "at") if read else None
        self._all = all(default is MISSING for default in self._defaults)

    def of(self, event: e.Event) -> dict[str, Any]:
        if self._get is None:
            return {}
        values = self._get(event)  # `at` comes last and has no name here
        if self._all:  # none has a default
            return dict(zip(self._names, values, strict=False))
        return {
            name: value
            for name, value, default in zip(self._names, values, self._defaults, strict=False)
            if value is not default
        }


# Defaults are singletons (None, False, 0, "" and enum members), so identity tells them.
_EVENTS: dict[type[e.Event], _Fields] = {kind: _Fields(kind) for kind in _EVENT_TYPES.values()}
_STEP_NAMES = StepState._fields
_COMMON = _STEP_NAMES.index("epoch")  # the fields before it are those of a step without trouble
_UNTROUBLED = tuple(UNTOUCHED[_COMMON:])
_STEP_STATUSES = {status.value: status for status in StepStatus}
_TASK_STATUSES = {status.value: status for status in TaskStatus}


_BESIDE: TypeAdapter[Circumstances] = TypeAdapter(Circumstances)


class UnknownEventType(SagaError):
    """A stored event of a type that this version does not know: it was written by a newer one."""


def event_type(event: e.Event) -> str:
    return type(event).__name__


def encode_event(event: e.Event) -> bytes:
    """The event's fields but `at` and its type, which are stored beside."""
    return orjson.dumps(_EVENTS[type(event)].of(event))


def decode_event(kind: str, at: int, data: bytes) -> e.Event:
    adapter = _ADAPTERS.get(kind)
    if adapter is None:
        raise UnknownEventType(f"history has an event of type {kind!r}; upgrade this coordinator")
    return adapter.validate_python({"at": at, **orjson.loads(data)})


def encode_task(task: Task) -> bytes:
    state: dict[str, Any] = {
        "reason": task.reason,
        "incident": task.incident,
        "cause": task.cause,
        "steps": {step: _encode_step(state) for step, state in task.steps.items()},
    }
    if task.beside is not ORDINARY:
        state["beside"] = {
            name: value
            for name, value in task.beside._asdict().items()
            if value is not ORDINARY[Circumstances._fields.index(name)]
        }
    return orjson.dumps(state)


def _encode_step(state: StepState) -> dict[str, Any]:
    if state is UNTOUCHED:
        return {}
    if state[_COMMON:] != _UNTROUBLED:
        return {
            name: value
            for name, value, default in zip(_STEP_NAMES, state, UNTOUCHED, strict=True)
            if value is not default
        }
    status, attempt, actions, scheduled_at, dispatched_at, known, result = state[:_COMMON]
    common: dict[str, Any] = {"status": status}
    if attempt:
        common["attempt"] = attempt
    if actions:
        common["actions"] = actions
    if scheduled_at:
        common["scheduled_at"] = scheduled_at
    if dispatched_at:
        common["dispatched_at"] = dispatched_at
    if known:
        common["known"] = known
    if result is not None:
        common["result"] = result
    return common


def decode_task(status: str, version: int, state: bytes) -> Task:
    """The state stored by `encode_task`, with the status and version stored beside it."""
    stored = orjson.loads(state)
    steps = {name: _decode_step(values) for name, values in stored["steps"].items()}
    return Task(
        _TASK_STATUSES[status],
        version,
        steps,
        stored["reason"],
        stored["incident"],
        stored["cause"],
        _BESIDE.validate_python(stored["beside"]) if "beside" in stored else ORDINARY,
    )


def _decode_step(values: dict[str, Any]) -> StepState:
    if not values:
        return UNTOUCHED
    if "status" in values:
        values["status"] = _STEP_STATUSES[values["status"]]
    if "claim" in values:
        values["claim"] = Claim(**values["claim"])
    if "error" in values:
        values["error"] = Failure(**values["error"])
    return StepState(**values)
