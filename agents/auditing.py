"""The audit log and what is asked of it (`hw.api.audit`), as pydantic models.

It tells who did what, when and why: tool calls, gates, approvals and whatever people did by hand,
to a task or to the system: limits, pauses, keys, tokens, webhooks, dead letters. It is read from
tables that are only ever appended to.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from headway.agents.masks import PAYLOADS_WITHIN, REASON
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

AUDIT_PAGE_MAX = 500


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class AuditRequest(_Model):
    """What happened from `since` on and before `until`, oldest first; of one task, or of all.

    `after` is the cursor of an earlier page. What is being committed just now may come before what
    can be read already: for a copy without gaps ask for `until` a minute ago.
    """

    task: UUID | None = None
    after: str = ""
    since: AwareDatetime | None = None
    until: AwareDatetime | None = None
    limit: int = Field(default=100, ge=1, le=AUDIT_PAGE_MAX)


class AuditEntry(_Model):
    """One thing that was done.

    Attributes:
        kind: the history's word for a person's act ("TaskResumed", "StepApproved" …), the
            journal's for a call ("intent", "result", "failure", "void", "note"), or else what was
            done ("limit-set", "agent-paused", "token-revoked" …).
        task: None if it is about none.
        who: a person, or the agent.
        what: the tool, or what else it was about.
        data: of a call its digests, sizes, usage and place in the journal; else all that is known.
    """

    at: datetime
    task: UUID | None = None
    step: str = ""
    kind: str
    who: str = ""
    what: str = ""
    reason: Annotated[str, REASON] = ""
    data: Annotated[dict[str, Any], PAYLOADS_WITHIN] = Field(default_factory=dict)


class AuditPage(_Model):
    """`cursor` is where to go on, now if there is `more`, or later; "" while there is nothing."""

    entries: list[AuditEntry]
    cursor: str = ""
    more: bool = False
