"""Users with no more rights than they need, for whoever is under test; did that suffice?"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from headway.agents.credentials import Credentials
from headway.agents.nkeys import UserKey, new_seed
from headway.coordinator.permissions import ANY_AGENT, User, of_agent, of_people

OWNER = User("headway", "only-for-tests")
PEOPLE = User("people", "only-for-people", permissions=of_people())
AGENTS = User("agents", "only-for-agents", permissions=of_agent(ANY_AGENT))


def granted(agent: str) -> tuple[Credentials, User]:
    """A fresh key for an agent, and the user that a server is to know."""
    key = UserKey.of(new_seed())
    return Credentials(agent, key), User(public_key=key.public, permissions=of_agent(agent))


def as_user(url: str, user: User) -> str:
    """The URL of one of our own servers, for another user than its owner."""
    owner = f"{OWNER.name}:{OWNER.password}@"
    return url.replace(owner, f"{user.name}:{user.password}@")


@contextmanager
def no_violations() -> Iterator[None]:
    """Fails if a server refused somebody a subject meanwhile."""
    refused: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: refused.append(record.getMessage())  # type: ignore[method-assign]
    handler.addFilter(lambda record: "permissions violation" in record.getMessage().lower())
    logger = logging.getLogger("headway.agents.connection")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
    assert refused == []
