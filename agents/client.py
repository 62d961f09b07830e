"""The client: submit tasks, ask for them, wait for them, and step in where a person must.

async with await Client.connect("nats://localhost:4222") as client:
    receipt = await client.submit("refund", {"order": "A-17"})
    view = await client.result(receipt.task, timeout=60)
    view = await client.run("refund", {"order": "A-18"}, timeout=60)  # both in one
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol
from uuid import UUID

import orjson
from headway.agents.api import TIMEOUT_S, checked_token, made
from headway.agents.catalogue_views import SagaView
from headway.agents.codec import Keyring
from headway.agents.connection import connect
from headway.agents.documents import Documents
from headway.agents.errors import InvalidInput, Unavailable
from headway.agents.identity import new_task_id
from headway.agents.insight import Insight
from headway.agents.interventions import Interventions
from headway.agents.limiting import Limiting
from headway.agents.manifest import Manifest
from headway.agents.messages import describe
from headway.agents.operating import Operating
from headway.agents.reading import ANSWER_S
from headway.agents.submission import Submissions
from headway.agents.views import (
    PRIORITY,
    ListRequest,
    TaskPage,
    TaskView,
    WaitingPage,
    WaitingRequest,
)
from headway.agents.waiting import POLL_S, Waiting
from pydantic import ValidationError


class SagaDefinition(Protocol):
    """Anything that writes itself as a saga definition, such as `headway.sagas`' own."""

    def to_json(self) -> bytes: ...


class Client(Submissions, Interventions, Limiting, Operating, Insight, Waiting):
    """Everything that a coordinator offers. Errors are those of `headway.agents.errors`."""

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        name: str = "client",
        timeout: float = TIMEOUT_S,
        wait: bool = False,
        token: str = "",
        keyring: Keyring | None = None,
    ) -> Client:
        """A client with a connection of its own; see `connection.connect` for `url`."""
        checked_token(token)  # before there is a connection that would have to be closed
        connection = await connect(url, name=name, wait=wait)
        return cls(connection, timeout=timeout, token=token, keyring=keyring)

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    @property
    def documents(self) -> Documents:
        """The documents that agents and people share."""
        return Documents(self.connection, timeout=self.timeout, token=self._token)

    async def run(
        self,
        saga: str,
        input: Any,
        *,
        task: UUID | None = None,
        attributes: dict[str, str] | None = None,
        manifest: Manifest | None = None,
        priority: int = PRIORITY,
        timeout: float | None = None,
    ) -> TaskView:
        """Submit a task and wait until it is settled, at most `timeout` seconds: `submit` and
        `result` in one, which raises what these raise; in one request, too, if it is soon."""
        task = task or new_task_id()
        request = await self._submission(saga, input, task, None, attributes, manifest, priority)
        request["wait_s"] = POLL_S
        accepted = False
        try:
            async with asyncio.timeout(timeout):
                view = await self.ask(
                    "run", orjson.dumps(request), TaskView, try_s=POLL_S + ANSWER_S
                )
                accepted = True
                return view if view.settled else await self._settled(task)
        except TimeoutError:
            unsure = "" if accepted else ", nor known to be accepted"
            raise Unavailable(f"task {task} is not settled after {timeout:g} s{unsure}") from None

    async def register(self, saga: bytes | SagaDefinition) -> SagaView:
        """Register a saga's definition; again is harmless.

        Raises InvalidInput for one that cannot be run, Conflict if this version has another
        definition already.
        """
        body = saga if isinstance(saga, bytes) else saga.to_json()
        return await self.ask("saga.register", body, SagaView)

    async def parked(
        self,
        *,
        saga: str | None = None,
        task: UUID | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> WaitingPage:
        """Everything that waits for a person, newest task first; of a saga, of one task, or all."""
        request = made(WaitingRequest, saga=saga, task=task, limit=limit, cursor=cursor)
        return await self.ask("parked", request, WaitingPage)

    async def list(self, **filters: Any) -> TaskPage:
        """Tasks, newest first; filters are the fields of `views.ListRequest`."""
        return await self.ask("list", _filtered(filters), TaskPage)


def _filtered(filters: dict[str, Any]) -> ListRequest:
    try:
        return ListRequest(**filters)
    except ValidationError as error:
        raise InvalidInput(f"not a filter for tasks: {describe(error)}") from error
