"""TLS in front of a PostgreSQL that was built without it: speaks the start of its protocol."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

SSL_REQUEST = struct.pack("!II", 8, 80877103)


@asynccontextmanager
async def tls_front(
    postgres_url: str, context: ssl.SSLContext
) -> AsyncIterator[tuple[str, list[bool]]]:
    """The URL at which it listens, without options; and for each connection whether it was asked
    for TLS."""
    behind = urlsplit(postgres_url)
    asked: list[bool] = []
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.readexactly(len(SSL_REQUEST))
        asked.append(first == SSL_REQUEST)
        if not asked[-1]:
            writer.close()
            return
        writer.write(b"S")
        await writer.drain()
        with suppress(OSError):
            await writer.start_tls(context)
            there_reader, there_writer = await asyncio.open_connection(behind.hostname, behind.port)
            await asyncio.gather(_copy(reader, there_writer), _copy(there_reader, writer))

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        serving.add(task)

    server = await asyncio.start_server(begin, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    where = f"{behind.username}:{behind.password}@127.0.0.1:{port}"
    try:
        yield behind._replace(netloc=where).geturl(), asked
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
