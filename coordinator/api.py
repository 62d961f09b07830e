"""The NATS face: micro service `headway` (ADR-32), found by `$SRV` as any other.

People ask on `hw.api.<operation>`, agents' workers on `hw.agents.<agent>.<operation>`, where the
server lets nobody else publish.

Errors come as the headers `Nats-Service-Error` and `Nats-Service-Error-Code` with a problem
object (RFC 9457) as body. Answers over the inline limit travel by reference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from typing import Any

import nats.errors
import orjson
from headway.agents.api import TOKEN_HEADER
from headway.agents.connection import Connection
from headway.agents.messages import INLINE_MAX_BYTES
from headway.agents.payloads import put
from headway.agents.subjects import (
    PEOPLES_PAYLOADS,
    PREFIX,
    any_agent_subject,
    api_subject,
    asking_agent,
    payloads_to,
)
from headway.agents.views import Problem
from headway.coordinator.caller import Caller
from headway.coordinator.problems import BUSY, is_expected, problem, problem_of
from headway.coordinator.serving import Offer, Serve
from nats.micro.request import Request
from nats.micro.service import Service, ServiceConfig
from pydantic import BaseModel

_LOG = logging.getLogger(__name__)

SERVICE = "headway"
ANSWER_TIMEOUT_S = 10.0  # then nobody knows yet, and asking again is harmless
REQUESTS_MAX = 4_096  # at once; more are told to come again


Handler = Callable[[Request], Coroutine[Any, Any, None]]
Identify = Callable[[str, str], Awaitable[Caller]]
"""Tells who asks for an operation with a token ("" without); Refusal if nobody may."""


class Api:
    def __init__(self, connection: Connection, offer: Offer, identify: Identify) -> None:
        self._connection = connection
        self._identify = identify
        self._running: set[asyncio.Task[None]] = set()
        self._service: Service | None = None
        self._offer = offer

    async def start(self) -> None:
        """Register the service and its endpoints."""
        self._service = Service(
            self._connection.nc,
            ServiceConfig(
                name=SERVICE,
                version=version("headway"),
                description="Durable coordination for multi-agent systems",
            ),
        )
        with suppress(nats.errors.TimeoutError):  # the server is silent: it will be told again
            await self._service.start()
        for operation, serve in self._offer.people.items():
            identify = partial(self._person, operation)
            name = operation.replace(".", "-")
            await self._listen(name, api_subject(operation), self._handler(identify, serve))
        for operation, serve in self._offer.agents.items():
            name = f"agents-{operation.replace('.', '-')}"
            handler = self._handler(_agent, serve)
            await self._listen(name, any_agent_subject(operation), handler)

    async def stop(self) -> None:
        """Take no more requests, and let those under way end."""
        if self._service is not None:
            await self._service.stop()
        if self._running:
            await asyncio.wait(self._running)

    async def _listen(self, name: str, subject: str, handler: Handler) -> None:
        assert self._service is not None
        await self._service.add_endpoint(name=name, subject=subject, handler=handler)

    async def _person(self, operation: str, request: Request) -> Caller:
        return await self._identify(operation, (request.headers or {}).get(TOKEN_HEADER, ""))

    def _handler(self, whose: Callable[[Request], Awaitable[Caller]], serve: Serve) -> Handler:
        async def handle(request: Request) -> None:
            if not _may_be_answered(request._msg.reply):  # nats-py has no other way to it
                _LOG.warning("a request on %s is ignored: no inbox to answer to", request.subject)
                return
            if len(self._running) >= REQUESTS_MAX:
                await _respond_error(request, problem(503, BUSY))
                return
            task = asyncio.get_running_loop().create_task(self._serve(whose, serve, request))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

        return handle

    async def _serve(
        self, whose: Callable[[Request], Awaitable[Caller]], serve: Serve, request: Request
    ) -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_S):
                caller = await whose(request)
                answer = await serve(request.data, caller)
            body = await self._encode(answer, caller)
            with suppress(ValueError):  # nobody waits for the answer: it was no request
                await request.respond(body)
        except Exception as error:
            if not is_expected(error):
                _LOG.exception("a request on %s failed", request.subject)
            await _respond_error(request, problem_of(error))

    async def _encode(self, answer: BaseModel, caller: Caller) -> bytes:
        body = answer.model_dump_json().encode()
        if len(body) <= INLINE_MAX_BYTES:
            return body
        space = payloads_to(caller.agent) if caller.agent else PEOPLES_PAYLOADS
        ref, digest = await put(self._connection.wire, space, "answers", body)
        return orjson.dumps({"dataref": ref, "datadigest": digest})


def _may_be_answered(reply: str) -> bool:
    """Whether this is an inbox. What else a request might name as such would have us, with all that
    we may do, publish an answer as a command, an event or an order to JetStream. And what comes
    without any was not asked by anybody: it is somebody's answer that was sent astray."""
    return bool(reply) and not reply.startswith((f"{PREFIX}.", "$"))


async def _agent(request: Request) -> Caller:
    return Caller(asking_agent(request.subject))


async def _respond_error(request: Request, problem: Problem) -> None:
    one_line = " ".join(problem.detail.split())
    with suppress(ValueError):  # nobody waits for the answer: it was no request
        body = problem.model_dump_json().encode()
        await request.respond_error(str(problem.status), one_line, body)
