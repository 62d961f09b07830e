"""The feed on HTTP: `GET /api/feed`, as server-sent events.

    id: 4711.9f3a02c1
    event: succeeded
    data: {"task":"…","saga":"…","status":"succeeded","version":9,"at":"…"}

An `id` is a position: `Last-Event-ID` (header, or `last_event_id`) goes on after it, at any
coordinator. What comes without one is a hint, and may be lost. `event: gap` says that something
after the position is not there any more. A comment comes at least every 15 s. Always holds: whose
token is revoked hears nothing more after so long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from uuid import UUID

import orjson
from fastapi import APIRouter
from headway.agents.feed_views import FeedRequest
from headway.coordinator import http_problems
from headway.coordinator.access import Guarded
from headway.coordinator.caller import Caller
from headway.coordinator.errors import CoordinatorError, Refusal, StoreUnavailable
from headway.coordinator.feed import KEEP_ALIVE_S, Feed, Part
from headway.coordinator.feed_ring import Position
from headway.coordinator.http_access import HttpAccess
from headway.coordinator.http_requests import asked_in_query
from headway.coordinator.roles import FEED
from headway.coordinator.serving import Typed
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

PATH = "/api/feed"
OPERATION = "feed"
MEDIA_TYPE = "text/event-stream"
POSITION_HEADER = "Last-Event-ID"
RETRY_MS = 1_000  # until a client comes again
HEADERS = {"X-Accel-Buffering": "no"}  # for a proxy in between

_LOG = logging.getLogger(__name__)

OwnerOf = Callable[[UUID], Awaitable[str | None]]
Ask = Callable[[], Awaitable[Caller]]


def feed_router(feed: Feed, access: HttpAccess, owner_of: OwnerOf) -> APIRouter:
    """For the HTTP face; `owner_of` tells whose a task is."""
    guarded = Guarded(OPERATION, FEED, Typed(FeedRequest, FeedRequest, _as_asked), owner_of)

    async def answer(request: Request) -> Response:
        async def ask() -> Caller:
            caller = await access.caller(request.headers)
            guarded.check(caller)
            return caller

        try:
            caller = await ask()
            asked = guarded.parse(asked_in_query(FeedRequest, request.query_params), caller)
            allowed: FeedRequest = await guarded.run(asked, caller)
            if request.method == "HEAD":
                return Response(media_type=MEDIA_TYPE)
            parts = feed.listen(allowed, _position(request, asked), caller.name)
            return EventStream(await anext(parts), parts, ask)
        except Exception as error:
            return http_problems.answer_to(request, error)

    router = APIRouter()
    router.add_route(PATH, answer, methods=["GET"])
    return router


class EventStream(Response):
    """Goes on until the client goes, its token is revoked, or the coordinator leaves."""

    media_type = MEDIA_TYPE

    def __init__(self, first: Part, parts: AsyncGenerator[Part], ask: Ask) -> None:
        """`ask` raises Refusal once the client may not listen any more."""
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._first = first
        self._parts = parts
        self._ask = ask

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        ends = [
            asyncio.create_task(self._send(send)),
            asyncio.create_task(_until_gone(receive)),
        ]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            ended = await asyncio.gather(*ends, return_exceptions=True)
            await self._parts.aclose()
            if isinstance(ended[0], Exception):
                _LOG.error("a listener to the feed was let go", exc_info=ended[0])

    async def _send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        with suppress(CoordinatorError):
            async for text in self._texts():
                await send({"type": "http.response.body", "body": text, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _texts(self) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        asked_at = clock()
        yield b"retry: %d\n\n" % RETRY_MS + text_of(self._first)
        async for part in self._parts:
            yield text_of(part)
            if clock() - asked_at >= KEEP_ALIVE_S:
                asked_at = clock()
                with suppress(StoreUnavailable):
                    await self._ask()


def text_of(part: Part) -> bytes:
    """A part as server-sent events; without any, as a comment, with the position all the same."""
    if part.gap is not None:
        gap = {"after": part.gap.asked, "first": part.gap.first, "at": part.gap.at}
        return b"id: %s\nevent: gap\ndata: %s\n\n" % (_id(part.position), orjson.dumps(gap))
    if not part.events:
        return b": keep-alive\nid: %s\n\n" % _id(part.position)
    texts = []
    for event in part.events:
        if event.sequence:
            texts.append(b"id: %s\n" % _id(part.position._replace(sequence=event.sequence)))
        data = b" ".join(event.data.splitlines())
        texts.append(b"event: %s\ndata: %s\n\n" % (event.kind.encode(), data))
    return b"".join(texts)


def _id(position: Position) -> bytes:
    return str(position).encode()


def _position(request: Request, asked: FeedRequest) -> Position | None:
    """Where to go on; None: from now on. Refusal (422) if it is no position."""
    given = request.headers.get(POSITION_HEADER) or asked.last_event_id
    if not given:
        return None
    position = Position.read(given)
    if position is None:
        raise Refusal(f"{POSITION_HEADER}: not one that this API gave", 422)
    return position


async def _as_asked(request: FeedRequest, _caller: Caller) -> FeedRequest:
    return request


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
