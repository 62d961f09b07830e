"""Ports on loopback for servers that keep theirs for life.

They are taken from below the range from which systems give ports to outgoing connections.
Otherwise a client that reconnects to a stopped server's port may be given that very port as its
own, connect to itself, and keep the server from ever coming back.
"""

from __future__ import annotations

import secrets
import socket

from headway.coordinator.process import ServerError

LOWEST, HIGHEST = 17_000, 29_999
ATTEMPTS_MAX = 1_000


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port(taken: frozenset[int] = frozenset()) -> int:
    """A free port that is not in `taken`."""
    for _ in range(ATTEMPTS_MAX):
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 1)
        if port not in taken and is_free(port):
            return port
    raise ServerError(f"found no free port on 127.0.0.1 between {LOWEST} and {HIGHEST}")
