"""Who asks: known from what the server or a token vouches for, never from a request's body."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Caller:
    """`agent`: whose workers ask, by the subject that only they may use; "" for people.

    `name` and `role`: a person's, if a token tells them.
    """

    agent: str = ""
    name: str = ""
    role: str = ""
