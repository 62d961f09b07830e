"""What people, and programs for them, may do to tasks: requests in, the task as it is then out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from headway.agents import plainjson, views
from headway.agents.gates import NAME_MAX_CHARS, REASON_MAX_CHARS, GateDecide
from headway.agents.messages import INLINE_MAX_BYTES, INPUT_MAX_BYTES
from headway.coordinator.asking import Ask, accepted
from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.taskchecks import check_sealed
from headway.sagas import inputs as i

Read = Callable[[UUID], Awaitable[Loaded]]
Show = Callable[[Loaded], Awaitable[views.TaskView]]


class Interventions:
    def __init__(
        self,
        ask: Ask,
        decide_gate: Callable[[GateDecide], Awaitable[Any]],
        read: Read,
        show: Show,
        clock: Callable[[], int],
    ) -> None:
        """`decide_gate` takes a person's word on a tool's call; `read` gives a task as it is, and
        `show` the view of it."""
        self._ask = ask
        self._decide_gate = decide_gate
        self._read = read
        self._show = show
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {
            "cancel": typed(views.TaskRequest, views.TaskView, self.cancel),
            "retry": typed(views.StepRequest, views.TaskView, self.retry),
            "resume": typed(views.TaskRequest, views.TaskView, self.resume),
            "settle": typed(views.SettleRequest, views.TaskView, self.settle),
            "approve": typed(views.ApprovalRequest, views.TaskView, self.approve),
            "reject": typed(views.ApprovalRequest, views.TaskView, self.reject),
            "signal": typed(views.SignalRequest, views.TaskView, self.signal),
        }

    async def cancel(self, request: views.TaskRequest) -> views.TaskView:
        return await self._change(request, i.Cancel(self._clock(), request.by, request.reason))

    async def retry(self, request: views.StepRequest) -> views.TaskView:
        happened = i.RetryStuck(self._clock(), request.by, request.reason, request.step)
        return await self._change(request, happened)

    async def resume(self, request: views.TaskRequest) -> views.TaskView:
        return await self._change(request, i.RetryStuck(self._clock(), request.by, request.reason))

    async def settle(self, request: views.SettleRequest) -> views.TaskView:
        _check_json(request.result, "result", INPUT_MAX_BYTES)
        await self._check_sealed(request.task, request.result, "result")
        happened = i.Settle(
            self._clock(),
            request.step,
            request.outcome,
            request.by,
            request.reason,
            request.result,
        )
        return await self._change(request, happened)

    async def approve(self, request: views.ApprovalRequest) -> views.TaskView:
        return await self._decide(request, approved=True)

    async def reject(self, request: views.ApprovalRequest) -> views.TaskView:
        return await self._decide(request, approved=False)

    async def signal(self, request: views.SignalRequest) -> views.TaskView:
        _check_json(request.payload, "payload", INLINE_MAX_BYTES)
        await self._check_sealed(request.task, request.payload, "payload")
        if "\0" in request.name + request.id:
            raise Refusal("name, id: a NUL character cannot be stored", 422)
        happened = i.SignalSent(
            self._clock(), request.name, request.id, request.payload, request.by
        )
        return await self._change(request, happened)

    async def _check_sealed(self, task: UUID, value: Any, name: str) -> None:
        if value is not None:
            check_sealed((await self._read(task)).input, value, name)

    async def _decide(self, request: views.ApprovalRequest, *, approved: bool) -> views.TaskView:
        """A person's word: on a step that waits for it, or on a tool's call."""
        if request.invocation is not None:
            decision = GateDecide(
                task=request.task,
                invocation=request.invocation,
                decision="approved" if approved else "rejected",
                by=request.by,
                reason=request.reason,
            )
            await self._decide_gate(decision)
            return await self._show(await self._read(request.task))
        if request.step is None:
            raise Refusal("step: name the step, or the invocation, that waits for approval", 422)
        happened = i.Approval(self._clock(), request.step, approved, request.by, request.reason)
        return await self._change(request, happened)

    async def _change(self, request: views.TaskRequest, happened: i.Input) -> views.TaskView:
        check_words(request.by, request.reason)
        return await self._show(accepted(await self._ask(request.task, happened)))


def check_words(by: str, reason: str) -> None:
    """Refusal (422) if who asks, or why, cannot be kept."""
    if "\0" in by + reason:
        raise Refusal("by, reason: a NUL character cannot be stored", 422)
    if len(by) > NAME_MAX_CHARS or len(reason) > REASON_MAX_CHARS:
        raise Refusal(
            f"by, reason: at most {NAME_MAX_CHARS} and {REASON_MAX_CHARS} characters are taken",
            422,
        )


def _check_json(value: Any, name: str, max_bytes: int) -> None:
    """Refusal if it cannot be kept in its task's state."""
    try:
        size = len(plainjson.encode(value))
    except plainjson.NotPlain as error:
        raise Refusal(f"{name}: {error}", 422) from error
    if size > max_bytes:
        raise Refusal(
            f"{name}: {size} bytes, more than {max_bytes}; keep it elsewhere and send a reference",
            413,
        )
