"""HTTP connections with bounds, on uvicorn: how many, how large, and how slow they may be.

Always holds: a connection that does not get on is closed, whatever it waits for: a request's head
after HEAD_WITHIN_S, the rest of a body that nobody wants after LINGER_S, an answer that is not
read after READ_WITHIN_S.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import h11
from headway.coordinator.http_problems import PROBLEM_JSON
from headway.coordinator.problems import problem
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS_MAX = 512  # of one coordinator, whose other connections need descriptors as well
HEAD_MAX_BYTES = 16_384  # of a request's line and headers
HEAD_WITHIN_S = 10.0
LINGER_S = 2.0
READ_WITHIN_S = 30.0
IDLE_S = 15  # between two requests

_LOG = logging.getLogger(__name__)


class BoundedConnection(H11Protocol):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._closing: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        if len(self.connections) >= CONNECTIONS_MAX:
            transport.abort()
            return
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().connection_made(transport)
        self._close_in(HEAD_WITHIN_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._keep()
        self._read()
        if self.transport is not None:  # it was let in
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            if self.conn.our_state is not h11.DONE:
                self._keep()
        elif self._closing is None and not self.transport.is_closing():
            self._close_in(HEAD_WITHIN_S)

    def pause_writing(self) -> None:
        """So much of an answer is not read yet that no more is written."""
        super().pause_writing()
        self._unread = self.loop.call_later(READ_WITHIN_S, self.transport.abort)

    def resume_writing(self) -> None:
        self._read()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY:
            self._close_in(LINGER_S)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        """In place of the text that uvicorn sends."""
        body = problem(400, "this is no request of HTTP/1.1").model_dump_json().encode()
        headers = [("content-type", PROBLEM_JSON), ("connection", "close")]
        head = h11.Response(status_code=400, headers=[*headers, ("cache-control", "no-store")])
        try:
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            _LOG.debug("an answer was under way when what followed was no request")
        self._close()

    def timeout_keep_alive_handler(self) -> None:
        self._close()

    def _close(self) -> None:
        """Close once all is sent; not so much later if the other side does not read it."""
        self._keep()
        if not self.transport.is_closing():
            self.transport.close()
        self.loop.call_later(READ_WITHIN_S, self.transport.abort)

    def _close_in(self, seconds: float) -> None:
        self._keep()
        self._closing = self.loop.call_later(seconds, self._close)

    def _keep(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def _read(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None
