"""The HTTP face: the API, the console and the probes, served by each coordinator.

It answers from the start: while its servers are away, the probes say so and the API answers 503.
Only on a socket that is shared it leaves that to others, if it is ready soon.
Plain HTTP is for this machine, or for a proxy that does TLS; else give a certificate and its key.
"""

from __future__ import annotations

import asyncio
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
from headway.coordinator.http_probes import Look, Probes
from headway.coordinator.http_requests import Gone, request_places
from headway.coordinator.http_server import HttpServer
from headway.coordinator.serving import Offer
from headway.coordinator.settings import Settings
from headway.coordinator.tokens import Tokens
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

DESCRIPTION_PATH = f"{PREFIX}openapi.json"
SHARED_PATIENCE_S = 3.0  # after which one that is not ready answers, too, and says so
FAILURES = (HTTPException, HeadwayError, CoordinatorError, ValidationError, Gone, Exception)
STARTING = "this coordinator: it waits for its servers"
MEND = (
    "put a proxy that does TLS in front of it, and serve on 127.0.0.1; or set HEADWAY_HTTP_CERT "
    "and HEADWAY_HTTP_KEY"
)

_LOG = logging.getLogger(__name__)


class HttpFace:
    def __init__(self, settings: Settings, tokens: Tokens) -> None:
        """Off, unless the settings say where."""
        self.access = HttpAccess(tokens, settings.console_token.get_secret_value())
        self._places = request_places()
        self._probes = Probes(STARTING)
        self._files = ConsoleFiles(settings.trace_link)
        self._always = [*self._probes.routes(), *self._files.routes()]
        starting = Route(f"{PREFIX}{{rest:path}}", _starting, methods=["GET", "POST"])
        self._app = self._application([*self._always, starting])
        self._settings = settings
        self._server: HttpServer | None = None
        self._patience: asyncio.TimerHandle | None = None

    @property
    def address(self) -> str:
        """Where it is served, as a URL; "" if it is not."""
        return self._server.address if self._server else ""

    def start(self) -> None:
        """Answer from now on; CannotListen says why that cannot be."""
        if self._settings.http or self._settings.http_fd is not None:
            self._server = HttpServer(SafeHeaders(self._serve), self._settings)
            if self._settings.http_fd is None:
                self._server.start()
            else:  # others who share it answer meanwhile
                loop = asyncio.get_running_loop()
                self._patience = loop.call_later(SHARED_PATIENCE_S, self._server.start)
            _LOG.info("HTTP and the console are served at %s", self.address)
            if self._server.is_open_and_plain:
                _LOG.warning("HTTP is neither encrypted nor kept to this machine: %s", MEND)

    def open(
        self, offer: Offer, looks: Mapping[str, Look], routers: Sequence[APIRouter] = ()
    ) -> None:
        """Offer the API. `looks` tell what must be there to be ready; `routers` come with it."""
        if self._server is None:
            return
        api = HttpApi(offer, self.access, self._places)
        described = Route(DESCRIPTION_PATH, Described(offer.people).answer)
        self._app = self._application([*self._always, described, *api.routes()], routers)
        self._probes.look_at(looks)
        self._server.start()

    async def stop(self) -> None:
        """Let what is under way end, and close every connection."""
        self._probes.leave()
        if self._patience is not None:
            self._patience.cancel()
        if self._server is not None:
            await self._server.stop()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = complaint(scope)
        if refused is None:
            await self._app(scope, receive, send)
        else:
            await http_problems.of(refused, {"Connection": "close"})(scope, receive, send)

    def _application(
        self, routes: Sequence[BaseRoute], routers: Sequence[APIRouter] = ()
    ) -> ASGIApp:
        """Whatever goes wrong in it is answered with a problem, or a person's way with a page."""
        app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
        for router in routers:
            app.include_router(router)
        app.router.routes.extend(routes)
        for kind in FAILURES:
            app.add_exception_handler(kind, self._answer_to)
        return app

    async def _answer_to(self, request: Request, error: Exception) -> Response:
        lost = isinstance(error, HTTPException) and error.status_code == 404
        page = self._files.lost(request) if lost else None
        return page or http_problems.answer_to(request, error)


async def _starting(_request: Request) -> Response:
    raise StoreUnavailable("this coordinator waits for its servers; ask again")
