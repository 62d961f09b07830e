"""What is asked of documents and answered (`hw.api.document.*`), as pydantic models.

A collection has rules: a JSON Schema, legal transitions, both, or none. Every change of a document
makes its next version, deleting it as well, and all versions are kept.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from headway.agents.masks import PAYLOAD
from headway.agents.subjects import SubjectError, token
from headway.agents.views import PAGE_LIMIT_MAX, Number
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

KEY_MAX_CHARS = 512
WHO_MAX_CHARS = 200
BODY_MAX_BYTES = 262_144  # of a document's body as JSON: 256 KiB
DEFINITION_MAX_BYTES = 262_144  # of a collection's definition as JSON
STATES_MAX = 1_000
BODIES_PAGE_MAX = 50  # versions or changes, with their bodies, in one answer
REVISION_MAX = 9_223_372_036_854_775_807

# Problem types of a refusal; each is also said in words.
VERSION_CONFLICT = "version-conflict"
ILLEGAL_TRANSITION = "illegal-transition"


def too_large(size: int) -> str:
    """Why a body of so many bytes is not taken."""
    return (
        f"the document has {size} bytes, more than {BODY_MAX_BYTES} (256 KiB); "
        "keep it elsewhere and put a reference to it"
    )


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul", "a NUL character cannot be stored")
    return text


def _token(text: str) -> str:
    try:
        return token(text)
    except SubjectError as error:
        raise PydanticCustomError("token", "{reason}", {"reason": str(error)}) from error


Name = Annotated[str, AfterValidator(_token)]
Key = Annotated[str, Field(min_length=1, max_length=KEY_MAX_CHARS), AfterValidator(_without_nul)]
KeyPart = Annotated[str, Field(max_length=KEY_MAX_CHARS), AfterValidator(_without_nul)]
Who = Annotated[str, Field(max_length=WHO_MAX_CHARS), AfterValidator(_without_nul)]
States = Annotated[list[str], Field(max_length=STATES_MAX)]
Revision = Annotated[int, Field(ge=0, le=REVISION_MAX)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Transitions(_Model):
    """Which states a document may begin in, and which may follow which.

    `field` holds the state, a string: a name at the top of the body, or a JSON pointer into it
    (RFC 6901, `/order/status`). A write that leaves the state as it is is always legal; a state
    from which nothing is legal is an end.
    """

    field: str = Field(min_length=1, max_length=KEY_MAX_CHARS)
    initial: States = Field(min_length=1)
    legal: dict[str, States] = Field(max_length=STATES_MAX)


class CollectionRequest(_Model):
    """document.collection: register a collection, or give it another definition.

    The newest definition holds for what is written from then on; what is there already stays.
    """

    name: Name
    body_schema: dict[str, Any] | None = None
    transitions: Transitions | None = None


class CollectionView(_Model):
    """`version` of the definition, which stays the same if the same one is registered again."""

    name: str
    version: int
    registered_at: datetime


class _OfCollection(_Model):
    collection: Name


class _OfDocument(_OfCollection):
    key: Key


class _Write(_OfDocument):
    """`expected`: the version that must be the newest; 0: there must be no document; null: whatever
    there is. `operation`: the same write again, for the same document, is carried out once.
    """

    expected: Number | None
    operation: UUID | None = None
    by: Who = ""
    task: UUID | None = None
    step: Who = ""


class DocumentPut(_Write):
    """document.put: the next version of a document, or its first."""

    body: Any


class DocumentDelete(_Write):
    """document.delete: a last version without a body; the document may come again later."""


class Written(_Model):
    """The version that a write made. `repeated`: by an earlier write with this operation."""

    version: int
    digest: str
    at: datetime
    repeated: bool = False


class DocumentConflict(_Model):
    """The newest version is not the one expected; 0, with no digest: there is no document."""

    current_version: int
    current_digest: str
    detail: str


class WriteOutcome(_Model):
    """What was written, or why nothing was."""

    written: Written | None = None
    conflict: DocumentConflict | None = None


class DocumentGet(_OfDocument):
    """document.get: a document as it is, or as it was at a version."""

    version: Annotated[Number, Field(ge=1)] | None = None


class Document(_OfDocument):
    """One version. `digest`: SHA-256, hex, of the body as JSON with sorted keys, no white space."""

    version: int
    body: Annotated[Any, PAYLOAD]
    digest: str
    at: datetime


class DocumentList(_OfCollection):
    """document.list: keys that begin with `prefix`, in the order of their UTF-8 bytes."""

    prefix: KeyPart = ""
    after: KeyPart = ""
    limit: int = Field(default=PAGE_LIMIT_MAX, ge=1, le=PAGE_LIMIT_MAX)


class DocumentRow(_Model):
    key: str
    version: int
    digest: str
    at: datetime


class DocumentPage(_Model):
    """`after` asks for the next page; None means there is none."""

    documents: list[DocumentRow]
    after: str | None = None


class DocumentHistoryRequest(_OfDocument):
    """document.history: all versions of a document, oldest first."""

    after: Number = 0
    limit: int = Field(default=BODIES_PAGE_MAX, ge=1, le=BODIES_PAGE_MAX)


class DocumentVersion(_Model):
    """A version and who wrote it: a person or program (`by`), or a task's step."""

    version: int
    deleted: bool = False
    body: Annotated[Any, PAYLOAD] = None
    digest: str
    at: datetime
    operation: UUID | None = None
    by: str = ""
    task: UUID | None = None
    step: str = ""


class DocumentHistory(_Model):
    versions: list[DocumentVersion]
    more: bool = False


class DocumentChangesRequest(_OfCollection):
    """document.changes: what changed after a revision of the collection, as it is now."""

    key: Key | None = None
    after: Revision = 0
    limit: int = Field(default=BODIES_PAGE_MAX, ge=1, le=BODIES_PAGE_MAX)


class DocumentChange(_Model):
    """A document with a new version. `revision` orders all changes of the collection."""

    collection: str
    key: str
    version: int
    revision: int
    deleted: bool = False
    body: Annotated[Any, PAYLOAD] = None
    digest: str
    at: datetime


class DocumentChanges(_Model):
    """`newest`: the collection's newest revision."""

    changes: list[DocumentChange]
    newest: int
    more: bool = False
