"""`GET /metrics`: this coordinator's numbers, as Prometheus reads them.

For programs on this machine, and for whoever presents a token.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from fastapi import APIRouter
from headway.coordinator.http_access import HttpAccess
from headway.coordinator.prometheus import CONTENT_TYPE
from starlette.requests import Request
from starlette.responses import Response

PATH = "/metrics"


def metrics_router(text: Callable[[], Awaitable[str]], access: HttpAccess) -> APIRouter:
    """For the HTTP face; `text` gives the numbers."""

    async def answer(request: Request) -> Response:
        if not _is_of_this_machine(request):
            await access.caller(request.headers)
        return Response(await text(), media_type=CONTENT_TYPE)

    router = APIRouter()
    router.add_api_route(PATH, answer, methods=["GET"], include_in_schema=False)
    return router


def _is_of_this_machine(request: Request) -> bool:
    if request.client is None:
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:
        return False
