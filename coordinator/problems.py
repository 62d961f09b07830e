"""Why a request is not granted, as a problem object (RFC 9457): the same on every face. Pure."""

from __future__ import annotations

from headway.agents.errors import Unavailable
from headway.agents.messages import describe
from headway.agents.views import UNTYPED, Problem
from headway.coordinator.errors import (
    BusUnavailable,
    CoordinatorError,
    Refusal,
    StoreRefused,
    StoreUnavailable,
)
from pydantic import ValidationError

INTERNAL = "an internal error; the coordinator's log has it"
BUSY = "too many requests at once; ask again"
TITLES = {
    400: "not understood",
    401: "not known",
    403: "not allowed",
    404: "not found",
    405: "no such method",
    408: "too slow",
    409: "conflict",
    410: "gone",
    413: "too large",
    415: "not JSON",
    422: "not valid",
    429: "too many requests",
    431: "too large",
    500: "internal error",
    503: "not available now",
}


def problem(code: int, reason: str, kind: str = UNTYPED) -> Problem:
    return Problem(type=kind, title=TITLES.get(code, "refused"), detail=reason, status=code)


def problem_of(error: Exception) -> Problem:
    """What whoever asked is told of an error; INTERNAL of one that nobody expected."""
    match error:
        case Refusal():
            return problem(error.code, error.reason, error.kind)
        case ValidationError():
            return problem(422, describe(error))
        case StoreRefused():
            return problem(422, f"PostgreSQL cannot read this: {error}")
        case StoreUnavailable() | BusUnavailable() | Unavailable():
            return problem(503, str(error))
        case TimeoutError():
            return problem(503, "the coordinator is too busy or cannot commit")
        case CoordinatorError():
            return problem(500, str(error))
    return problem(500, INTERNAL)


def is_expected(error: Exception) -> bool:
    """Whether an error is one that a request may end with, and no fault of ours."""
    known = (CoordinatorError, Unavailable, ValidationError, TimeoutError)
    return isinstance(error, known)
