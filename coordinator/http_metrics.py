"""`GET /metrics`: this coordinator's numbers, as Prometheus reads them.

For programs on this machine, and for whoever presents a token that sees everybody's tasks. Always
holds: no page of another site and nobody behind a proxy counts as a program on this machine.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

from fastapi import APIRouter
from headway.coordinator.access import check_role
from headway.coordinator.http_access import HttpAccess
from headway.coordinator.prometheus import CONTENT_TYPE
from headway.coordinator.roles import METRICS
from starlette.requests import Request
from starlette.responses import Response

PATH = "/metrics"
OPERATION = "metrics"
HANDED_ON = ("forwarded", "via", "x-forwarded-for", "x-real-ip")  # headers that proxies add


def metrics_router(text: Callable[[], Awaitable[str]], access: HttpAccess) -> APIRouter:
    """For the HTTP face; `text` gives the numbers."""

    async def answer(request: Request) -> Response:
        if not _is_of_this_machine(request):
            check_role(OPERATION, METRICS, await access.caller(request.headers))
        return Response(await text(), media_type=CONTENT_TYPE)

    router = APIRouter()
    router.add_api_route(PATH, answer, methods=["GET"], include_in_schema=False)
    return router


def _is_of_this_machine(request: Request) -> bool:
    """Whether it comes from here, asks for an address of here, and is handed on for nobody."""
    if request.client is None or any(name in request.headers for name in HANDED_ON):
        return False
    return _is_loopback(request.client.host) and _asks_here(request.headers.get("host", ""))


def _asks_here(host: str) -> bool:
    """By its Host; without one, it is no browser that asks."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return not host or name == "localhost" or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
