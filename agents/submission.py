"""Submitting tasks: confirmed by a coordinator, or as a plain message that the stream keeps.

The submitter makes the task's id, so submitting again (after a timeout, by a retry) is harmless.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

import orjson
from headway.agents import payloads, plainjson
from headway.agents.api import TOKEN_HEADER, Api, error_of
from headway.agents.codec import Sealing
from headway.agents.errors import HeadwayError, InvalidInput, Refused, Unavailable
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.agents.messages import INLINE_MAX_BYTES, INPUT_MAX_BYTES, SPEC_VERSION
from headway.agents.subjects import PEOPLES_PAYLOADS, SubjectError, task_subject, token
from headway.agents.tracing import current
from headway.agents.views import PRIORITY, SubmitManyReply, SubmitReceipt
from headway.agents.wire import NO_STREAM, UNCONFIRMED
from pydantic import TypeAdapter

AT_ONCE = 256  # plain publications on their way at any time
CHUNK = 64  # submissions in one request
CHUNKS_AT_ONCE = 8
CHUNK_INPUT_MAX_BYTES = 4_096  # larger inputs are submitted one by one
TASK_EVENT = "headway.task"
SOURCE = "/headway/client"

Progress = Callable[[int], None]  # is told how many are done
R = TypeVar("R")

_ANY: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass(frozen=True, slots=True)
class _Pending:
    """One of many submissions, by its place."""

    number: int
    task: UUID
    input: Any


class Submissions(Api):
    """The ways to hand in a task. `input` is JSON, or a model or dataclass that becomes it."""

    async def submit(
        self,
        saga: str,
        input: Any,
        *,
        task: UUID | None = None,
        version: int | None = None,
        attributes: dict[str, str] | None = None,
        manifest: Manifest | None = None,
        priority: int = PRIORITY,
    ) -> SubmitReceipt:
        """Submit and wait until a coordinator has accepted the task for good.

        `priority` is 0 to 9, the most urgent; it counts where commands wait for their turn.

        Raises InvalidInput (also from the saga's own schema), NotFound for an unknown saga,
        Conflict if `task` was submitted with another body, Unavailable if nobody answers.
        """
        task = task or new_task_id()
        request = await self._submission(saga, input, task, version, attributes, manifest, priority)
        return await self.ask("submit", orjson.dumps(request), SubmitReceipt)

    async def _submission(
        self,
        saga: str,
        input: Any,
        task: UUID,
        version: int | None,
        attributes: dict[str, str] | None,
        manifest: Manifest | None,
        priority: int,
    ) -> dict[str, Any]:
        """What `submit` asks for."""
        body = self._sealed(_encode(input), task)
        request = await self._request(saga, body, task, attributes, priority)
        if version is not None:
            request["version"] = version
        if manifest is not None:
            request["manifest"] = orjson.Fragment(manifest.model_dump_json())
        return request

    async def publish(
        self, saga: str, input: Any, *, task: UUID | None = None, priority: int = PRIORITY
    ) -> UUID:
        """Put a task into the stream, without an answer from a coordinator; returns its id.

        Works while no coordinator runs. Whether the saga exists and the input fits is seen
        later: a message that is refused is kept, with the reason, among the dead letters.
        """
        task = task or new_task_id()
        body = self._sealed(_encode(input), task)
        subject = task_subject(_saga(saga))
        cloud_event = {
            "specversion": SPEC_VERSION,
            "id": task,
            "type": TASK_EVENT,
            "source": SOURCE,
            **_around(priority),
            **await self._carried(task, body, "data"),
        }
        message = [(subject, orjson.dumps(cloud_event))]
        shown = f"NATS/1.0\r\n{TOKEN_HEADER}: {self._token}\r\n\r\n" if self._token else ""

        async def once() -> None:
            [error] = await self.connection.wire.store_all(message, headers=shown.encode())
            if error is None:
                return
            if error.code in (UNCONFIRMED, NO_STREAM):
                raise Unavailable(error.text)
            raise Refused(f"the stream refused the task: {error.text}")

        await self.insist("publish", once)
        return task

    async def submit_many(
        self,
        saga: str,
        inputs: Iterable[Any],
        *,
        attributes: dict[str, str] | None = None,
        priority: int = PRIORITY,
        progress: Progress | None = None,
    ) -> list[SubmitReceipt | HeadwayError]:
        """Submit each of `inputs`, many at a time; a receipt or an error each, in order."""

        pending = [_Pending(number, new_task_id(), each) for number, each in enumerate(inputs)]
        outcomes: dict[int, SubmitReceipt | HeadwayError] = {}
        chunks = iter([pending[at : at + CHUNK] for at in range(0, len(pending), CHUNK)])

        async def lane() -> None:
            for chunk in chunks:  # shared: each lane takes the next
                outcomes.update(await self._submit_chunk(saga, chunk, attributes, priority))
                if progress is not None:
                    progress(len(outcomes))

        async with asyncio.TaskGroup() as lanes:
            for _ in range(CHUNKS_AT_ONCE):
                lanes.create_task(lane())
        return [outcomes[number] for number in range(len(pending))]

    async def _submit_chunk(
        self,
        saga: str,
        chunk: Sequence[_Pending],
        attributes: dict[str, str] | None,
        priority: int,
    ) -> dict[int, SubmitReceipt | HeadwayError]:
        """Hand in a chunk with one request; what is large or not accepted now goes alone."""
        outcomes: dict[int, SubmitReceipt | HeadwayError] = {}
        together: list[tuple[_Pending, dict[str, Any]]] = []
        alone: list[_Pending] = []
        for each in chunk:
            try:
                body = self._sealed(_encode(each.input), each.task)
            except InvalidInput as error:
                outcomes[each.number] = error
                continue
            if len(body) > CHUNK_INPUT_MAX_BYTES:
                alone.append(each)
            else:
                request = await self._request(saga, body, each.task, attributes, priority)
                together.append((each, request))
        if together:
            message = orjson.dumps({"tasks": [request for _, request in together]})
            reply = await self.ask("submit.many", message, SubmitManyReply)
            for (each, _), outcome in zip(together, reply.outcomes, strict=True):
                problem = outcome.problem
                if outcome.receipt is not None:
                    outcomes[each.number] = outcome.receipt
                elif problem is not None and problem.status < 500:
                    outcomes[each.number] = error_of(problem.status, problem.detail)
                else:
                    alone.append(each)
        for each in alone:
            outcomes[each.number] = await self._submit_alone(saga, each, attributes, priority)
        return outcomes

    async def _submit_alone(
        self, saga: str, each: _Pending, attributes: dict[str, str] | None, priority: int
    ) -> SubmitReceipt | HeadwayError:
        try:
            return await self.submit(
                saga, each.input, task=each.task, attributes=attributes, priority=priority
            )
        except HeadwayError as error:
            return error

    async def _request(
        self,
        saga: str,
        body: bytes,
        task: UUID,
        attributes: dict[str, str] | None,
        priority: int,
    ) -> dict[str, Any]:
        carried = await self._carried(task, body, "input")
        named = {"saga": saga, "task": task, "attributes": attributes or {}}
        return {**named, **_around(priority), **carried}

    async def publish_many(
        self, saga: str, inputs: Iterable[Any], *, progress: Progress | None = None
    ) -> list[UUID | HeadwayError]:
        """Publish each of `inputs`, many at a time; a task id or an error each, in order."""

        async def one(input: Any) -> UUID:
            return await self.publish(saga, input)

        return await _many(one, inputs, progress)

    def _sealed(self, body: bytes, task: UUID) -> bytes:
        """The input as it is handed in: encrypted, if there are keys."""
        if self._keyring is None:
            return body
        sealed = Sealing(self._keyring, str(task)).body(body)
        if len(sealed) > INPUT_MAX_BYTES:
            raise InvalidInput(
                f"the input has {len(sealed)} bytes when encrypted, more than {INPUT_MAX_BYTES} "
                "(1 MiB); keep it elsewhere and submit a reference to it"
            )
        return sealed

    async def _carried(self, task: UUID, body: bytes, field: str) -> dict[str, Any]:
        """The input in a message's `field`, or by reference if it is too large to travel."""
        if len(body) <= INLINE_MAX_BYTES:
            return {field: orjson.Fragment(body)}
        put = partial(payloads.put, self.connection.wire, PEOPLES_PAYLOADS, str(task), body)
        reference, digest = await self.insist("payload", put)
        return {"dataref": reference, "datadigest": digest}


async def _many(
    one: Callable[[Any], Awaitable[R]], inputs: Iterable[Any], progress: Progress | None
) -> list[R | HeadwayError]:
    """`one` for each of `inputs`, AT_ONCE at a time; what it raised stands in its place."""
    outcomes: dict[int, R | HeadwayError] = {}
    numbered = enumerate(inputs)

    async def lane() -> None:
        for number, each in numbered:  # shared: each lane takes the next
            try:
                outcomes[number] = await one(each)
            except HeadwayError as error:
                outcomes[number] = error
            if progress is not None:
                progress(len(outcomes))

    async with asyncio.TaskGroup() as lanes:
        for _ in range(AT_ONCE):
            lanes.create_task(lane())
    return [outcomes[number] for number in range(len(outcomes))]


def _around(priority: int) -> dict[str, Any]:
    """What a message says of its priority and of the span in which our caller is: nothing, if it is
    what is taken then."""
    said: dict[str, Any] = {} if priority == PRIORITY else {"priority": priority}
    if within := current():
        said["traceparent"] = within
    return said


def _encode(input: Any) -> bytes:
    try:
        body = plainjson.encode(_ANY.dump_python(input, mode="json"), made_of=input)
    except Exception as error:
        raise InvalidInput(
            f"the input cannot be written as JSON: {type(error).__name__}: {error}"
        ) from error
    if len(body) > INPUT_MAX_BYTES:
        raise InvalidInput(
            f"the input has {len(body)} bytes, more than {INPUT_MAX_BYTES} (1 MiB); "
            "keep it elsewhere and submit a reference to it"
        )
    return body


def _saga(name: str) -> str:
    try:
        return token(name)
    except SubjectError as error:
        raise InvalidInput(f"saga: {error}") from error
