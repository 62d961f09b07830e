"""Connecting to NATS: endless reconnects, credentials from the URL, narration without payloads."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from headway.agents.errors import Unavailable
from headway.agents.wire import Wire
from nats.aio.client import Client

CONNECT_TIMEOUT_S = 5.0  # for the first connect, unless told to wait
RECONNECT_WAIT_S = 0.1
PING_INTERVAL_S = 10
PINGS_OUTSTANDING_MAX = 2
PENDING_MAX_BYTES = 32 * 1024 * 1024  # kept for the server while it is away
COMPLAINT_INTERVAL_S = 5.0
COMPLAINTS_KEPT = 100

_log = logging.getLogger("headway.agents.connection")


class Connection:
    """A connection that heals itself until it is closed. `nc` is nats-py's, `wire` our layer."""

    def __init__(self, nc: Client, wire: Wire) -> None:
        self.nc = nc
        self.wire = wire

    async def close(self) -> None:
        """Send what was published, then disconnect; unconfirmed stores settle as such."""
        self.wire.hand_over()
        if not self.nc.is_connected:
            self.wire.discard()
        try:
            await self.nc.close()
        except OSError as error:
            _log.debug("the server went away during the close: %s", error)
        finally:
            self.wire.give_up_stores("closed")

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()


async def connect(
    url: str,
    *,
    name: str,
    inbox_prefix: str = "_INBOX",
    wait: bool = False,
    timeout: float = CONNECT_TIMEOUT_S,
) -> Connection:
    """Connect to the first server of `url` that answers (several: separated by commas).

    `user:password@` or `token@` of the first server that has it holds for all. With `wait` the
    first connect keeps trying for ever; otherwise it raises Unavailable after `timeout` seconds.
    """
    servers = [_split(part) for part in url.split(",") if part.strip()]
    nc = Client()
    wire = Wire(nc)
    complaints = _Complaints()
    connecting = nc.connect(
        servers=[_without_credentials(server) for server in servers],
        name=name,
        inbox_prefix=inbox_prefix,
        max_reconnect_attempts=-1,
        reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # seconds, any number
        ping_interval=PING_INTERVAL_S,
        max_outstanding_pings=PINGS_OUTSTANDING_MAX,
        pending_size=PENDING_MAX_BYTES,
        error_cb=complaints.complain,
        disconnected_cb=wire.disconnected,
        reconnected_cb=wire.reconnected,
        **_credentials(servers),
    )
    try:
        await asyncio.wait_for(connecting, None if wait else timeout)
    except TimeoutError:
        await nc.close()
        places = ", ".join(_without_credentials(server) for server in servers)
        raise Unavailable(
            f"no NATS server at {places} let us in within {timeout:g} s "
            f"({complaints.reason or 'no answer'}); is it running, and is the URL right?"
        ) from None
    await wire.start()
    return Connection(nc, wire)


class _Complaints:
    """nats-py's errors in the log: each text at most once in a while."""

    def __init__(self) -> None:
        self.reason = ""  # the latest, but rather a server's words than a socket's
        self._said_at: dict[str, float] = {}

    async def complain(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        now = time.monotonic()
        if not (self.reason and isinstance(error, OSError)):
            self.reason = text
        if now - self._said_at.get(text, -COMPLAINT_INTERVAL_S) < COMPLAINT_INTERVAL_S:
            return
        if len(self._said_at) >= COMPLAINTS_KEPT:
            self._said_at.clear()
        self._said_at[text] = now
        _log.warning("NATS: %s", text)


def _split(part: str) -> SplitResult:
    part = part.strip()
    return urlsplit(part if "://" in part else f"nats://{part}")


def _without_credentials(server: SplitResult) -> str:
    return server._replace(netloc=server.netloc.rpartition("@")[2]).geturl()


def _credentials(servers: list[SplitResult]) -> dict[str, Any]:
    for server in servers:
        if server.username and server.password:
            return {"user": unquote(server.username), "password": unquote(server.password)}
        if server.username:
            return {"token": unquote(server.username)}
    return {}
