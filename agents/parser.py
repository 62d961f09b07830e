"""The parser that stands in for nats-py's: it scans a whole chunk and calls plain functions.

Messages of our own subscriptions never become tasks, queues or parsed headers; every other
unit of the protocol goes on to nats-py's parser, one complete unit at a time, so that parser
never holds a partial one. An exception of a callback is logged and ends nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from nats.aio.client import Client
from nats.errors import Error, ProtocolError
from nats.protocol.parser import Parser

# subject, reply, raw header block (b"" if there is none), payload
OnMessage = Callable[[str, str, bytes, bytes], None]

CONTROL_LINE_MAX_BYTES = 65_536  # an INFO line lists a cluster's servers; nothing is longer

_CRLF = b"\r\n"
_MSG = ord("M")
_HMSG = ord("H")
_PERMISSIONS = b"permissions violation"

_log = logging.getLogger("headway.agents.parser")


class ChunkParser(Parser):
    """Parses chunks for `nc`; `routes` maps a subscription id, as on the wire, to its callback."""

    def __init__(self, nc: Client, routes: Mapping[bytes, OnMessage]) -> None:
        self._client = nc
        self._routes = routes
        self._generation = 0  # counts resets, to notice one that happened during an await
        super().__init__(nc)

    def reset(self) -> None:
        """Forget a partial unit: the connection it came from is gone."""
        super().reset()
        self._generation += 1
        self._held: list[bytes] = []
        self._missing = 0  # bytes still wanted before the first held unit can be complete

    async def parse(self, data: bytes = b"") -> None:
        """Dispatch every complete unit of what is held and `data`; hold what is left."""
        if self._held:
            self._held.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return
            data = b"".join(self._held)
            self._held = []
        generation = self._generation
        position = 0
        while position < len(data):
            position, end = self._dispatch(data, position)
            if end == position:
                break
            await self._pass_on(data[position:end])
            if generation != self._generation:
                return
            position = end
        if position < len(data):
            self._held = [data[position:]]

    def _dispatch(self, data: bytes, position: int) -> tuple[int, int]:
        """Deliver our messages from `position` on, up to a unit that is not ours.

        Returns where that unit begins and ends; both are equal if there is no complete one.
        """
        size = len(data)
        while position < size:
            line_end = data.find(_CRLF, position)
            if line_end < 0:
                return self._incomplete(size - position, position)
            kind = data[position]
            if kind not in (_MSG, _HMSG):
                return position, line_end + 2
            try:  # MSG subject sid [reply] size, or HMSG subject sid [reply] header-size size
                words = data[position:line_end].split()
                body = line_end + 2
                end = body + int(words[-1])
                start = body if kind == _MSG else body + int(words[-2])
                on_message = self._routes.get(words[2])
            except (ValueError, IndexError) as error:
                raise ProtocolError("nats: malformed MSG") from error
            if end + 2 > size:
                self._missing = end + 2 - size
                return position, position
            if on_message is None:
                return position, end + 2
            has_reply = len(words) == (5 if kind == _MSG else 6)
            reply = words[3].decode(errors="replace") if has_reply else ""
            subject = words[1].decode(errors="replace")  # any bytes: whoever gets it refuses it
            try:
                on_message(subject, reply, data[body:start], data[start:end])
            except Exception:
                _log.exception("a message's callback failed; the message is dropped")
            position = end + 2
        return position, position

    def _incomplete(self, held: int, position: int) -> tuple[int, int]:
        if held > CONTROL_LINE_MAX_BYTES:
            raise ProtocolError("nats: a control line does not end")
        self._missing = 1
        return position, position

    async def _pass_on(self, unit: bytes) -> None:
        if not unit.startswith(b"-ERR"):
            await super().parse(unit)
        elif _PERMISSIONS in unit.lower():
            await self._complain(unit)
        else:  # nats-py would close for good; a fresh connection mends what can be mended
            await self._complain(unit)
            client: Any = self._client
            await client._process_op_err(ProtocolError(f"nats: {unit.decode().strip()}"))

    async def _complain(self, unit: bytes) -> None:
        client: Any = self._client
        await client._error_cb(Error(f"nats: {unit[4:].decode(errors='replace').strip()}"))
