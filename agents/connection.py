"""Connecting to NATS: endless reconnects, credentials from the URL, narration without payloads."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import ParseResult, SplitResult, unquote, urlsplit

import nats.errors
from headway.agents.credentials import Credentials
from headway.agents.errors import InvalidInput, NotLetIn, Unavailable
from headway.agents.nkeys import UserKey
from headway.agents.transport import Tls, tls_of
from headway.agents.wire import Wire
from nats.aio.client import Client, Server, Srv

CONNECT_TIMEOUT_S = 5.0  # for the first connect, unless told to wait
RECONNECT_WAIT_S = 0.1
SCOUT_TIMEOUT_S = 1.0
MOVE_INTERVAL_S = 3.0
PING_INTERVAL_S = 10
PINGS_OUTSTANDING_MAX = 2
PENDING_MAX_BYTES = 32 * 1024 * 1024  # kept for the server while it is away
COMPLAINT_INTERVAL_S = 5.0
COMPLAINTS_KEPT = 100
REFUSALS = ("authorization violation", "user authentication")  # in what a server says
WRONG_URL = "is the user and password, or the token, in the NATS URL right? agents: --creds"

_ENDLESS: dict[str, Any] = {  # nats-py's options: a connection heals itself until it is closed
    "max_reconnect_attempts": -1,
    "reconnect_time_wait": RECONNECT_WAIT_S,
    "ping_interval": PING_INTERVAL_S,
    "max_outstanding_pings": PINGS_OUTSTANDING_MAX,
    "pending_size": PENDING_MAX_BYTES,
}

_log = logging.getLogger("headway.agents.connection")


class Course:
    """Which server to connect to next: the wanted one; else one that failed least often."""

    def __init__(self) -> None:
        self.wanted = ""  # host:port
        self.left = ""

    def choose(self, servers: list[Server], _info: object) -> tuple[Server, float]:
        """For nats-py: the server, and seconds to wait before connecting to it."""
        wanted, self.wanted = self.wanted, ""
        left, self.left = self.left, ""
        for server in servers:
            if _place(server.uri) == wanted:
                return server, 0.0
        others = [server for server in servers if _place(server.uri) != left]
        chosen = min(others or servers, key=lambda server: server.reconnects)
        return chosen, RECONNECT_WAIT_S if chosen.reconnects else 0.0


class Connection:
    """A connection that heals itself until it is closed. `nc` is nats-py's, `wire` our layer."""

    def __init__(
        self,
        nc: Client,
        wire: Wire,
        course: Course | None = None,
        beside: Callable[[str], Awaitable[Connection]] | None = None,
    ) -> None:
        self.nc = nc
        self.wire = wire
        self._course = course or Course()
        self._beside = beside
        self._moved_at = time.monotonic()

    @property
    def server(self) -> str:
        """The name that the server gives itself."""
        return str(self.nc._server_info.get("server_name", ""))

    @property
    def place(self) -> str:
        """host:port of the server."""
        url = self.nc.connected_url
        return "" if url is None else _place(url)

    @property
    def others(self) -> list[str]:
        """host:port of each server that we know and are not connected to."""
        return [place for place in map(_place, self.nc.servers) if place != self.place]

    async def beside(self, server: str) -> Connection:
        """A second connection, as ours but to one of `others`; Unavailable if it does not answer
        soon."""
        if self._beside is None:
            raise Unavailable(f"{server} is not known")
        return await self._beside(server)

    async def move(self, to: str = "") -> None:
        """Leave this server for another one that is known: for `to`, or for any; at most once in
        MOVE_INTERVAL_S."""
        now = time.monotonic()
        if not self.others or now - self._moved_at < MOVE_INTERVAL_S:
            return
        self._moved_at = now
        self._course.wanted, self._course.left = to, self.place
        _log.info("leaving the NATS server %s", self.place)
        await self.nc.force_reconnect()

    async def close(self) -> None:
        """Send what was published, then disconnect; unconfirmed stores settle as such."""
        self.wire.hand_over()
        if not self.nc.is_connected:
            self.wire.discard()
        try:
            await self.nc.close()
        except OSError as error:
            _log.debug("the server went away during the close: %s", error)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            _log.debug("a reconnect was given up, and with it the wait for its socket")
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
    credentials: Credentials | None = None,
    wait: bool = False,
    refused_s: float = math.inf,
    timeout: float = CONNECT_TIMEOUT_S,
) -> Connection:
    """Connect to the first server of `url` that answers (several: separated by commas).

    `user:password@` or `token@` of the first server that has it holds for all, unless there are
    `credentials`. TLS is as `transport` says. With `wait` the first connect keeps trying for ever;
    otherwise it raises Unavailable after `timeout` seconds. NotLetIn: then a server was there, and
    refused us; so it is, too, when one still does `refused_s` seconds after the first did. Later
    refusals are logged, and tried again. InvalidInput: not such a URL.
    """
    servers = [_split(part) for part in url.split(",") if part.strip()]
    if not servers:
        raise InvalidInput("the NATS URL is empty")
    tls = tls_of(servers[0])
    nc = _Client(tls, None if credentials is None else credentials.key)
    if credentials is not None:
        inbox_prefix = credentials.inbox_prefix
    wire = Wire(nc)
    course = Course()
    complaints = _Complaints(_remedy(credentials), refused_s)
    connecting = nc.connect(
        servers=[_without_credentials(server) for server in servers],
        name=name,
        inbox_prefix=inbox_prefix,
        error_cb=complaints.complain,
        disconnected_cb=wire.disconnected,
        reconnected_cb=partial(_reconnected, wire, complaints),
        reconnect_to_server_handler=course.choose,
        **_ENDLESS,
        **nc.protection,
        **(_credentials(servers) if credentials is None else {}),
    )
    await _until_in(nc, connecting, None if wait else timeout, complaints, servers)
    complaints.end()
    await wire.start()
    beside = _beside(servers, name, inbox_prefix, credentials)
    return Connection(nc, wire, course, beside)


async def _reconnected(wire: Wire, complaints: _Complaints) -> None:
    complaints.end()
    await wire.reconnected()


async def _until_in(
    nc: Client,
    connecting: Awaitable[None],
    timeout: float | None,
    complaints: _Complaints,
    servers: list[SplitResult],
) -> None:
    """Wait for the first connect; if it fails, nothing is left of it."""
    try:
        await asyncio.wait_for(connecting, timeout)
    except NotLetIn:
        await nc.close()
        raise
    except TimeoutError:
        await nc.close()
        if complaints.refused_at is not None:
            raise NotLetIn(complaints.reason) from None
        places = ", ".join(_without_credentials(server) for server in servers)
        raise Unavailable(
            f"no NATS server at {places} let us in within {timeout:g} s "
            f"({complaints.reason or 'no answer'}); is it running, and is the URL right?"
        ) from None


def _beside(
    servers: list[SplitResult], name: str, inbox_prefix: str, credentials: Credentials | None
) -> Callable[[str], Awaitable[Connection]]:
    async def beside(place: str) -> Connection:
        [server] = [each for each in servers if _place(each) == place] or [servers[0]]
        there = server._replace(netloc=f"{_userinfo(servers)}{place}").geturl()
        return await connect(
            there,
            name=f"{name}-scout",
            inbox_prefix=inbox_prefix,
            credentials=credentials,
            timeout=SCOUT_TIMEOUT_S,
        )

    return beside


class _Client(Client):
    """nats-py's client, which insists on TLS where it is wanted, and proves that we have a key."""

    def __init__(self, tls: Tls, key: UserKey | None) -> None:
        super().__init__()
        self._wants_tls = tls.context is not None and not tls.handshake_first
        self._public_nkey = None if key is None else key.public
        self.protection: dict[str, Any] = {  # for `connect`
            "tls": tls.context,
            "tls_handshake_first": tls.handshake_first,
            "signature_cb": None if key is None else key.sign,
        }

    async def _connect_to_server(self, s: Srv) -> None:
        """Nothing is left open of a try that the server refused."""
        if self._transport:
            self._transport.close()  # type: ignore[no-untyped-call]
        await super()._connect_to_server(s)

    def _connect_command(self) -> bytes:
        """What is said first, and the first that is secret."""
        if self._wants_tls and not self._server_info.get("tls_required"):
            raise nats.errors.Error("the server offers no TLS, and the URL wants it (tls://)")
        return super()._connect_command()


class _Complaints:
    """nats-py's errors in the log: each text at most once in a while.

    `remedy` for whom a server refuses. Until `is_in`, NotLetIn comes out of the first connect when
    a server still refuses us `refused_s` seconds after the first refusal.
    """

    def __init__(self, remedy: str, refused_s: float) -> None:
        self.reason = ""  # the latest, but rather a server's words than a socket's
        self.refused_at: float | None = None
        self.is_in = False
        self._remedy = remedy
        self._refused_s = refused_s
        self._said_at: dict[str, float] = {}
        self._is_open = False  # something was said since we were connected last

    async def complain(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        refused = any(words in text.lower() for words in REFUSALS)
        if refused:
            text = f"{text}: {self._remedy}"
        now = time.monotonic()
        if not (self.reason and isinstance(error, OSError)):
            self.reason = text
        if refused and not self.is_in:
            self._note_refusal(now)
        if now - self._said_at.get(text, -COMPLAINT_INTERVAL_S) < COMPLAINT_INTERVAL_S:
            return
        if len(self._said_at) >= COMPLAINTS_KEPT:
            self._said_at.clear()
        self._said_at[text] = now
        self._is_open = True
        _log.warning("NATS: %s", text)

    def end(self) -> None:
        """Connected: what was complained of is over and, unless it is the first time, the log says
        so."""
        if self.is_in and self._is_open:
            _log.warning("NATS: connected again")
        self.is_in = True
        self._is_open = False

    def _note_refusal(self, now: float) -> None:
        if self.refused_at is None:
            self.refused_at = now
        if now - self.refused_at >= self._refused_s:
            raise NotLetIn(self.reason)


def _remedy(credentials: Credentials | None) -> str:
    """What to do when a server does not let us in."""
    if credentials is None:
        return WRONG_URL
    return (
        f"this key of agent {credentials.agent!r} is not let in: was it revoked? See `headway "
        f"agents keys`, and `headway agents grant {credentials.agent}`, on a machine with the "
        "database"
    )


def _split(part: str) -> SplitResult:
    part = part.strip()
    return urlsplit(part if "://" in part else f"nats://{part}")


def _place(server: SplitResult | ParseResult) -> str:
    """host:port."""
    return server.netloc.rpartition("@")[2]


def _userinfo(servers: list[SplitResult]) -> str:
    """`user:password@` of the first server that has it."""
    return next((f"{s.netloc.rpartition('@')[0]}@" for s in servers if s.username), "")


def _without_credentials(server: SplitResult) -> str:
    return server._replace(netloc=server.netloc.rpartition("@")[2], query="").geturl()


def _credentials(servers: list[SplitResult]) -> dict[str, Any]:
    for server in servers:
        if server.username and server.password:
            return {"user": unquote(server.username), "password": unquote(server.password)}
        if server.username:
            return {"token": unquote(server.username)}
    return {}
