"""Who asks on HTTP: whoever presents a token, and nobody without one.

Always holds: a request without a good token is answered 401 before its body is read, also while no
token was ever made. The console's own token of `headway up` is good here only, and needs no
database.
"""

from __future__ import annotations

import hmac

from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal
from headway.coordinator.roles import OPERATE
from headway.coordinator.tokens import Tokens
from starlette.datastructures import Headers

CONSOLE = "console"  # who asks with the console's own token
SCHEME = "bearer"

NEEDED = (
    "a token is needed: send it as `Authorization: Bearer hw_…`; `headway tokens create NAME "
    "--role ROLE` makes one, and `headway console` opens the console with one"
)


class HttpAccess:
    """`console_token` is "" where there is none."""

    def __init__(self, tokens: Tokens, console_token: str) -> None:
        self._tokens = tokens
        self._console_token = console_token.encode()

    async def caller(self, headers: Headers) -> Caller:
        """Who presents the token; Refusal (401) if there is none, or none that is good.

        StoreUnavailable if it must be looked up and PostgreSQL is away.
        """
        token = _bearer(headers)
        if not token:
            raise Refusal(NEEDED, 401)
        if self._is_console(token):
            return Caller(name=CONSOLE, role=OPERATE)
        if not self._tokens.can_tell(token):
            await self._tokens.learn(token)
        return self._tokens.caller(token)

    def _is_console(self, token: str) -> bool:
        return bool(self._console_token) and hmac.compare_digest(
            self._console_token, token.encode()
        )


def _bearer(headers: Headers) -> str:
    """The token; "" without one, or if there are several."""
    given = headers.getlist("authorization")
    if len(given) != 1:
        return ""
    scheme, _, token = given[0].partition(" ")
    return token.strip() if scheme.lower() == SCHEME else ""
