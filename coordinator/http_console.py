"""The console's files on HTTP, as they lie in the package: no build, no templates.

Always holds: only files of the console's own folder are given out, by names of plain words.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import headway.coordinator.console
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

FOLDER = Path(headway.coordinator.console.__path__[0])
PAGES = ("tasks", "parked", "agents", "sagas", "dead")  # first words of addresses that are pages
PROGRAMS = ("/api/", "/console/", "/hooks/")  # where no person looks for a page
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*(\.[a-z0-9]+)+")


@dataclass(frozen=True, slots=True)
class _File:
    changed_ns: int
    body: bytes
    tag: str


class ConsoleFiles:
    """Read when they are first asked for, and again when they have changed."""

    def __init__(self, trace_link: str = "", folder: Path = FOLDER) -> None:
        """`trace_link`: where a tracing system shows a trace, with {trace} for its id."""
        self._trace_link = trace_link
        self._folder = folder
        self._known: dict[str, _File] = {}

    def routes(self) -> list[Route]:
        pages = ["/", *(f"/{page}{rest}" for page in PAGES for rest in ("", "/{rest:path}"))]
        return [
            Route("/console/settings.json", self._settings),
            Route("/console/{name:path}", self._file),
            *(Route(page, self._page) for page in pages),
        ]

    async def _settings(self, _request: Request) -> Response:
        """What the console is told by this installation; nothing that is a secret."""
        return JSONResponse({"trace_link": self._trace_link}, headers={"Cache-Control": "no-cache"})

    def lost(self, request: Request) -> Response | None:
        """The page for an address that is none, if it is a person who asks; None for what programs
        ask for: operations, and files of the console."""
        wanted, path = request.headers.get("accept", ""), request.url.path
        if request.method not in ("GET", "HEAD") or "text/html" not in wanted:
            return None
        page = None if path.startswith(PROGRAMS) else self._read("index.html")
        if page is None:
            return None
        headers = {"Cache-Control": "no-cache", "ETag": page.tag}
        return Response(page.body, 404, headers, KINDS[".html"])

    async def _page(self, request: Request) -> Response:
        return self._response(request, "index.html")

    async def _file(self, request: Request) -> Response:
        return self._response(request, request.path_params["name"])

    def _response(self, request: Request, name: str) -> Response:
        file = self._read(name)
        if file is None:
            raise HTTPException(404)
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.body, headers=headers, media_type=KINDS[Path(name).suffix])

    def _read(self, name: str) -> _File | None:
        path = self._folder / name
        if not NAME.fullmatch(name) or path.suffix not in KINDS:
            return None
        try:
            changed_ns = path.stat().st_mtime_ns
            known = self._known.get(name)
            if known is None or known.changed_ns != changed_ns:
                body = path.read_bytes()
                tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
                known = self._known[name] = _File(changed_ns, body, tag)
        except OSError:
            return None
        return known
