"""The socket that the HTTP face listens on: made by a coordinator, or for all of `headway up`'s."""

from __future__ import annotations

import errno
import os
import socket

from headway.agents.errors import HeadwayError

BACKLOG = 1_024
PORTS_TRIED = 100
PORT_MAX = 65_535


class CannotListen(HeadwayError):
    """HTTP cannot be served as it was asked for; the text says why."""

    @property
    def is_taken(self) -> bool:
        """Something else listens there."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno == errno.EADDRINUSE


def listen(address: str) -> socket.socket:
    """A socket that listens at `host:port`; port 0 is any that is free. CannotListen says why not.

    Name resolution of `host` may take a while: give an address, or do this before the loop runs.
    """
    host, colon, port = address.rpartition(":")
    try:
        if not colon or not port.isascii() or not port.isdigit():
            raise ValueError("give HOST:PORT")
        if int(port) > PORT_MAX:
            raise ValueError(f"a port is at most {PORT_MAX}")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        place = (host.strip("[]"), int(port))
        return socket.create_server(place, family=family, backlog=BACKLOG)
    except OSError as error:
        raise CannotListen(f"cannot serve HTTP at {address!r}: {_reason(error)}") from error
    except ValueError as error:
        raise CannotListen(f"cannot serve HTTP at {address!r}: {error}") from error


def _reason(error: OSError) -> str:
    """Why not, without the address again; of a port that is taken, what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"{os.strerror(error.errno)}; choose another"
    return (error.strerror or str(error)).partition(" (while attempting")[0]


def listen_near(host: str, port: int) -> socket.socket:
    """As `listen`, at the first free port from `port` on."""
    for each in range(port, port + PORTS_TRIED):
        try:
            return listen(f"{host}:{each}")
        except CannotListen as error:
            if not isinstance(error.__cause__, OSError) or each == port + PORTS_TRIED - 1:
                raise
    raise AssertionError("ports are tried")


def url_of(listening: socket.socket, *, tls: bool = False) -> str:
    """Where it listens."""
    host, port = listening.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
