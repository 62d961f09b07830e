"""The agent SDK: declare agents, run them, and talk to coordinators."""

from headway.agents.agent import Agent
from headway.agents.binding import EMPTY
from headway.agents.client import Client
from headway.agents.codec import Keyring
from headway.agents.connection import Connection, connect
from headway.agents.context import Context
from headway.agents.errors import (
    Conflict,
    DeclarationError,
    Halted,
    HeadwayError,
    InvalidInput,
    JournalMismatch,
    NotFound,
    Refused,
    Reject,
    Retry,
    Superseded,
    ToolError,
    ToolFailed,
    Unavailable,
)
from headway.agents.handoff import HandOff, Next
from headway.agents.runner import serve
from headway.agents.tools import (
    CANNOT_TELL,
    DID_NOT_HAPPEN,
    Attempts,
    Call,
    Happened,
    Metered,
    tool,
)
from headway.agents.worker import Worker

__all__ = [
    "CANNOT_TELL",
    "DID_NOT_HAPPEN",
    "EMPTY",
    "Agent",
    "Attempts",
    "Call",
    "Client",
    "Conflict",
    "Connection",
    "Context",
    "DeclarationError",
    "Halted",
    "HandOff",
    "Happened",
    "HeadwayError",
    "InvalidInput",
    "JournalMismatch",
    "Keyring",
    "Metered",
    "Next",
    "NotFound",
    "Refused",
    "Reject",
    "Retry",
    "Superseded",
    "ToolError",
    "ToolFailed",
    "Unavailable",
    "Worker",
    "connect",
    "serve",
    "tool",
]
