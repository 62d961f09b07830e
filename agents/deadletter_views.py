"""What the API takes and answers about dead letters (`dead.*`), as pydantic models.

A letter is a message that was refused, or an advisory by which nats-server tells of one. Its place
in the stream HW_DEAD is its number.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from headway.agents.masks import PAYLOAD_TEXT
from pydantic import BaseModel, ConfigDict, Field

LETTERS_PAGE_MAX = 200

LetterKind = Literal["submission", "event", "command", "advisory", "unknown"]
Sequence = Annotated[int, Field(ge=1, le=9_223_372_036_854_775_807)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class LetterFate(_Model):
    """What a person did with a letter. `replaying`: its message was about to be published again,
    and nobody knows whether it was; asking for that once more is harmless, and a minute later it
    may be dropped as well."""

    fate: Literal["replaying", "replayed", "dropped"]
    at: datetime
    by: str = ""
    reason: str = ""


class LetterRow(_Model):
    """One letter in a list. `kept`: why it cannot be replayed, "" if it can; `agent`: who refused a
    command, or who sent an event."""

    sequence: int
    at: datetime
    kind: LetterKind
    subject: str
    reason: str
    size: int
    agent: str = ""
    task: UUID | None = None
    kept: str = ""
    fate: LetterFate | None = None


class LetterView(LetterRow):
    """A letter with the message that was refused: the beginning of its body as text, or in base64
    if it is none. `whole`: all of the body is there."""

    headers: dict[str, str] = Field(default_factory=dict)
    body: Annotated[str | None, PAYLOAD_TEXT] = None
    body_base64: Annotated[str | None, PAYLOAD_TEXT] = None
    whole: bool


class LettersRequest(_Model):
    """dead.list: newest first. Without a `kind` all but advisories, each of which tells once more
    of a command that was refused; those that were dealt with only if `dealt_with`."""

    kind: LetterKind | None = None
    dealt_with: bool = False
    limit: int = Field(default=50, ge=1, le=LETTERS_PAGE_MAX)
    cursor: str | None = None


class LetterPage(_Model):
    """`cursor` asks for the next page, which may be empty; None means there is none."""

    letters: list[LetterRow]
    cursor: str | None = None


class LetterRef(_Model):
    """dead.get: a letter by its number."""

    sequence: Sequence


class LetterAct(LetterRef):
    """dead.replay: publish the message again; dead.drop: it is of no interest any more."""

    by: str = ""
    reason: str = ""


class LetterReceipt(_Model):
    """What became of a letter, now or before. `task`: what its message is about."""

    sequence: int
    fate: LetterFate
    task: UUID | None = None
