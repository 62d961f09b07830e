"""Submitting tasks and claiming their commands: requests in, views out.

Knows nothing of how requests travel. Refusal says no with a reason; StoreUnavailable,
BusUnavailable and TimeoutError mean that nobody knows yet: asking again is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from headway.agents import plainjson, views
from headway.agents.errors import Unavailable
from headway.agents.identity import new_task_id
from headway.agents.messages import INPUT_MAX_BYTES
from headway.agents.payloads import PayloadLost
from headway.agents.subjects import TOKEN
from headway.coordinator import asking, submissions
from headway.coordinator.admission_turns import Wait
from headway.coordinator.asking import accepted
from headway.coordinator.caller import Caller
from headway.coordinator.errors import BusUnavailable, Refusal, StoreUnavailable
from headway.coordinator.intake import Answer
from headway.coordinator.pacing import Ask
from headway.coordinator.presence import Roll
from headway.coordinator.records import NewTask, trace_of
from headway.coordinator.serving import Serve, typed_by
from headway.sagas import inputs as i
from headway.sagas.task import Claim, Phase

ATTRIBUTES_MAX = 32
ATTRIBUTE_MAX_CHARS = 256
AGAIN_MAX_MS = 2_000  # a turn is asked for again: the limit may be another meanwhile
SOON_MS = 1_000  # a turn that comes later is asked for again before it does


class Unread(Protocol):
    """Tells which tasks have events that nobody has handled yet."""

    async def __call__(self, tasks: list[UUID]) -> set[UUID]: ...


class FetchPayload(Protocol):
    async def __call__(self, ref: str, digest: str) -> bytes: ...


class TakeTurn(Protocol):
    """When an attempt of `agent` may begin; the same question is answered alike. Refusal if it is
    not the agent's, not outstanding, or a newer command of its step waits."""

    async def __call__(self, agent: str, ask: Ask, *, recovery: bool) -> Wait: ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What task operations need."""

    ask: asking.Ask
    unread: Unread
    fetch_payload: FetchPayload
    roll: Roll
    clock: Callable[[], int]
    jitter: Callable[[], float]
    turn: TakeTurn


class TaskOperations:
    """How tasks come in, and who may work on them."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._clock = around.clock

    def operations(self) -> dict[str, Serve]:
        return {
            "submit": typed_by(views.SubmitRequest, views.SubmitReceipt, self.submit),
            "submit.many": typed_by(
                views.SubmitManyRequest, views.SubmitManyReply, self.submit_many
            ),
        }

    def agent_operations(self) -> dict[str, Serve]:
        return {"claim": typed_by(views.ClaimRequest, views.ClaimReply, self.claim)}

    async def submit(self, request: views.SubmitRequest, caller: Caller) -> views.SubmitReceipt:
        return _receipt(await self.handed_in(await self.new_task(request, caller)))

    def handed_in(self, new: NewTask) -> asyncio.Future[Answer]:
        """What the engine says to a new task, once that is committed."""
        return self._around.ask(new.id, i.Submit(self._clock()), new=new)

    async def submit_many(
        self, request: views.SubmitManyRequest, caller: Caller
    ) -> views.SubmitManyReply:
        """All of them before the engine at once, each with an outcome of its own."""
        asked: list[asyncio.Future[Answer] | views.SubmitOutcome] = []
        for each in request.tasks:
            try:
                asked.append(self.handed_in(await self.new_task(each, caller)))
            except (Refusal, StoreUnavailable, BusUnavailable) as error:
                asked.append(_problem(error))
        outcomes = [
            each if isinstance(each, views.SubmitOutcome) else _outcome(await each)
            for each in asked
        ]
        return views.SubmitManyReply(outcomes=outcomes)

    async def claim(self, request: views.ClaimRequest, caller: Caller) -> views.ClaimReply:
        """Tell when a command may begin and, once that is soon, grant it; a first delivery needs no
        grant. Ask again while an answer of its task is waiting to be handled: it may be this
        command's.

        It is granted no sooner, since from then on its agent counts as at work on it.
        """
        if not request.first and await self._around.unread([request.task]):
            raise BusUnavailable("an event of this task is about to be handled; ask again")
        asked = f"{request.epoch}/{request.delivery}/{request.worker}"
        place = (request.task, request.step, request.phase, request.attempt, request.epoch)
        try:
            wait = await self._around.turn(
                caller.agent, Ask(*place, asked), recovery=not request.first
            )
        except Refusal as refusal:
            return views.ClaimReply(granted=False, reason=refusal.reason)
        reply = views.ClaimReply(granted=True, epoch=request.epoch, paced=wait.paced)
        if wait.again or wait.ms > SOON_MS:
            ahead_ms = 0 if wait.again else SOON_MS // 2
            return reply.model_copy(update={"again_in_ms": min(wait.ms - ahead_ms, AGAIN_MAX_MS)})
        if not request.first:
            reply = await self._claimed(request, caller)
        return reply.model_copy(update={"start_in_ms": wait.ms, "paced": wait.paced})

    async def _claimed(self, request: views.ClaimRequest, caller: Caller) -> views.ClaimReply:
        asked = Claim(request.epoch, request.delivery, request.worker)
        happened = i.ClaimAsked(
            self._clock(),
            request.step,
            Phase(request.phase),
            request.attempt,
            asked,
            self._around.jitter(),
        )
        answer = await self._around.ask(request.task, happened, agent=caller.agent)
        state = None if answer.task is None else answer.task.task.steps.get(request.step)
        if answer.refusal is not None or state is None:
            reason = answer.refusal.reason if answer.refusal else "there is no such task"
            elsewhere = (
                state is not None
                and state.outstanding
                and (state.phase, state.attempt) == (request.phase, request.attempt)
                and state.claim is not None
                and not state.claim.precedes(asked)
            )
            return views.ClaimReply(granted=False, reason=reason, elsewhere=elsewhere)
        return views.ClaimReply(granted=True, epoch=state.epoch)

    async def new_task(self, request: views.SubmitRequest, caller: Caller) -> NewTask:
        """What is to be submitted; Refusal if it cannot be."""
        _check_attributes(request.attributes)
        if TOKEN.fullmatch(request.saga) is None:
            raise Refusal(f"there is no saga {request.saga!r}; its name cannot be one", 404)
        body, content = await self._input(request)
        return NewTask(
            request.task or new_task_id(),
            request.saga,
            body,
            submissions.digest(request.saga, content, request.manifest),
            request.version,
            request.attributes,
            request.manifest,
            owner=caller.name,
            priority=request.priority,
            trace=trace_of(request.traceparent),
        )

    async def _input(self, request: views.SubmitRequest) -> tuple[bytes, Any]:
        """The input as JSON and as a value."""
        if not request.dataref:
            try:
                body = plainjson.encode(request.input)
            except plainjson.NotPlain as error:
                raise Refusal(f"input: {error}", 422) from error
            if len(body) > INPUT_MAX_BYTES:
                raise Refusal(
                    f"input: {len(body)} bytes, more than {INPUT_MAX_BYTES}; keep it elsewhere and "
                    "send a reference",
                    413,
                )
            return body, request.input
        try:
            body = await self._around.fetch_payload(request.dataref, request.datadigest)
        except PayloadLost as error:
            raise Refusal(str(error), 422) from error
        except Unavailable as error:
            raise BusUnavailable(str(error)) from error
        return body, submissions.read_json(body)


def _receipt(answer: Answer) -> views.SubmitReceipt:
    loaded = accepted(answer)
    return views.SubmitReceipt(
        task=loaded.id,
        saga=loaded.definition.name,
        version=loaded.definition.version,
        created=answer.changed,
    )


def _outcome(answer: Answer) -> views.SubmitOutcome:
    try:
        return views.SubmitOutcome(receipt=_receipt(answer))
    except Refusal as refusal:
        return _problem(refusal)


def _problem(error: Refusal | StoreUnavailable | BusUnavailable) -> views.SubmitOutcome:
    code = error.code if isinstance(error, Refusal) else 503
    problem = views.Problem(title="not accepted", detail=str(error), status=code)
    return views.SubmitOutcome(problem=problem)


def _check_attributes(attributes: dict[str, str]) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise Refusal(f"attributes: at most {ATTRIBUTES_MAX} are taken", 422)
    for name, value in attributes.items():
        if len(name) > ATTRIBUTE_MAX_CHARS or len(value) > ATTRIBUTE_MAX_CHARS:
            raise Refusal(f"attributes: at most {ATTRIBUTE_MAX_CHARS} characters each", 422)
        if "\0" in name or "\0" in value:
            raise Refusal("attributes: a NUL character cannot be stored", 422)
