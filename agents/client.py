"""The client: submit tasks, ask for them, wait for them, and step in where a person must.

async with await Client.connect("nats://localhost:4222") as client:
    receipt = await client.submit("refund", {"order": "A-17"})
    view = await client.result(receipt.task, timeout=60)
    view = await client.run("refund", {"order": "A-18"}, timeout=60)  # both in one
"""

from __future__ import annotations

from typing import Any, Literal, Protocol
from uuid import UUID

from headway.agents.api import TIMEOUT_S
from headway.agents.connection import connect
from headway.agents.errors import InvalidInput
from headway.agents.messages import describe
from headway.agents.reading import Reading
from headway.agents.submission import Submissions
from headway.agents.views import (
    ListRequest,
    SagaView,
    SettleRequest,
    StepRequest,
    TaskPage,
    TaskRequest,
    TaskView,
)
from pydantic import ValidationError


class SagaDefinition(Protocol):
    """Anything that writes itself as a saga definition, such as `headway.sagas`' own."""

    def to_json(self) -> bytes: ...


class Client(Submissions, Reading):
    """Everything that a coordinator offers. Errors are those of `headway.agents.errors`."""

    @classmethod
    async def connect(
        cls, url: str, *, name: str = "client", timeout: float = TIMEOUT_S, wait: bool = False
    ) -> Client:
        """A client with a connection of its own; see `connection.connect` for `url`."""
        return cls(await connect(url, name=name, wait=wait), timeout=timeout)

    async def close(self) -> None:
        """Close the connection."""
        await self.connection.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def run(
        self,
        saga: str,
        input: Any,
        *,
        task: UUID | None = None,
        attributes: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> TaskView:
        """Submit a task and wait until it is settled: `submit`, then `result`, in one."""
        receipt = await self.submit(saga, input, task=task, attributes=attributes)
        return await self.result(receipt.task, timeout=timeout)

    async def register(self, saga: bytes | SagaDefinition) -> SagaView:
        """Register a saga's definition; again is harmless.

        Raises InvalidInput for one that cannot be run, Conflict if this version has another
        definition already.
        """
        body = saga if isinstance(saga, bytes) else saga.to_json()
        return await self.ask("saga.register", body, SagaView)

    async def cancel(self, task: UUID, reason: str = "", *, by: str = "") -> TaskView:
        """Have a task compensated; Conflict, with the reason, past its pivot."""
        request = TaskRequest(task=task, reason=reason, by=by)
        return await self.ask("cancel", request, TaskView, repeatable=False)

    async def retry(
        self, task: UUID, step: str | None = None, *, reason: str = "", by: str = ""
    ) -> TaskView:
        """Give a stuck step, or all of them, another series of attempts."""
        request = StepRequest(task=task, step=step, reason=reason, by=by)
        return await self.ask("retry", request, TaskView, repeatable=False)

    async def settle(
        self,
        task: UUID,
        step: str,
        outcome: Literal["happened", "did_not_happen"],
        result: Any = None,
        reason: str = "",
        *,
        by: str = "",
    ) -> TaskView:
        """State how a stuck step really ended; see `views.SettleRequest`."""
        request = SettleRequest(
            task=task, step=step, outcome=outcome, result=result, reason=reason, by=by
        )
        return await self.ask("settle", request, TaskView, repeatable=False)

    async def resume(self, task: UUID, *, reason: str = "", by: str = "") -> TaskView:
        """Let a parked task go on."""
        request = TaskRequest(task=task, reason=reason, by=by)
        return await self.ask("resume", request, TaskView, repeatable=False)

    async def parked(self, **filters: Any) -> TaskPage:
        """The tasks that wait for a person, newest first; filters as for `list`."""
        return await self.ask("parked", _filtered(filters), TaskPage)

    async def list(self, **filters: Any) -> TaskPage:
        """Tasks, newest first; filters are the fields of `views.ListRequest`."""
        return await self.ask("list", _filtered(filters), TaskPage)


def _filtered(filters: dict[str, Any]) -> ListRequest:
    try:
        return ListRequest(**filters)
    except ValidationError as error:
        raise InvalidInput(f"not a filter for tasks: {describe(error)}") from error
