"""What the store reads and writes, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from headway.agents.manifest import Manifest
from headway.agents.tracing import remote
from headway.agents.views import PRIORITY
from headway.sagas.definition import Definition
from headway.sagas.events import Event
from headway.sagas.task import Task
from headway.sagas.values import value

NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})


class Parent(NamedTuple):
    """Whose child a task is: the attempt of a step of another task. `depth` is 1 for the child of a
    task that is nobody's."""

    task: UUID
    step: str
    attempt: int
    depth: int = 1


class Trace(NamedTuple):
    """How a task is traced. `origin` is the traceparent of who submitted it. Whether its spans are
    `sampled` is decided once, when it comes in; None if nobody did."""

    sampled: bool | None = None
    origin: str = ""


UNTRACED = Trace()


def trace_in(stored: str) -> Trace:
    """A trace as it is stored."""
    if not stored:
        return UNTRACED
    sampled, _, origin = stored.partition(" ")
    return Trace(None if sampled == "-" else sampled == "1", origin)


def stored_trace(trace: Trace) -> str:
    """What is stored of a trace."""
    if trace == UNTRACED:
        return ""
    sampled = "-" if trace.sampled is None else "1" if trace.sampled else "0"
    return f"{sampled} {trace.origin}" if trace.origin else sampled


def trace_of(traceparent: str) -> Trace:
    """That of a task submitted with this traceparent, which may be none."""
    return Trace(origin=traceparent) if traceparent and remote(traceparent) else UNTRACED


@value
class Loaded:
    """A task as it was read: its state and what never changes about it. `definition` is the one
    that its plan gives."""

    id: UUID
    definition: Definition
    task: Task
    input: bytes
    input_digest: bytes
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None
    attributes: dict[str, str]
    manifest: Manifest | None = None
    parent: Parent | None = None
    owner: str = ""  # the name of the token that it was submitted with
    priority: int = PRIORITY
    trace: Trace = UNTRACED


@dataclass(slots=True)
class NewTask:
    """A task that is submitted: what is stored once and never changes. `input` is JSON. Only how it
    is traced is settled when it comes in, at the latest."""

    id: UUID
    saga: str
    input: bytes
    input_digest: bytes
    version: int | None = None  # of the saga; None: the newest
    attributes: dict[str, str] = field(default_factory=dict)
    manifest: Manifest | None = None
    parent: Parent | None = None
    owner: str = ""  # the name of the token that it was submitted with
    priority: int = PRIORITY
    trace: Trace = UNTRACED


@value
class Change:
    """A task's next state and the events that lead to it, to commit if nothing came between."""

    id: UUID
    expected: int  # version that was read; 0: the task is new
    task: Task
    state: bytes  # the task as it is stored
    due: int | None  # ms
    waits: bool  # for a person
    at: int  # ms
    events: tuple[Event, ...]
    saga_version: int  # that it runs from here on
    new: NewTask | None = None
    owes_spans: bool = False  # whether it makes spans due
