"""The tables of the simulated store, and the list of the statements that it knows.

Each statement is a function over the tables that runs whole or not at all: it refuses before it
changes anything. Whoever looks at the tables between two statements sees what is committed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from simulation.store_values import Row

Place = tuple[UUID, str, str]
"""Which journal: task, step and phase."""

ENDED = frozenset({"succeeded", "compensated"})
TIMELESS = ENDED | {"parked", "failed_to_compensate"}


@dataclass(slots=True)
class SagaRow:
    digest: str
    body: bytes
    registered_at: int


@dataclass(slots=True)
class TaskRow:
    """Times are ms since 1970; `attributes` are a value, the rest of the JSON as it came."""

    id: UUID
    saga: str
    saga_version: int
    version: int
    status: str
    state: bytes
    due: int | None
    created_at: int
    updated_at: int
    input: bytes
    input_digest: bytes
    attributes: dict[str, str]
    manifest: bytes | None
    parent: bytes | None
    waits: bool
    owner: str
    priority: int
    trace: str


@dataclass(slots=True)
class TokenRow:
    id: str
    name: str
    role: str
    digest: bytes
    made_at: int
    revoked_at: int | None


@dataclass(slots=True)
class EventRow:
    version: int
    type: str
    at: int
    data: bytes


@dataclass(slots=True)
class JournalRow:
    epoch: int
    seq: int
    attempt: int
    command_epoch: int
    agent: str
    worker: str
    undoing: bool
    resumed: int
    failures: int
    trail: bytes
    unsettled: bytes
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


@dataclass(slots=True)
class EntryRow:
    epoch: int
    agent: str
    seq: int
    kind: str
    key: str
    tool: str
    meta: bytes
    data: bytes | None
    by: str
    reason: str
    bytes: int
    at: int


@dataclass(slots=True)
class GateRow:
    step: str
    phase: str
    key: str
    tool: str
    arguments_digest: str
    status: str
    since: int
    decided_at: int | None = None
    decided_by: str = ""
    reason: str = ""
    token: UUID | None = None


@dataclass(slots=True)
class GateEventRow:
    id: int
    task: UUID
    step: str
    kind: str
    at: int
    who: str
    tool: str
    reason: str
    token: UUID | None
    use: UUID | None
    data: bytes


@dataclass(slots=True)
class ActRow:
    """What a person did that is about no task."""

    at: int
    kind: str
    who: str
    what: str
    reason: str = ""
    data: bytes = b"{}"


@dataclass(slots=True)
class CollectionRow:
    version: int
    digest: str
    revision: int
    definitions: list[SagaRow] = field(default_factory=list)  # the first one is version 1


@dataclass(slots=True)
class DocumentRow:
    """One version of a document; `revision` is its place among the changes of its collection."""

    version: int
    revision: int
    definition: int
    body: bytes | None
    digest: str
    at: int
    operation: UUID | None
    by: str
    task: UUID | None
    step: str


@dataclass(slots=True)
class LimitRow:
    rate: float | None
    burst: int
    concurrency: int | None
    set_by: str
    set_at: int


@dataclass(slots=True)
class AdmissionRow:
    """A command that something limits; `since` and `turn_us` are in microseconds."""

    phase: str
    attempt: int
    epoch: int
    agent: str
    subject: str
    places: list[str]
    priority: int
    again: bool
    state: str
    since: int
    asked: str = ""
    turn_us: int = 0

    @property
    def named(self) -> tuple[str, int, int]:
        return self.phase, self.attempt, self.epoch


@dataclass(slots=True)
class BreakerRow:
    state: str
    version: int
    since: int
    until: int | None
    trips: int
    reason: str
    by: str


class Tables:
    """What is stored. `clock` is the server's own, in ms since 1970. `on_change` is called after
    each statement that may have changed something, with its name."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.on_change: Callable[[str], None] = lambda _: None
        self.sagas: dict[tuple[str, int], SagaRow] = {}
        self.tasks: dict[UUID, TaskRow] = {}
        self.history: dict[UUID, list[EventRow]] = {}
        self.span_debts: list[tuple[UUID, int, int]] = []  # task, version read, version
        self.journals: dict[Place, JournalRow] = {}
        self.entries: dict[Place, list[EntryRow]] = {}
        self.gates: dict[tuple[UUID, UUID], GateRow] = {}
        self.gate_events: list[GateEventRow] = []
        self.acts: list[ActRow] = []
        self.signing_key: bytes | None = None
        self.collections: dict[str, CollectionRow] = {}
        self.documents: dict[tuple[str, str], list[DocumentRow]] = {}
        self.streams: dict[str, str] = {}
        self.tokens: list[TokenRow] = []
        self.command_secret = b""
        self.coordinators: dict[UUID, int] = {}
        self.partitions: dict[str, None] = {}
        self.limits: dict[tuple[str, str], LimitRow] = {}
        self.buckets: dict[str, tuple[int, int]] = {}  # full, and what the clock said then; in us
        self.admissions: dict[tuple[UUID, str], AdmissionRow] = {}
        self.admission_turn = UUID(int=0), -1
        self.breakers: dict[str, BreakerRow] = {}


Statement = Callable[..., list[Row]]
STATEMENTS: dict[str, Statement] = {}
READS: dict[str, None] = {}  # the statements that change nothing


def reads(function: Statement) -> Statement:
    """Name a statement that changes nothing."""
    READS[function.__name__] = None
    return writes(function)


def writes(function: Statement) -> Statement:
    """Name a statement that may change something."""
    assert function.__name__ not in STATEMENTS, function.__name__
    STATEMENTS[function.__name__] = function
    return function


def rows_of(*columns: Any) -> list[tuple[Any, ...]]:
    """The rows that arrays, one a column, stand for."""
    return list(zip(*columns, strict=True))
