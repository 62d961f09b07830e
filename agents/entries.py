"""The journal's entries and what is asked of it (`hw.api.journal.*`), as pydantic models.

A journal belongs to one operation, that is (task, step, phase); all its attempts share it. Opening
it takes an epoch, and whoever holds an older one is refused with the problem type "superseded".
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from headway.agents.manifest import Manifest
from headway.agents.masks import PAYLOAD, PAYLOAD_TEXT
from headway.agents.views import Number
from pydantic import BaseModel, ConfigDict, Field

ENTRIES_PAGE_MAX = 500
APPEND_MAX = 64  # entries in one request
KEY_MAX_CHARS = 200
UNDER_WAY_MAX = 256  # calls at once in one journal

# Problem types of a refusal; each is also said in words.
SUPERSEDED = "superseded"  # an older epoch, or an attempt that is not the task's current one
OUT_OF_ORDER = "out-of-order"  # `seq` is not the next one
TOOL_NOT_ALLOWED = "tool-not-allowed"
BUDGET_SPENT = "budget-spent"
LOOP_DETECTED = "loop-detected"
TRIPPED = "tripped"  # too many failures of tools in a row

Kind = Literal["intent", "result", "failure", "checkpoint", "note", "void"]
Phase = Literal["action", "compensation"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _is_empty(text: str) -> bool:
    """Left out, as agents of version 0.2 refuse what they do not know."""
    return not text


class Usage(_Model):
    """What model calls cost; of a single one also whose model was asked, and which. In a reply: of
    the whole task so far."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cost_usd: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    provider: str = Field(default="", max_length=KEY_MAX_CHARS, exclude_if=_is_empty)
    model: str = Field(default="", max_length=KEY_MAX_CHARS, exclude_if=_is_empty)

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


class NewEntry(_Model):
    """One entry to append.

    intent: a tool is about to be called: `key`, `tool`, `arguments_digest`; `data` are the
    arguments, for people. result, failure: how the call of that `key` ended. void: a person or the
    tool's check says that the intent of that `key` did not happen, so that it may be run.
    checkpoint:
    the agent's own state. note: words for people. A value over 256 KiB travels as `dataref`.
    """

    kind: Kind
    key: str = Field(default="", max_length=KEY_MAX_CHARS)
    tool: str = Field(default="", max_length=KEY_MAX_CHARS)
    arguments_digest: str = ""
    sensitive: bool = False
    model: bool = False
    data: Annotated[Any, PAYLOAD] = None
    dataref: Annotated[str, PAYLOAD_TEXT] = ""
    datadigest: str = ""
    size: int = Field(default=0, ge=0)  # bytes of the whole value as JSON
    usage: Usage | None = None
    took_ms: int = Field(default=0, ge=0)


class Entry(NewEntry):
    """An entry as it is kept. `by` is the person who wrote it, if it was not the agent."""

    seq: int
    epoch: int
    at: datetime
    by: str = ""
    reason: str = ""


class Operation(_Model):
    task: UUID
    step: str
    phase: Phase


class JournalOpen(Operation):
    """Take the journal for this attempt. `epoch` is the command's, as granted."""

    attempt: Number
    epoch: Number
    worker: str


class JournalOpened(_Model):
    """The journal's new epoch, and the first page of what is in it."""

    epoch: int
    entries: list[Entry]
    more: bool = False
    manifest: Manifest | None = None
    usage: Usage = Usage()


class JournalAppend(Operation):
    """Append `entries`, the first of them as number `seq` (the last one's plus one; from 1).

    Asked again with the same epoch, number and entries, because the answer was lost, it is answered
    as the first time.
    """

    epoch: Number
    seq: Number
    entries: list[NewEntry] = Field(min_length=1, max_length=APPEND_MAX)


class JournalAppended(_Model):
    """`seq` of the last entry; `usage` of the whole task so far."""

    seq: int
    usage: Usage = Usage()


class JournalRead(Operation):
    after: Number = 0
    limit: int = Field(default=ENTRIES_PAGE_MAX, ge=1, le=ENTRIES_PAGE_MAX)


class JournalPage(_Model):
    entries: list[Entry]
    more: bool = False


class JournalSettle(Operation):
    """A person says how an unsettled intent really ended: `happened` with its `result`, or not.

    Only while the task is parked. The task goes on with `resume`.
    """

    key: str
    outcome: Literal["happened", "did_not_happen"]
    result: Any = None
    by: str = ""
    reason: str = ""
