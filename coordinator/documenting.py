"""Whether documents may be written, and what comes of it. Pure: decisions over values.

Always holds: the next version fits its collection's newest rules, and its state may follow that of
the version before it; a write with an operation that was carried out before changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from headway.agents import plainjson
from headway.agents.document_views import (
    BODY_MAX_BYTES,
    DEFINITION_MAX_BYTES,
    ILLEGAL_TRANSITION,
    CollectionRequest,
    DocumentConflict,
    Transitions,
    WriteOutcome,
    Written,
    too_large,
)
from headway.coordinator.errors import Refusal
from headway.coordinator.schemas import compiled, misfit


@dataclass(frozen=True, slots=True)
class Rules:
    """A version of a collection's definition. `schema` is a compiled one."""

    version: int
    schema: Any
    transitions: Transitions | None


class Stored(NamedTuple):
    """The newest version of a document; 0: there never was one. No body: it is deleted."""

    version: int
    body: bytes | None
    digest: str


class Done(NamedTuple):
    """What an earlier write made. `at` is in ms."""

    version: int
    digest: str
    at: int


NEVER = Stored(0, None, "")


@dataclass(frozen=True, slots=True)
class Write:
    """A wanted version; `body` is its JSON, None to delete. `value` is what the body says."""

    collection: str
    key: str
    expected: int | None
    operation: UUID | None = None
    by: str = ""
    task: UUID | None = None
    step: str = ""
    body: bytes | None = field(default=None, repr=False)
    value: Any = field(default=None, repr=False)

    @property
    def document(self) -> tuple[str, str]:
        """Its collection and key."""
        return self.collection, self.key


Decision = Stored | WriteOutcome | Refusal
"""The next version, which is to be committed; or an answer that changes nothing."""


def decide(rules: Rules | None, stored: Stored, done: Done | None, write: Write) -> Decision:
    """What comes of a write to a document. `done` is what its operation made of it before."""
    if done is not None:
        return written(done, repeated=True)
    try:
        following = next_version(rules, stored, write)
    except Refusal as refusal:
        return refusal
    if isinstance(following, DocumentConflict):
        return WriteOutcome(conflict=following)
    return following


def written(made: Done, *, repeated: bool = False) -> WriteOutcome:
    """The answer to a write that went through."""
    return WriteOutcome(
        written=Written(
            version=made.version, digest=made.digest, at=moment(made.at), repeated=repeated
        )
    )


def next_version(rules: Rules | None, stored: Stored, write: Write) -> Stored | DocumentConflict:
    """What one write makes of a document, or which version is in its way. Refusal: there is no such
    thing (404), it is not legal (409), or it does not fit (422)."""
    if rules is None:
        raise unknown_collection(write.collection)
    current = 0 if stored.body is None else stored.version
    if write.expected is not None and write.expected != current:
        return _conflict(write, current, stored.digest)
    if write.body is None:
        if current == 0:
            raise unknown_document(write.collection, write.key, stored.version)
        return Stored(stored.version + 1, None, "")
    if rules.schema is not None:
        complaint = misfit(rules.schema, write.value, "body")
        if complaint:
            raise _unfit(write, complaint)
    if rules.transitions is not None:
        _check_transition(rules.transitions, stored, write)
    return Stored(stored.version + 1, write.body, digest_of(write.value))


def rules_of(version: int, definition: CollectionRequest) -> Rules:
    """Rules to hold documents to; Refusal (422) if the schema is not one."""
    schema = definition.body_schema
    return Rules(
        version, None if schema is None else compiled(schema, "body_schema"), definition.transitions
    )


def definition_of(request: CollectionRequest) -> tuple[bytes, str]:
    """A definition as it is stored, and its digest; Refusal (422) if it cannot be."""
    content = request.model_dump(mode="json")
    try:
        body = plainjson.encode(content, made_of=request.body_schema)
    except plainjson.NotPlain as error:
        raise Refusal(f"body_schema: {error}", 422) from error
    if len(body) > DEFINITION_MAX_BYTES:
        raise Refusal(
            f"the definition has {len(body)} bytes, more than {DEFINITION_MAX_BYTES} (256 KiB)", 413
        )
    return body, digest_of(content)


def body_of(value: Any) -> bytes:
    """A body as it is stored; Refusal (422, 413) if it cannot be."""
    try:
        body = plainjson.encode(value)
    except plainjson.NotPlain as error:
        raise Refusal(f"body: {error}", 422) from error
    if len(body) > BODY_MAX_BYTES:
        raise Refusal(too_large(len(body)), 413)
    return body


def digest_of(value: Any) -> str:
    """SHA-256, hex, of a value as JSON: neither white space nor the order of keys matters."""
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def unknown_collection(name: str) -> Refusal:
    return Refusal(
        f"there is no collection {name!r}; register it first (headway document collection)", 404
    )


def unknown_document(collection: str, key: str, last_version: int) -> Refusal:
    """`last_version` is 0 if there never was one."""
    if last_version:
        return Refusal(
            f"document {key!r} of collection {collection!r} was deleted, as version {last_version}",
            404,
        )
    return Refusal(f"there is no document {key!r} in collection {collection!r}", 404)


def moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _conflict(write: Write, current: int, digest: str) -> DocumentConflict:
    name = f"document {write.key!r} of collection {write.collection!r}"
    if current == 0:
        detail = f"{name} is not there, so it is not at version {write.expected}"
    elif write.expected == 0:
        detail = f"{name} is there already, at version {current}"
    else:
        detail = f"{name} is at version {current}, not {write.expected}: read it again"
    return DocumentConflict(
        current_version=current, current_digest=digest if current else "", detail=detail
    )


def _check_transition(transitions: Transitions, stored: Stored, write: Write) -> None:
    new = state_in(write.value, transitions.field)
    if new is None:
        raise _unfit(write, f"{transitions.field}: it must be there and be a string, the state")
    old = None if stored.body is None else state_in(orjson.loads(stored.body), transitions.field)
    if old is None:
        legal: Sequence[str] = transitions.initial
        what = f"may not begin as {new!r}; legal is"
    else:
        legal = [old, *transitions.legal.get(old, ())]
        what = f"may not go from {old!r} to {new!r}; legal from there is"
    if new not in legal:
        choice = ", ".join(repr(state) for state in legal if state != old) or "nothing"
        raise Refusal(
            f"document {write.key!r} of collection {write.collection!r}: "
            f"{transitions.field} {what} {choice}",
            409,
            ILLEGAL_TRANSITION,
        )


def state_in(body: Any, field: str) -> str | None:
    """The string at `field`, a name at the top or a JSON pointer; None if there is none."""
    found = body
    for name in _names(field):
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdigit():
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return None
    return found if isinstance(found, str) else None


def _names(field: str) -> list[str]:
    if not field.startswith("/"):
        return [field]
    return [name.replace("~1", "/").replace("~0", "~") for name in field[1:].split("/")]


def _unfit(write: Write, complaint: str) -> Refusal:
    return Refusal(
        f"document {write.key!r} does not fit collection {write.collection!r}: {complaint}", 422
    )
