"""Errors of the coordinator.

CoordinatorError
├── StoreUnavailable    PostgreSQL does not answer; try again, nothing is lost
├── StoreRefused        PostgreSQL refuses these very rows; trying again will not help
├── SchemaMismatch      the database is newer or was edited; the text says what to do
├── BusUnavailable      NATS does not answer; try again
└── Refusal             a request or message that is refused, with an HTTP-like code
"""

from __future__ import annotations

from headway.agents.views import UNTYPED


class CoordinatorError(Exception):
    """Root of the coordinator's errors."""


class StoreUnavailable(CoordinatorError):
    """PostgreSQL does not answer. Nothing was lost; the same work is tried again."""


class StoreRefused(CoordinatorError):
    """PostgreSQL refuses these rows as they are; the same rows would be refused again."""


class SchemaMismatch(CoordinatorError):
    """The database's schema is not one that this version can use."""


class BusUnavailable(CoordinatorError):
    """NATS or JetStream does not answer; the same work is tried again."""


class Refusal(CoordinatorError):
    """A request or a message is refused: `code` is an HTTP-like status, the text the reason,
    `kind` the problem's type where programs tell refusals of one code apart."""

    def __init__(self, reason: str, code: int = 400, kind: str = UNTYPED) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.kind = kind
