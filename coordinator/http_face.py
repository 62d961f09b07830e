"""The HTTP face: the API, the console and the probes, served by each coordinator.

It answers from the start: while its servers are away, the probes say so and the API answers 503.
Plain HTTP is for this machine, or for a proxy that does TLS; else give a certificate and its key.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from headway.agents.errors import HeadwayError
from headway.coordinator import http_problems
from headway.coordinator.errors import CoordinatorError, StoreUnavailable
from headway.coordinator.http_access import HttpAccess
from headway.coordinator.http_api import PREFIX, HttpApi
from headway.coordinator.http_console import ConsoleFiles
from headway.coordinator.http_headers import SafeHeaders
from headway.coordinator.http_heads import complaint
from headway.coordinator.http_openapi import Described
from headway.coordinator.http_places import Places
from headway.coordinator.http_probes import Look, Probes
from headway.coordinator.http_requests import Gone
from headway.coordinator.http_server import HttpServer
from headway.coordinator.serving import Offer
from headway.coordinator.settings import Settings
from headway.coordinator.tokens import Tokens
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

DESCRIPTION_PATH = f"{PREFIX}openapi.json"
STARTING = "this coordinator: it waits for its servers"

_LOG = logging.getLogger(__name__)


class HttpFace:
    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        """Off, unless the settings say where."""
        self.access = HttpAccess(tokens, settings.console_token.get_secret_value())
        self._places = Places()
        self._probes = Probes(STARTING)
        files = ConsoleFiles(settings.trace_link)
        self._always = [*self._probes.routes(), *files.routes()]
        self._app: ASGIApp = application(
            [*self._always, Route(f"{PREFIX}{{rest:path}}", _starting, methods=["GET", "POST"])]
        )
        self._settings = settings
        self._server: HttpServer | None = None

    @property
    def address(self) -> str:
        """Where it is served, as a URL; "" if it is not."""
        return self._server.address if self._server else ""

    def start(self) -> None:
        """Answer from now on; CannotListen says why that cannot be."""
        if self._settings.http or self._settings.http_fd is not None:
            self._server = HttpServer(SafeHeaders(self._serve), self._settings)
            self._server.start()
            _LOG.info("HTTP and the console are served at %s", self.address)

    def open(
        self, offer: Offer, looks: Mapping[str, Look], routers: Sequence[APIRouter] = ()
    ) -> None:
        """Offer the API. `looks` tell what must be there to be ready; `routers` come with it."""
        api = HttpApi(offer, self.access, self._places)
        described = Route(DESCRIPTION_PATH, Described(offer.people).answer)
        self._app = application([*self._always, described, *api.routes()], routers)
        self._probes.look_at(looks)

    async def stop(self) -> None:
        """Let what is under way end, and close every connection."""
        self._probes.leave()
        if self._server is not None:
            await self._server.stop()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = complaint(scope)
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await http_problems.of(refused, {"Connection": "close"})(scope, receive, send)


def application(routes: Sequence[BaseRoute], routers: Sequence[APIRouter] = ()) -> FastAPI:
    """Whatever goes wrong in it is answered with a problem."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    for router in routers:
        app.include_router(router)
    app.router.routes.extend(routes)
    for kind in (HTTPException, HeadwayError, CoordinatorError, ValidationError, Gone, Exception):
        app.add_exception_handler(kind, _answer_to)
    return app


async def _answer_to(request: Request, error: Exception) -> Response:
    return http_problems.answer_to(request, error)


async def _starting(_request: Request) -> Response:
    raise StoreUnavailable(f"not ready: {STARTING}")
