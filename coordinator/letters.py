"""Dead letters as they are read, and what of one can be published again. Pure.

Always holds: a letter is what its subject says it is, since that is what the server lets its
writer publish; its own words on that count for nothing. Only what comes from coordinators is ever
published again, and a submission only under the id of the task that it was about the first time.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson
from headway.agents.deadletter_views import LetterKind
from headway.agents.strays import is_stray
from headway.agents.subjects import (
    COMMANDS_STREAM,
    EVENTS_STREAM,
    TASKS_STREAM,
    TOKEN,
    dead_subject,
    event_subject,
    parse_command_subject,
)
from headway.coordinator import outcomes, submissions
from headway.coordinator.errors import Refusal
from headway.coordinator.jetstream import Stored
from headway.coordinator.submissions import ID_HEADER
from headway.coordinator.taskid import task_id

ADVISORIES = "$JS.EVENT.ADVISORY.CONSUMER.>"
NOT_A_LETTER = "nobody refused this: it is no letter of a coordinator's or an agent's"

WANTED: Mapping[LetterKind | None, str] = {
    None: dead_subject(">"),
    "submission": dead_subject(TASKS_STREAM),
    "event": dead_subject(EVENTS_STREAM),
    "command": dead_subject(COMMANDS_STREAM, "*"),
    "advisory": ADVISORIES,
    "unknown": dead_subject(">"),
}
"""Which subjects hold letters of a kind."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A letter. `body` is its beginning, if it has more than was kept; `headers` None if they were
    too large; `name` and `owner` as in `deadletters.Refused`."""

    sequence: int
    at: datetime
    kind: LetterKind
    subject: str
    reason: str
    size: int
    body: bytes
    agent: str = ""
    headers: Mapping[str, str] | None = field(default_factory=dict)
    name: str = ""
    owner: str = ""

    @property
    def whole(self) -> bool:
        return len(self.body) == self.size

    @property
    def task(self) -> UUID | None:
        """The task that its message is about, if that can be told."""
        try:
            match self.kind:
                case "submission":
                    return _submission(self).task
                case "event":
                    return outcomes.sender(self.subject, outcomes.decode(self.body))[1]
                case "command":
                    return task_id(parse_command_subject(self.subject).task)
        except (Refusal, ValueError):
            pass
        return None


@dataclass(frozen=True, slots=True)
class Publication:
    """What is published again. `name`: what a submission's headers name it."""

    subject: str
    body: bytes
    headers: Mapping[str, str]
    task: UUID
    name: str = ""


def read(message: Stored) -> Letter:
    """The letter that a message of HW_DEAD is."""
    if not message.subject.startswith(dead_subject("")):
        return _advisory(message)
    try:
        if is_stray(message.headers):
            raise ValueError
        return _written(message, orjson.loads(message.body))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _of_itself(message, "unknown", NOT_A_LETTER)


def republication(letter: Letter) -> Publication:
    """What is to be published again; Refusal (409) says why nothing can be."""
    number = f"letter {letter.sequence}"
    match letter.kind:
        case "command":
            raise Refusal(
                f"{number} is a command, and those are never replayed: as long as its step wants "
                "it, a coordinator publishes it anew by itself",
                409,
            )
        case "advisory":
            raise Refusal(
                f"{number} is an advisory of nats-server, which tells of a message; there is "
                "nothing to replay",
                409,
            )
        case "unknown":
            raise Refusal(f"{number} cannot be replayed: {NOT_A_LETTER}", 409)
    if not letter.whole:
        raise Refusal(
            f"{number} cannot be replayed: only {len(letter.body)} of its {letter.size} bytes "
            "were kept",
            409,
        )
    if letter.headers is None:
        raise Refusal(f"{number} cannot be replayed: its headers were too large to be kept", 409)
    if any(character < " " for text in letter.headers.items() for character in "".join(text)):
        raise Refusal(f"{number} cannot be replayed: control characters are in its headers", 409)
    if "nats-stream" in letter.headers:
        raise Refusal(f"{number} cannot be replayed: {letter.reason}", 409)
    try:
        return _submission(letter) if letter.kind == "submission" else _event(letter)
    except Refusal as refusal:
        raise Refusal(f"{number} would be refused again: {refusal.reason}", 409) from None


def _submission(letter: Letter) -> Publication:
    """Under the id that it had. JetStream's own header for that would have the stream itself take
    the message for one that it has, as long as it remembers the first one."""
    given = letter.headers or {}
    published = submissions.parse(letter.subject, dict(given), letter.body)
    named, headers = submissions.named_id(published), _plain(given)
    name = submissions.name_in(given)
    if named is None:
        name = letter.name
        try:
            named = task_id(name)
        except ValueError:
            raise Refusal("nothing tells which task it was") from None
    if name:
        headers[ID_HEADER] = name
    return Publication(letter.subject, letter.body, headers, named, name)


def _event(letter: Letter) -> Publication:
    event = outcomes.decode(letter.body)
    agent, task = outcomes.sender(letter.subject, event)
    if TOKEN.fullmatch(agent) is None:
        raise Refusal("the agent's name in the subject is not one")
    outcomes.check_payload(agent, event)
    headers = _plain(letter.headers or {})
    return Publication(event_subject(agent, event.task), letter.body, headers, task)


def _plain(headers: Mapping[str, str]) -> dict[str, str]:
    """Without those that JetStream itself obeys."""
    return {name: value for name, value in headers.items() if not name.startswith("nats-")}


def _written(message: Stored, written: Any) -> Letter:
    """What a coordinator or an agent wrote; ValueError and its like if it is not that."""
    _, _, origin, *rest = message.subject.split(".")
    agent = rest[0] if rest else ""
    kind = _KINDS[origin]
    if (kind == "command") != bool(agent):
        raise ValueError(message.subject)
    subject, headers = str(written["subject"]), written.get("headers", {})
    if kind == "event":
        agent = (subject.split(".") + 5 * [""])[3]
    return Letter(
        message.sequence,
        message.at,
        kind,
        subject,
        str(written["reason"]),
        int(written["size"]),
        _body(written),
        agent,
        None if headers is None else {str(key): str(value) for key, value in headers.items()},
        str(written.get("name", "")),
        str(written.get("owner", "")),
    )


_KINDS: Mapping[str, LetterKind] = {
    TASKS_STREAM: "submission",
    EVENTS_STREAM: "event",
    COMMANDS_STREAM: "command",
}


def _body(written: Any) -> bytes:
    if "body" in written:
        return str(written["body"]).encode()
    try:
        return base64.b64decode(written["body_base64"], validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _advisory(message: Stored) -> Letter:
    """What nats-server tells of a consumer's message."""
    try:
        told = orjson.loads(message.body)
        where = f"message {told['stream_seq']} of {told['stream']}"
        what = "was given up" if "MAX_DELIVERIES" in message.subject else "was taken out"
        why = f": {told['reason']}" if told.get("reason") else ""
        reason = f"{where} {what} by consumer {told['consumer']}{why}"
        agent = str(told["consumer"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return _of_itself(message, "unknown", NOT_A_LETTER)
    return _of_itself(message, "advisory", reason, agent)


def _of_itself(message: Stored, kind: LetterKind, reason: str, agent: str = "") -> Letter:
    """One that is its own message."""
    subject, size = message.subject, len(message.body)
    at, body = message.at, message.body
    return Letter(message.sequence, at, kind, subject, reason, size, body, agent)
