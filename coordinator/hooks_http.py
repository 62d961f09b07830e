"""`POST /hooks/<name>`: what other systems send becomes signals. Its signature is its leave.

Always holds: where there is no webhook, no body is read, so that it keeps no place from others.
"""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from headway.agents.views import SignalRequest
from headway.coordinator import http_problems
from headway.coordinator.api import ANSWER_TIMEOUT_S
from headway.coordinator.caller import Caller
from headway.coordinator.http_requests import JSON, asked_in_body, request_places
from headway.coordinator.serving import Serve
from headway.coordinator.webhooks import PATH, Webhooks
from starlette.requests import Request
from starlette.responses import Response


def hooks_router(webhooks: Webhooks, signal: Serve) -> APIRouter:
    """For the HTTP face; `signal` is the operation of that name."""
    places = request_places()

    async def send(request: SignalRequest) -> None:
        await signal.run(request, Caller())

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        try:
            with places.taken(f"webhook {name}"):
                await webhooks.check(name)
                body = await asked_in_body(request)
                headers = {key.lower(): value for key, value in request.headers.items()}
                query = dict(request.query_params)
                async with asyncio.timeout(ANSWER_TIMEOUT_S):
                    receipt = await webhooks.take(name, headers, query, body, send)
                return Response(receipt.model_dump_json(), media_type=JSON)
        except Exception as error:
            return http_problems.answer_to(request, error)

    router = APIRouter()
    router.add_route(f"{PATH}{{name}}", answer, methods=["POST"])
    return router
