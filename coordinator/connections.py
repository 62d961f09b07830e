"""How to reach what a running `headway up` serves: a file in its data directory.

The file is written when everything is ready and removed when it stops. It holds passwords, so
only its owner may read it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

FILE_NAME = "connections.json"


@dataclass(frozen=True, slots=True)
class Connections:
    """URLs with user and password, and the process that keeps the servers running.

    NATS has one for people and programs, one for agents without credentials of their own, and one
    for coordinators: each may do what is said in `permissions`. `http_url` is the HTTP face's, and
    `console_token` lets its console in.
    """

    nats_url: str
    postgres_url: str
    pid: int
    agents_nats_url: str
    coordinators_nats_url: str
    http_url: str
    console_token: str


def running_connections(data: Path) -> Connections | None:
    """The connections of the `headway up` that runs on `data`; None when none does.

    Raises PermissionError when it belongs to another user.
    """
    try:
        connections = Connections(**json.loads((data / FILE_NAME).read_text()))
    except FileNotFoundError:
        return None
    return connections if _is_alive(connections.pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
