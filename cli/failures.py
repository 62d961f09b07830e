"""How a command ends: its exit codes, and the words for errors that are expected.

An expected error is one or two lines on standard error that say what to do, and an exit code.
Anything else is a bug and shows its traceback.
"""

from __future__ import annotations

from enum import IntEnum

from headway.agents.errors import (
    DeclarationError,
    HeadwayError,
    InvalidInput,
    NotFound,
    NotLetIn,
    Refused,
    Unavailable,
)
from headway.coordinator.errors import SchemaMismatch
from headway.sagas.errors import SagaError


class Exit(IntEnum):
    """What a caller can tell from the status of a command."""

    OK = 0
    OTHERWISE = 1
    BAD_INPUT = 2
    REFUSED = 3
    NOBODY = 4
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done as asked",
    Exit.OTHERWISE: "a task ended otherwise than asked, a check failed, or a server did not start",
    Exit.BAD_INPUT: "wrong usage, input that does not fit, or a part that is not installed",
    Exit.REFUSED: "refused: no such thing, its state forbids it, or a key is not let in",
    Exit.NOBODY: "nobody answered: no server or no coordinator is reachable",
    Exit.INTERRUPTED: "interrupted",
}


class BadInput(HeadwayError):
    """Something that a person typed, or a file that they named, cannot be used as it is."""


class MissingExtra(HeadwayError):
    """A command that needs more than the base install."""


EXPECTED = (HeadwayError, SagaError, SchemaMismatch)

_SHOWN_BY = {
    "there is no task ": "headway list",
    "there is no saga ": "headway saga list",
    "there is no dead letter ": "headway dead list",
    "there is no limit ": "headway limits list",
    "no token ": "headway tokens list",
}
"""By the beginning of what is said of something that is not there: what lists those that are."""


def told(error: Exception) -> str:
    """What a person is told of an expected error, with what was noted on it on its way."""
    return "; ".join([_text(error), *getattr(error, "__notes__", ())])


def _text(error: Exception) -> str:
    text = str(error)
    if not isinstance(error, NotFound) or "`" in text or "(headway " in text:
        return text
    listed = next((each for start, each in _SHOWN_BY.items() if text.startswith(start)), "")
    return f"{text}; `{listed}` shows those that are" if listed else text


def exit_code(error: Exception) -> Exit:
    """The exit code of an expected error."""
    match error:
        case Refused() | NotLetIn():
            return Exit.REFUSED
        case Unavailable():
            return Exit.NOBODY
        case SagaError() | InvalidInput() | DeclarationError() | BadInput() | MissingExtra():
            return Exit.BAD_INPUT
        case _:
            return Exit.OTHERWISE
