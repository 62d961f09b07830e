"""The operations on HTTP: `GET /api/<operation>` for what reads, `POST` for what acts.

Generated from the same table as the NATS face: same names, models, roles and errors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from headway.coordinator import http_problems
from headway.coordinator.access import UNDECIDED
from headway.coordinator.api import ANSWER_TIMEOUT_S
from headway.coordinator.http_access import HttpAccess
from headway.coordinator.http_requests import (
    JSON,
    asked_in_body,
    asked_in_query,
    with_key,
    with_origin,
)
from headway.coordinator.places import Places
from headway.coordinator.roles import NEEDS, VIEW
from headway.coordinator.serving import Offer, Serve
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PREFIX = "/api/"
KEYED = frozenset({"submit", "run"})  # whose requests are known by their Idempotency-Key

Endpoint = Callable[[Request], Awaitable[Response]]


def method_of(operation: str) -> str:
    """GET for what `view`, or anybody, may ask for, since that changes nothing; else POST."""
    return "GET" if NEEDS.get(operation, UNDECIDED).role in ("", VIEW) else "POST"


class HttpApi:
    def __init__(self, offer: Offer, access: HttpAccess, places: Places) -> None:
        self._offer = offer
        self._access = access
        self._places = places

    def routes(self) -> list[Route]:
        """One for each operation of people."""
        return [
            Route(
                f"{PREFIX}{operation}",
                partial(self._answer, operation, serve),
                methods=[method_of(operation)],
            )
            for operation, serve in self._offer.people.items()
        ]

    async def _answer(self, operation: str, serve: Serve, request: Request) -> Response:
        try:
            caller = await self._access.caller(request.headers)
            with self._places.taken(caller.name):
                serve.check(caller)
                if method_of(operation) == "GET":
                    body = asked_in_query(serve.request, request.query_params)
                else:
                    body = await asked_in_body(request)
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    asked = serve.parse(body, caller)
                    if operation in KEYED:
                        asked = with_origin(with_key(asked, request.headers), request.headers)
                    answer = await serve.run(asked, caller)
                return Response(answer.model_dump_json(), media_type=JSON)
        except Exception as error:
            return http_problems.answer_to(request, error)
