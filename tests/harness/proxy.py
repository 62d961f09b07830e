"""A TCP proxy in front of one server on loopback, that misbehaves when it is told to.

Always holds: what is passed on is unchanged and in order. A connection may lose its end, never
something from its middle: TCP would not let it.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from typing import Literal
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 65_536
SLICES_PER_S = 20  # in which a throttled connection passes on what it may
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close sends a reset

Direction = Literal["up", "down"]  # from the client to the server, and back


class Proxy:
    """Passes on until told otherwise; `heal` ends whatever was asked for before.

    Attributes:
        delay_s: seconds that each piece waits, give or take half of that.
        bytes_per_s: how fast each direction of each connection is; 0 is without limit.
        refusing: whether new connections are closed as soon as they are there.
    """

    def __init__(self, server_port: int, rng: random.Random) -> None:
        self.delay_s = 0.0
        self.bytes_per_s = 0
        self.refusing = False
        self._server_port = server_port
        self._rng = rng
        self._passing = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._connections: dict[_Connection, asyncio.Task[None] | None] = {}
        self._listener: asyncio.Server | None = None
        self._resume()

    @property
    def port(self) -> int:
        assert self._listener is not None, "the proxy was not started"
        return int(self._listener.sockets[0].getsockname()[1])

    def url(self, url: str) -> str:
        """`url` of the server, by way of this proxy."""
        parts = urlsplit(url)
        before = parts.netloc.rpartition(":")[0]
        return parts._replace(netloc=f"{before}:{self.port}").geturl()

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, LOOPBACK, 0)

    async def stop(self) -> None:
        assert self._listener is not None, "the proxy was not started"
        self._listener.close()
        self.refusing = True  # whoever waits to be let through, too
        self._resume()
        self.cut()
        await asyncio.gather(*filter(None, self._connections.values()), return_exceptions=True)

    def cut(self) -> None:
        """Reset every connection."""
        for connection in list(self._connections):
            connection.reset()

    def half_close(self, direction: Direction) -> None:
        """End one direction of every connection; the other one stays open."""
        for connection in list(self._connections):
            connection.end(direction)

    def hold(self, *directions: Direction) -> None:
        """Pass nothing on in these directions; it is kept until `heal`, as TCP would."""
        for direction in directions:
            self._passing[direction].clear()

    def heal(self) -> None:
        self.delay_s = 0.0
        self.bytes_per_s = 0
        self.refusing = False
        self._resume()

    async def _open(self) -> None:
        """Wait until something is passed on both ways: no connection comes about before."""
        for passing in self._passing.values():
            await passing.wait()

    async def passage(self, direction: Direction, size: int) -> None:
        """Wait until `size` bytes may be passed on."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s * self._rng.uniform(0.5, 1.5))
        if self.bytes_per_s:
            await asyncio.sleep(size / self.bytes_per_s)
        await self._passing[direction].wait()

    def slice_bytes(self) -> int:
        """How much is passed on at once."""
        if not self.bytes_per_s:
            return CHUNK_BYTES
        return max(1, self.bytes_per_s // SLICES_PER_S)

    def _resume(self) -> None:
        for passing in self._passing.values():
            passing.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open()
        if self.refusing or reader.at_eof():
            _reset(writer)
            return
        try:
            server = await asyncio.open_connection(LOOPBACK, self._server_port)
        except OSError:
            _reset(writer)
            return
        connection = _Connection(self, (reader, writer), server)
        self._connections[connection] = asyncio.current_task()
        try:
            await connection.run()
        finally:
            del self._connections[connection]


class _Connection:
    """One client's connection and ours to the server."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._ways = {"up": (client[0], server[1]), "down": (server[0], client[1])}
        self._ended: set[Direction] = set()
        self._pumps: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Pass on both ways until both have ended, or one is broken."""
        self._pumps = [
            asyncio.create_task(self._pump("up")),
            asyncio.create_task(self._pump("down")),
        ]
        try:
            done, _ = await asyncio.wait(self._pumps, return_when=asyncio.FIRST_EXCEPTION)
            if len(done) < 2 or any(pump.cancelled() or pump.exception() for pump in done):
                self.reset()
        finally:
            for pump in self._pumps:
                pump.cancel()
            await asyncio.gather(*self._pumps, return_exceptions=True)
            for _, writer in self._ways.values():
                writer.close()

    def reset(self) -> None:
        for _, writer in self._ways.values():
            _reset(writer)
        for pump in self._pumps:
            pump.cancel()

    def end(self, direction: Direction) -> None:
        self._ended.add(direction)
        writer = self._ways[direction][1]
        if not writer.is_closing():
            writer.write_eof()

    async def _pump(self, direction: Direction) -> None:
        reader, writer = self._ways[direction]
        while data := await reader.read(CHUNK_BYTES):
            size = self._proxy.slice_bytes()
            for start in range(0, len(data), size):
                piece = data[start : start + size]
                await self._proxy.passage(direction, len(piece))
                if direction not in self._ended:
                    writer.write(piece)
                    await writer.drain()
        if direction not in self._ended:
            self.end(direction)


def _reset(writer: asyncio.StreamWriter) -> None:
    connected = writer.get_extra_info("socket")
    if connected is not None and connected.fileno() >= 0:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
