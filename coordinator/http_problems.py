"""Problem objects (RFC 9457) as responses on HTTP."""

from __future__ import annotations

import logging

from headway.agents.views import Problem
from headway.coordinator.http_requests import Gone
from headway.coordinator.problems import is_expected, problem, problem_of
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

PROBLEM_JSON = "application/problem+json"
RETRY_AFTER_S = 1

_LOG = logging.getLogger(__name__)


def answer_to(request: Request, error: Exception) -> Response:
    """What is answered instead; what nobody expected goes to the log."""
    if isinstance(error, HTTPException):
        return of(problem(error.status_code, _words(error)), error.headers)
    if isinstance(error, Gone):
        return Response(status_code=499)  # which nobody reads
    if not is_expected(error):
        _LOG.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    return of(problem_of(error))


def of(said: Problem, headers: object = None) -> Response:
    """A problem as a response, with what its status calls for."""
    named = dict(headers) if isinstance(headers, dict) else {}
    if said.status == 401:
        named["WWW-Authenticate"] = "Bearer"
    if said.status in (429, 503):
        named["Retry-After"] = str(RETRY_AFTER_S)
    return Response(said.model_dump_json(), said.status, named, PROBLEM_JSON)


def _words(error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return "there is nothing at this address"
        case 405:
            return "this address takes other methods: see the header Allow"
    return str(error.detail)
