"""What the shell offers for a word that is being typed: names and ids that coordinators know.

Nothing is offered where nobody answers soon, and nothing is ever said: a shell has no place for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import get_args

from headway.agents.client import Client
from headway.agents.errors import HeadwayError
from headway.agents.views import TaskStatus
from headway.cli.addresses import Given, find
from headway.cli.terminal import token

SOON_S = 1.5  # for the connection and the answer together
TASKS_OFFERED_MAX = 30  # the newest ones

Names = list[tuple[str, str]]
"""Each with what it is."""


def statuses(incomplete: str) -> list[str]:
    """The statuses of tasks."""
    return [status for status in get_args(TaskStatus) if status.startswith(incomplete)]


def tasks(incomplete: str) -> Names:
    """The ids of the newest tasks."""

    async def newest(client: Client) -> Names:
        page = await client.list(limit=TASKS_OFFERED_MAX)
        return [(str(row.task), f"{row.saga} {row.status}") for row in page.tasks]

    return _known(newest, incomplete)


def sagas(incomplete: str) -> Names:
    """The names of sagas."""

    async def registered(client: Client) -> Names:
        listed = await client.sagas()
        return list({saga.name: (saga.name, "saga") for saga in listed.sagas}.values())

    return _known(registered, incomplete)


def agents(incomplete: str) -> Names:
    """The names of agents that are there, or that are waited for."""

    async def there(client: Client) -> Names:
        return [(one.agent, "agent") for one in (await client.agents()).agents]

    return _known(there, incomplete)


def _known(question: Callable[[Client], Awaitable[Names]], incomplete: str) -> Names:
    async def ask() -> Names:
        url = find(Given(), os.environ).nats_url
        async with asyncio.timeout(SOON_S):
            async with await Client.connect(url, name="headway-cli", token=token()) as client:
                return await question(client)

    try:
        found = asyncio.run(ask())
    except (HeadwayError, TimeoutError, OSError):
        return []
    return [(name, what) for name, what in found if name.startswith(incomplete)]
