"""uvicorn as a part of the coordinator: in its loop, stopped by it, without signals of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Iterator
from ipaddress import ip_address

from headway.coordinator.http_connections import HEAD_MAX_BYTES, IDLE_S, BoundedConnection
from headway.coordinator.http_socket import BACKLOG, CannotListen, listen, url_of
from headway.coordinator.settings import Settings
from starlette.types import ASGIApp
from uvicorn import Config, Server

STOP_GRACE_S = 2  # for requests that are under way

_LOG = logging.getLogger(__name__)


class _Embedded(Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the coordinator's."""
        yield


class HttpServer:
    """`app`, on the socket that was inherited or at the address that was given."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """CannotListen if the certificate, the key or the address is none."""
        config = Config(
            app,
            loop="none",
            http=BoundedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=logging.ERROR,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=STOP_GRACE_S + 1,
            ssl_certfile=settings.http_cert,
            ssl_keyfile=settings.http_key,
            h11_max_incomplete_event_size=HEAD_MAX_BYTES,
        )
        try:
            config.load()
        except (OSError, ssl.SSLError) as error:
            raise CannotListen(
                f"HEADWAY_HTTP_CERT, HEADWAY_HTTP_KEY: cannot be used for TLS: {error}"
            ) from error
        self._server = _Embedded(config)
        self._socket = _listening(settings)
        self._serving: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        return url_of(self._socket, tls=self._server.config.is_ssl)

    @property
    def is_open_and_plain(self) -> bool:
        """Whether others than this machine can reach it, and without TLS."""
        host = ip_address(self._socket.getsockname()[0])
        return not host.is_loopback and not self._server.config.is_ssl

    def start(self) -> None:
        """Accept connections; may be repeated."""
        if self._serving is None and not self._server.should_exit:
            self._serving = asyncio.create_task(self._server.serve([self._socket]))

    async def stop(self) -> None:
        """Accept nothing more, let requests end that are under way, and close; at most for
        STOP_GRACE_S and a moment."""
        self._server.should_exit = True
        if self._serving is None:
            self._socket.close()
        else:
            await asyncio.wait({self._serving}, timeout=STOP_GRACE_S)
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()
            await asyncio.wait({self._serving})


def _listening(settings: Settings) -> socket.socket:
    if settings.http_fd is not None:
        return socket.socket(fileno=settings.http_fd)
    return listen(settings.http)
