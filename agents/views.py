"""What the coordinator's API takes and answers (`hw.api.>`), as pydantic models.

Times are RFC 3339 in UTC. An error comes with the headers `Nats-Service-Error` and
`Nats-Service-Error-Code` and a problem object (RFC 9457) as body.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from headway.agents.manifest import Manifest
from headway.agents.masks import PAYLOAD, PAYLOAD_TEXT, PAYLOADS_WITHIN, REASON
from pydantic import BaseModel, ConfigDict, Field

TaskStatus = Literal[
    "running", "compensating", "succeeded", "compensated", "parked", "failed_to_compensate"
]
StepStatus = Literal[
    "waiting",
    "scheduled",
    "completed",
    "failed",
    "unknown",
    "skipped",
    "compensating",
    "compensated",
    "failed_to_compensate",
]
ENDED: frozenset[str] = frozenset({"succeeded", "compensated"})
PARKED: frozenset[str] = frozenset({"parked", "failed_to_compensate"})

ABSENT = "no instance is connected"  # in what a step waits for: of its agent
PAGE_LIMIT_MAX = 500
SUBMIT_MANY_MAX = 256  # tasks in one request
PRIORITY = 4  # of a task that names none, as in JMS; 9 is the most urgent
TRACEPARENT_MAX_CHARS = 512
UNTYPED = "about:blank"  # RFC 9457: the problem is what its status says
SIGNAL_ID_MAX_CHARS = 200
WAIT_MAX_S = 5.0  # of one question for a settled task
Priority = Annotated[int, Field(ge=0, le=9)]
Number = Annotated[int, Field(ge=0, le=2_147_483_647)]  # of a version, an attempt, an epoch …


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Nothing(_Model):
    """agents, health, saga.list …: takes nothing."""


class Problem(_Model):
    """RFC 9457, as far as it applies here. `type` is a word that programs may rely on."""

    type: str = UNTYPED
    title: str
    detail: str
    status: int


class SubmitRequest(_Model):
    """`priority`: among commands that wait for their turn; without limits it has no effect.
    `traceparent`: the span within which it is submitted, which its trace links to (W3C)."""

    saga: str
    input: Any = None
    task: UUID | None = None
    version: Number | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
    manifest: Manifest | None = None
    priority: Priority = PRIORITY
    traceparent: str = Field(default="", max_length=TRACEPARENT_MAX_CHARS)
    dataref: str = ""
    datadigest: str = ""


class RunRequest(SubmitRequest):
    """run: a submission, answered once its task is settled, or after so many seconds."""

    wait_s: float = Field(default=WAIT_MAX_S, ge=0.0, le=WAIT_MAX_S)


class SubmitReceipt(_Model):
    """`created` is false when this very task had been accepted before."""

    task: UUID
    saga: str
    version: int
    created: bool


class SubmitManyRequest(_Model):
    """submit.many: each is accepted or refused by itself."""

    tasks: list[SubmitRequest] = Field(min_length=1, max_length=SUBMIT_MANY_MAX)


class SubmitOutcome(_Model):
    """A receipt, or why there is none."""

    receipt: SubmitReceipt | None = None
    problem: Problem | None = None


class SubmitManyReply(_Model):
    """The outcomes, in the order of the tasks."""

    outcomes: list[SubmitOutcome]


class FailureView(_Model):
    type: str
    message: Annotated[str, PAYLOAD_TEXT]


class UsageView(_Model):
    """What a task's model calls have used so far: tokens in and out together, and US dollars."""

    tokens: int = 0
    cost_usd: float = 0.0


class StepView(_Model):
    """A step. `kind` is action, approval, wait, sleep or child; `child` is the child's task."""

    name: str
    action: str
    kind: str = "action"
    child: UUID | None = None
    status: StepStatus
    attempt: int
    phase: Literal["action", "compensation"]
    compensation: str | None = None
    error: FailureView | None = None
    result: Annotated[Any, PAYLOAD] = None
    kept_from: UUID | None = None  # the task that did it, of which this one was forked
    waiting_for: str | None = None
    progress: Annotated[Any, PAYLOAD] = None
    next_attempt_at: datetime | None = None


class TaskView(_Model):
    """A task as people and programs see it. `actions` are open to a person now; `get` tells the
    `usage` of a task with a manifest and, unless it waits, the `forks` of a settled one."""

    task: UUID
    saga: str
    saga_version: int
    status: TaskStatus
    version: int
    reason: Annotated[str, REASON] = ""
    incident: str = ""
    parent: UUID | None = None
    forked_from: UUID | None = None
    forks: list[UUID] = Field(default_factory=list)
    owner: str = ""  # the name of the token that it was submitted with
    encrypted: bool = False  # its payloads are: only who has the keys can read them
    manifest: Manifest | None = None
    usage: UsageView | None = None
    created_at: datetime
    updated_at: datetime
    due_at: datetime | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
    priority: Priority = PRIORITY
    steps: list[StepView] = Field(default_factory=list)
    actions: list[str] = Field(default_factory=list)

    @property
    def ended(self) -> bool:
        return self.status in ENDED

    @property
    def settled(self) -> bool:
        """Ended, or parked in front of a person: nothing more happens by itself."""
        return self.status in ENDED or self.status in PARKED

    @property
    def results(self) -> dict[str, Any]:
        """Results of the completed steps, by step."""
        return {step.name: step.result for step in self.steps if step.status == "completed"}


class TaskRow(_Model):
    """One line of a list."""

    task: UUID
    saga: str
    saga_version: int
    status: TaskStatus
    version: int
    reason: Annotated[str, REASON] = ""
    created_at: datetime
    updated_at: datetime
    owner: str = ""  # the name of the token that it was submitted with


class TaskFilter(_Model):
    """Which tasks are meant. `agent`: those whose saga has steps for it; not those that only an
    agent handed off to it, whose steps are in their histories alone."""

    status: list[TaskStatus] = Field(default_factory=list)
    saga: str | None = None
    agent: str | None = None
    attributes: dict[str, str] = Field(default_factory=dict)
    created_after: datetime | None = None
    created_before: datetime | None = None
    owner: str | None = None


class ListRequest(TaskFilter):
    """list: the tasks that a filter means, newest first. Those of an `agent` are those whose saga
    has steps for it; not those that only an agent handed off to it."""

    limit: int = Field(default=50, ge=1, le=PAGE_LIMIT_MAX)
    cursor: str | None = None


class TaskPage(_Model):
    """Newest first. `cursor` asks for the next page; None means there is none."""

    tasks: list[TaskRow]
    cursor: str | None = None


class HistoryEntry(_Model):
    version: int
    type: str
    at: datetime
    data: Annotated[dict[str, Any], PAYLOADS_WITHIN] = Field(default_factory=dict)


class HistoryRequest(_Model):
    task: UUID
    after: Number = 0
    limit: int = Field(default=PAGE_LIMIT_MAX, ge=1, le=PAGE_LIMIT_MAX)


class History(_Model):
    task: UUID
    entries: list[HistoryEntry]
    more: bool = False


class TaskRequest(_Model):
    """get, resume: name a task. `by` and `reason` say who asks and why."""

    task: UUID
    by: str = ""
    reason: str = ""


class MoveRequest(TaskRequest):
    """move: have a task go on under another version of its saga, if its history fits that one;
    with `dry_run`, only find out whether it does."""

    to: int = Field(ge=1)
    dry_run: bool = False


class GetRequest(_Model):
    """get: a task as it is; with `wait_s`, once it is settled or after so many seconds."""

    task: UUID
    wait_s: float = Field(default=0.0, ge=0.0, le=WAIT_MAX_S)


class StepRequest(TaskRequest):
    """retry: another series of attempts for one step that is stuck (or all, without `step`)."""

    step: str | None = None


class SettleRequest(TaskRequest):
    """settle: a person states how a stuck step's action or compensation really ended.

    `happened`: the action took effect (give its `result`), or the compensation is done.
    `did_not_happen`: the action left no effect behind.
    """

    step: str
    outcome: Literal["happened", "did_not_happen"]
    result: Any = None


class ApprovalRequest(TaskRequest):
    """approve, reject: a person's word on a step that waits for it or, with `invocation`, on the
    call of a tool."""

    step: str | None = None
    invocation: UUID | None = None


class SignalRequest(TaskRequest):
    """signal: for the task's steps that wait for one of this name, now or later. One with an `id`
    that came before changes nothing."""

    name: str
    id: str = Field(min_length=1, max_length=SIGNAL_ID_MAX_CHARS)
    payload: Any = None


class WaitingView(_Model):
    """Something that waits for a person, and the actions that are open to them.

    kind: parked, failed_to_compensate, approval (of a step), gate (of a tool's call) or unsettled
    (a call of which nobody knows whether it happened). `context` is a digest of what it is about:
    two with the same one are about the same.
    """

    task: UUID
    saga: str
    kind: Literal["parked", "failed_to_compensate", "approval", "gate", "unsettled"]
    step: str = ""
    reason: Annotated[str, REASON] = ""
    since: datetime
    actions: list[str]
    context: str = ""
    phase: Literal["action", "compensation"] = "action"
    invocation: UUID | None = None
    key: str = ""
    tool: str = ""
    details: Annotated[Any, PAYLOAD] = None


class WaitingRequest(_Model):
    """parked: all that waits for a person, or what does in one saga, one task, of one owner."""

    saga: str | None = None
    task: UUID | None = None
    owner: str | None = None
    limit: int = Field(default=50, ge=1, le=PAGE_LIMIT_MAX)
    cursor: str | None = None


class WaitingPage(_Model):
    """Newest task first. `cursor` asks for the next page; None means there is none."""

    waiting: list[WaitingView]
    cursor: str | None = None


class ClaimRequest(_Model):
    """A worker asks whether it may run a redelivered, re-published or old command; or only for its
    turn, if it is the `first` delivery of one that something limits."""

    task: UUID
    step: str
    phase: Literal["action", "compensation"]
    attempt: Number
    epoch: Number
    delivery: Number
    worker: str
    first: bool = False


class ClaimReply(_Model):
    """`granted` with the epoch to use, or not: then drop the command, unless it is `elsewhere`: a
    later delivery of it was granted, and an ack would take it from that one. It begins
    `start_in_ms` after the answer came; or is to be asked for again after `again_in_ms`. `paced`:
    it has a turn, which is lost if it begins too late."""

    granted: bool
    epoch: int = 0
    reason: str = ""
    start_in_ms: int = 0
    again_in_ms: int = 0
    paced: bool = False
    elsewhere: bool = False
