"""Headers that every answer on HTTP bears, so that a browser does no more with it than is meant."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

ALWAYS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; object-src 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
UNLESS_SAID = {"Cache-Control": "no-store"}  # tasks' data are nobody else's
ON_TLS = {"Strict-Transport-Security": "max-age=31536000"}


class SafeHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in UNLESS_SAID.items():
                    headers.setdefault(name, value)
                headers.update(ALWAYS)
                if scope.get("scheme") == "https":
                    headers.update(ON_TLS)
            await send(message)

        await self._app(scope, receive, send_safely)
