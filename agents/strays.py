"""What nats-server sent where nobody asked for it.

A server does not check the subject that an answer is wanted on. So whoever may read a message that
he wrote himself can have the server send it, just as it is, to a subject where he may not publish.
"""

from __future__ import annotations


def is_stray(headers: bytes) -> bool:
    """Whether these are the raw headers of an answer to a direct get, rather than of a message."""
    return bool(headers) and b"\nnats-stream:" in headers.lower()


def is_signal(headers: bytes, body: bytes) -> bool:
    """Whether this says something by its subject alone. What is sent astray never does: it has
    a status or a body."""
    return not headers and not body
