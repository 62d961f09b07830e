"""The agent SDK: declare agents, run them, and talk to coordinators."""

from headway.agents.agent import Agent
from headway.agents.binding import EMPTY
from headway.agents.client import Client
from headway.agents.connection import Connection, connect
from headway.agents.context import Context
from headway.agents.errors import (
    Conflict,
    DeclarationError,
    HeadwayError,
    InvalidInput,
    NotFound,
    Refused,
    Reject,
    Retry,
    Unavailable,
)
from headway.agents.runner import serve
from headway.agents.worker import Worker

__all__ = [
    "EMPTY",
    "Agent",
    "Client",
    "Conflict",
    "Connection",
    "Context",
    "DeclarationError",
    "HeadwayError",
    "InvalidInput",
    "NotFound",
    "Refused",
    "Reject",
    "Retry",
    "Unavailable",
    "Worker",
    "connect",
    "serve",
]
