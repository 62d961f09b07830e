"""An agent's credentials: a file that says which agent it is for, and has its key.

It is what NATS's own tools take as an nkey file, with one more line. Whoever has it is that agent.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from headway.agents.errors import InvalidInput
from headway.agents.nkeys import UserKey
from headway.agents.subjects import TOKEN, inbox_of_agent

_FILE = """\
# Credentials of an agent of Headway. Whoever has this file is that agent: keep it secret.
# agent: {agent}
-----BEGIN USER NKEY SEED-----
{seed}
------END USER NKEY SEED------
"""
_AGENT = re.compile(r"^# agent: (\S+)$", re.MULTILINE)
_SEED = re.compile(r"^SU[A-Z2-7]+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The key of one agent."""

    agent: str
    key: UserKey

    @property
    def inbox_prefix(self) -> str:
        """What the inboxes must begin with that this agent may listen on."""
        return inbox_of_agent(self.agent)


def text_of(agent: str, seed: str) -> str:
    """The content of the file."""
    return _FILE.format(agent=agent, seed=seed)


def write(path: Path, agent: str, seed: str) -> None:
    """Make the file, for its owner only; FileExistsError if there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text_of(agent, seed))


def read(path: Path) -> Credentials:
    """What is in the file; InvalidInput says what is wrong with it, and nothing of its content."""
    try:
        mode, text = path.stat().st_mode, path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"the credentials {path} cannot be read: {reason}") from None
    if mode & 0o077:
        raise InvalidInput(
            f"the credentials {path} may be read by others: chmod 600 it, and grant a new key if "
            "somebody has"
        )
    agent, seed = _AGENT.search(text), _SEED.search(text)
    if agent is None or seed is None or TOKEN.fullmatch(agent[1]) is None:
        raise InvalidInput(
            f"{path} has no credentials of an agent: `headway agents grant NAME` makes them"
        )
    return Credentials(agent[1], UserKey.of(seed[0]))
