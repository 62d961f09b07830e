"""How a connection to NATS is protected: TLS, as the URL says.

    tls://nats.example:4222?ca=/etc/headway/ca.pem&cert=/etc/headway/me.pem&key=/etc/headway/me.key

`tls://` insists on TLS; `ca` is what must have signed the server's certificate (else the system's),
`cert` and `key` are ours, for a server that wants one; with `handshake_first=1` nothing at all is
said in the clear. Of several URLs the first one's options hold for all.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl

from headway.agents.errors import InvalidInput

_OPTIONS = ("ca", "cert", "key", "handshake_first")


@dataclass(frozen=True, slots=True)
class Tls:
    """`context` is None without TLS."""

    context: ssl.SSLContext | None = None
    handshake_first: bool = False


PLAIN = Tls()


def tls_of(server: SplitResult) -> Tls:
    """What a URL wants; InvalidInput names the option that cannot be."""
    options = dict(parse_qsl(server.query, keep_blank_values=True))
    unknown = sorted(options.keys() - set(_OPTIONS))
    if unknown:
        raise InvalidInput(
            f"the NATS URL has an unknown option {unknown[0]!r}; there are {', '.join(_OPTIONS)}"
        )
    if server.scheme != "tls":
        if options:
            raise InvalidInput(f"{next(iter(options))!r} is an option of tls://, not of nats://")
        return PLAIN
    if ("key" in options) != ("cert" in options):
        raise InvalidInput("the NATS URL must have both cert and key, or neither")
    return Tls(_context(options), options.get("handshake_first") in ("1", "true"))


def _context(options: dict[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=options.get("ca"))
        if "cert" in options:
            context.load_cert_chain(options["cert"], options["key"])
    except OSError as error:
        files = ", ".join(options[name] for name in ("ca", "cert", "key") if name in options)
        raise InvalidInput(
            f"the NATS URL's {files} cannot be used: {error.strerror or error}"
        ) from None
    return context
