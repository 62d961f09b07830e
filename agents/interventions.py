"""Stepping in where a person must: what can be done to a task from outside.

`by` and `reason` say who asks and why; both are in the task's history. None of these is asked again
when it may have been heard.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID, uuid4

import orjson
from headway.agents import plainjson
from headway.agents.api import Api, made
from headway.agents.codec import Sealing
from headway.agents.entries import JournalAppended, JournalSettle
from headway.agents.fork_views import ForkReceipt, ForkRequest
from headway.agents.identity import new_task_id
from headway.agents.signatures import ANYTHING
from headway.agents.views import (
    ApprovalRequest,
    GetRequest,
    MoveRequest,
    SettleRequest,
    SignalRequest,
    StepRequest,
    TaskRequest,
    TaskView,
)


class Interventions(Api):
    """Each gives the task as it is then; Conflict, with the reason, where its state forbids it."""

    async def cancel(self, task: UUID, reason: str = "", *, by: str = "") -> TaskView:
        """Have a task compensated; Conflict, with the reason, past its pivot."""
        request = made(TaskRequest, task=task, reason=reason, by=by)
        return await self.ask("cancel", request, TaskView, repeatable=False)

    async def retry(
        self, task: UUID, step: str | None = None, *, reason: str = "", by: str = ""
    ) -> TaskView:
        """Give a stuck step, or all of them, another series of attempts."""
        request = made(StepRequest, task=task, step=step, reason=reason, by=by)
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
        result = await self._sealed_for(task, result)
        request = made(
            SettleRequest,
            task=task,
            step=step,
            outcome=outcome,
            result=result,
            reason=reason,
            by=by,
        )
        return await self.ask("settle", request, TaskView, repeatable=False)

    async def resume(self, task: UUID, *, reason: str = "", by: str = "") -> TaskView:
        """Let a parked task go on."""
        request = made(TaskRequest, task=task, reason=reason, by=by)
        return await self.ask("resume", request, TaskView, repeatable=False)

    async def move(
        self, task: UUID, to: int, *, dry_run: bool = False, reason: str = "", by: str = ""
    ) -> TaskView:
        """Have a task go on under version `to` of its saga; Conflict says why its history does not
        fit that one. With `dry_run` nothing is changed."""
        request = made(MoveRequest, task=task, to=to, dry_run=dry_run, reason=reason, by=by)
        return await self.ask("move", request, TaskView)

    async def fork(
        self, task: UUID, step: str, *, new_task: UUID | None = None, reason: str = "", by: str = ""
    ) -> ForkReceipt:
        """Begin a new task of the same saga version with the same input, which keeps the results of
        all steps of `task` that do not come after `step`, and does the rest anew.

        Conflict says why it cannot be. Only a task that ended or is parked can be forked. Asked
        again with the same `new_task`, it is the same one.
        """
        given = new_task or new_task_id()
        request = made(ForkRequest, task=task, step=step, new_task=given, reason=reason, by=by)
        return await self.ask("fork", request, ForkReceipt)

    async def approve(
        self,
        task: UUID,
        step: str | None = None,
        *,
        invocation: UUID | None = None,
        reason: str = "",
        by: str = "",
    ) -> TaskView:
        """Approve a step that waits for that, or the call of a tool (`invocation`)."""
        return await self._decide("approve", task, step, invocation, reason, by)

    async def reject(
        self,
        task: UUID,
        step: str | None = None,
        *,
        invocation: UUID | None = None,
        reason: str = "",
        by: str = "",
    ) -> TaskView:
        """Reject a step that waits for approval, or the call of a tool (`invocation`)."""
        return await self._decide("reject", task, step, invocation, reason, by)

    async def _decide(
        self,
        word: str,
        task: UUID,
        step: str | None,
        invocation: UUID | None,
        reason: str,
        by: str,
    ) -> TaskView:
        request = made(
            ApprovalRequest, task=task, step=step, invocation=invocation, reason=reason, by=by
        )
        return await self.ask(word, request, TaskView, repeatable=False)

    async def signal(
        self, task: UUID, name: str, payload: Any = None, *, id: str = "", by: str = ""
    ) -> TaskView:
        """Send a signal; sent again with the same `id` it changes nothing, so this is asked until
        it is answered."""
        payload = await self._sealed_for(task, payload)
        request = made(
            SignalRequest, task=task, name=name, id=id or str(uuid4()), payload=payload, by=by
        )
        return await self.ask("signal", request, TaskView)

    async def settle_call(
        self,
        task: UUID,
        step: str,
        key: str,
        outcome: Literal["happened", "did_not_happen"],
        result: Any = None,
        reason: str = "",
        *,
        phase: Literal["action", "compensation"] = "action",
        by: str = "",
    ) -> JournalAppended:
        """State how a tool's call of which nobody knows really ended; then `resume` the task."""
        result = await self._sealed_for(task, result)
        request = made(
            JournalSettle,
            task=task,
            step=step,
            phase=phase,
            key=key,
            outcome=outcome,
            result=result,
            by=by,
            reason=reason,
        )
        return await self.ask("journal.settle", request, JournalAppended, repeatable=False)

    async def _sealed_for(self, task: UUID, value: Any) -> Any:
        """A value for a task: encrypted, if the task is and there are keys."""
        if self._keyring is None or value is None:
            return value
        view = await self.ask("get", GetRequest(task=task), TaskView)
        if not view.encrypted:
            return value
        plain = plainjson.encode(ANYTHING.dump_python(value, mode="json"), made_of=value)
        return orjson.loads(Sealing(self._keyring, str(task)).body(plain))
