"""The link, with what every user of JetStream needs: confirmed stores, and requests.

One inbox takes all PubAcks, a counter tells them apart, and nothing of an answer is parsed
unless it is an error. What always holds: `settled` of a store is called exactly once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

import nats.errors
import orjson
from headway.agents.again import Again
from headway.agents.errors import HeadwayError, Unavailable
from headway.agents.link import Link
from headway.agents.strays import is_signal
from headway.agents.subjects import ASK_AGAIN
from nats.aio.client import Client
from nats.aio.msg import Msg

STORE_TIMEOUT_S = 5.0

UNCONFIRMED = 0  # code: the message may or may not have been stored
TOO_LARGE = 413  # code: over the server's max_payload, so never sent
NO_STREAM = 503  # code: no stream takes this subject, or JetStream is not there

Settled = Callable[["StoreError | None"], None]

_log = logging.getLogger("headway.agents.wire")


class StoreError(HeadwayError):
    """A stream did not confirm a message; `code` is JetStream's err_code or one of the above."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{text} (code {code})")
        self.code = code
        self.text = text


class Unanswered(Unavailable):
    """A request was sent and no answer came: it may have been carried out."""


class Wire(Link):
    """One connection's messages, stores and requests."""

    def __init__(self, nc: Client) -> None:
        super().__init__(nc)
        self._stores: dict[str, tuple[Settled, float]] = {}
        self._store_number = 0
        self._store_inbox = ""
        self._store_timer: asyncio.TimerHandle | None = None
        self.again = Again()

    @property
    def server(self) -> str:
        """The id of the nats-server that we are, or were last, connected to; each start makes a new
        one."""
        return str(self._nc._server_info.get("server_id", ""))

    async def start(self) -> None:
        """Open the inbox for PubAcks, and hear of coordinators; once, when `nc` is connected."""
        self._store_inbox = f"{self.new_inbox()}."
        await self.subscribe(f"{self._store_inbox}*", self._on_stored)
        await self.subscribe(ASK_AGAIN, self._on_ask_again)
        self.on_reconnect(self.again.now)

    def store(
        self, subject: str, payload: bytes, settled: Settled, *, headers: bytes = b""
    ) -> None:
        """Publish to a stream; `settled` gets None on the PubAck, else the error, exactly once.

        `headers` is a raw block, from `NATS/1.0` to the empty line. Raises ConnectionError
        when closed.
        """
        nc = self._nc
        if nc.is_closed:
            raise ConnectionError("the connection to NATS is closed")
        size = len(headers) + len(payload)
        if size > nc.max_payload:
            error = StoreError(TOO_LARGE, f"{size} bytes exceed max_payload {nc.max_payload}")
            self._loop.call_soon(settled, error)
            return
        if not nc.is_connected:
            error = StoreError(UNCONFIRMED, "unconfirmed: not connected")
            self._loop.call_soon(settled, error)
            return
        self._store_number = number = self._store_number + 1
        token = str(number)
        self._stores[token] = settled, self._loop.time() + STORE_TIMEOUT_S
        if self._store_timer is None:
            self._store_timer = self._loop.call_later(STORE_TIMEOUT_S, self._expire_stores)
        reply = self._store_inbox + token
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {size}\r\n".encode()
            self._send(line + headers, payload)
        else:
            self._send(f"PUB {subject} {reply} {size}\r\n".encode(), payload)

    async def store_all(
        self, messages: Sequence[tuple[str, bytes]], *, headers: bytes = b""
    ) -> list[StoreError | None]:
        """Store all (subject, payload), pipelined; one outcome each, in order.

        A server answers a burst only when it has stored all of it: with every message flushed
        that may be 5,000 a second, so give it no more than a few thousand at a time.
        """
        outcomes: list[StoreError | None] = [None] * len(messages)
        if not messages:
            return outcomes
        done: asyncio.Future[None] = self._loop.create_future()
        left = len(messages)

        def settle(index: int, outcome: StoreError | None) -> None:
            nonlocal left
            left -= 1
            outcomes[index] = outcome
            if left == 0 and not done.done():
                done.set_result(None)

        for index, (subject, payload) in enumerate(messages):
            self.store(subject, payload, partial(settle, index), headers=headers)
        self.hand_over()  # they are together already
        await done
        return outcomes

    async def request(
        self, subject: str, payload: bytes, timeout: float, headers: dict[str, str] | None = None
    ) -> Msg:
        """nats-py's request: NoRespondersError, or TimeoutError after `timeout` seconds.

        The time is kept here: by nats-py, a cancellation that meets the answer would be lost.
        """
        try:
            async with asyncio.timeout(timeout):
                answer: Msg = await self._nc.request(
                    subject, payload, timeout=None, headers=headers
                )
        except TimeoutError:
            raise nats.errors.TimeoutError from None
        return answer

    async def ask(
        self,
        subject: str,
        payload: bytes,
        timeout: float,
        headers: dict[str, str] | None = None,
        *,
        repeatable: bool = True,
    ) -> Msg:
        """As `request`, but raises Unavailable, or Unanswered if it may have been heard.

        What is `repeatable` is given up early when its answer may have been lost."""
        wait = asyncio.timeout(None)
        if repeatable:
            self.again.add(wait)
        try:
            async with wait:
                return await self.request(subject, payload, timeout, headers)
        except nats.errors.NoRespondersError:
            raise Unavailable(f"nobody listens on {subject}") from None
        except (nats.errors.Error, TimeoutError) as error:
            raise Unanswered(f"no answer on {subject} within {timeout:g} s: {error}") from error
        finally:
            self.again.discard(wait)

    def give_up_stores(self, why: str) -> None:
        """Settle every store that waits for its PubAck as unconfirmed."""
        stores, self._stores = self._stores, {}
        for settled, _ in stores.values():
            _settle(settled, StoreError(UNCONFIRMED, f"unconfirmed: {why}"))

    async def disconnected(self) -> None:
        """For nats-py's connect: the connection is lost, so no store will be confirmed."""
        self.give_up_stores("disconnected")
        await super().disconnected()

    def _on_ask_again(self, _subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        if is_signal(headers, body):
            self.again.now()

    def _on_stored(self, subject: str, _reply: str, _headers: bytes, payload: bytes) -> None:
        entry = self._stores.pop(subject[len(self._store_inbox) :], None)
        if entry is not None:
            stored = payload and b'"error"' not in payload
            _settle(entry[0], None if stored else _refusal(payload))

    def _expire_stores(self) -> None:
        self._store_timer = None
        now = self._loop.time()
        while self._stores:
            token, (settled, deadline) = next(iter(self._stores.items()))
            if deadline > now:
                self._store_timer = self._loop.call_at(deadline, self._expire_stores)
                return
            del self._stores[token]
            _settle(settled, StoreError(UNCONFIRMED, f"unconfirmed after {STORE_TIMEOUT_S} s"))


def _refusal(payload: bytes) -> StoreError:
    """What an answer that is no PubAck means; no responders answer with an empty body."""
    if not payload:
        return StoreError(NO_STREAM, "no stream takes this subject, or JetStream is away")
    try:
        error = orjson.loads(payload)["error"]
        return StoreError(int(error.get("err_code", error["code"])), error["description"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        return StoreError(UNCONFIRMED, "unconfirmed: the answer is not a PubAck")


def _settle(settled: Settled, outcome: StoreError | None) -> None:
    try:
        settled(outcome)
    except Exception:
        _log.exception("the callback of a store failed")
