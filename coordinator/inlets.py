"""From deliveries to items: what agents answered, and what anybody published as a task.

Always holds: a message is acked only when its item was answered (all that follows from it is
stored), or when it was refused and is kept with the reason. Junk never raises from here.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol

from headway.agents import messages, subjects
from headway.agents.api import TOKEN_HEADER
from headway.agents.errors import InvalidInput, Unavailable
from headway.agents.messages import EventData
from headway.agents.payloads import PayloadLost
from headway.agents.pull import ACK, Delivery
from headway.agents.strays import is_stray
from headway.coordinator import outcomes, submissions
from headway.coordinator.access import check_role
from headway.coordinator.errors import Refusal, StoreUnavailable
from headway.coordinator.intake import Answer, Item
from headway.coordinator.roles import NEEDS
from headway.coordinator.tokens import Tokens
from headway.sagas.inputs import Submit

_LOG = logging.getLogger(__name__)


class Mail(Protocol):
    """The bus, as far as messages coming in need it."""

    def refuse(
        self, origin: str, subject: str, body: bytes, reason: str, kept: Callable[[], None]
    ) -> None: ...
    async def fetch_payload(self, ref: str, digest: str) -> bytes: ...


class Inlets:
    def __init__(
        self,
        mail: Mail,
        put: Callable[[Item], None],
        acknowledge: Callable[[str, bytes], None],
        clock: Callable[[], int],
        rng: random.Random,
        tokens: Tokens,
    ) -> None:
        """`acknowledge` publishes to a delivery's reply subject."""
        self._tokens = tokens
        self._mail = mail
        self._put = put
        self._acknowledge = acknowledge
        self._clock = clock
        self._rng = rng
        self._fetching: set[asyncio.Task[None]] = set()
        self.tasks_stream_created = ""

    def on_event(self, delivery: Delivery) -> None:
        """An agent's event."""
        try:
            _check_not_stray(delivery)
            event = outcomes.decode(delivery.body)
            agent, task = outcomes.sender(delivery.subject, event)
            outcomes.check_payload(agent, event)
            put = partial(self._put_event, delivery, event, agent, task)
            if event.dataref:
                self._fetch(delivery, subjects.EVENTS_STREAM, event.dataref, event.datadigest, put)
            else:
                put(event.data or EventData())
        except Refusal as refusal:
            self._refuse(subjects.EVENTS_STREAM, delivery, refusal)

    def on_task(self, delivery: Delivery) -> None:
        """A submission by plain publish."""
        headers = parse_headers(delivery.headers)
        token = headers.get(TOKEN_HEADER.lower(), "")
        if self._tokens.can_tell(token):
            self._take_task(delivery, headers, token)
        else:
            self._spawn(self._learn_tokens_and_take(delivery, headers, token))

    async def _learn_tokens_and_take(
        self, delivery: Delivery, headers: dict[str, str], token: str
    ) -> None:
        try:
            await self._tokens.learn(token)
        except StoreUnavailable as error:
            _LOG.warning("tokens cannot be read now; a submission will come again: %s", error)
            return
        self._take_task(delivery, headers, token)

    def _take_task(self, delivery: Delivery, headers: dict[str, str], token: str) -> None:
        try:
            _check_not_stray(delivery)
            caller = self._tokens.caller(token)
            if caller.role:
                check_role("submit", NEEDS["submit"], caller)
            published = submissions.parse(delivery.subject, headers, delivery.body)
            put = partial(self._put_task, delivery, published, caller.name)
            if published.data is None:
                self._fetch(delivery, subjects.TASKS_STREAM, published.ref, published.digest, put)
            else:
                put(published.data)
        except Refusal as refusal:
            self._refuse(subjects.TASKS_STREAM, delivery, refusal)

    def _put_event(
        self,
        delivery: Delivery,
        event: messages.Event,
        agent: str,
        task: Any,
        data: EventData | bytes,
    ) -> None:
        if isinstance(data, bytes):
            try:
                data = messages.decode_event_data(data)
            except InvalidInput as error:
                raise Refusal(str(error), 422) from error
        happened = outcomes.to_input(event, data, self._clock(), self._rng.uniform(-1.0, 1.0))
        answered = partial(self._answered, subjects.EVENTS_STREAM, delivery)
        self._put(Item(task, happened, answered, agent=agent, repeated=delivery.delivered > 1))

    def _put_task(
        self, delivery: Delivery, published: submissions.Published, owner: str, data: bytes
    ) -> None:
        stored = submissions.Stored(
            self.tasks_stream_created, delivery.sequence, delivery.stored_at_ms
        )
        new = submissions.new_task(published, data, stored, owner)
        answered = partial(self._answered, subjects.TASKS_STREAM, delivery)
        self._put(
            Item(
                new.id,
                Submit(self._clock()),
                answered,
                new=new,
                repeated=delivery.delivered > 1,
            )
        )

    def _answered(self, stream: str, delivery: Delivery, answer: Answer) -> None:
        if answer.refusal is not None:
            self._refuse(stream, delivery, answer.refusal)
        else:
            self._acknowledge(delivery.reply, ACK)

    def _refuse(self, stream: str, delivery: Delivery, refusal: Refusal) -> None:
        self._mail.refuse(
            stream,
            delivery.subject,
            delivery.body,
            refusal.reason,
            partial(self._acknowledge, delivery.reply, ACK),
        )

    def _fetch(
        self,
        delivery: Delivery,
        stream: str,
        ref: str,
        digest: str,
        put: Callable[[bytes], None],
    ) -> None:
        self._spawn(self._fetched(delivery, stream, ref, digest, put))

    async def _fetched(
        self,
        delivery: Delivery,
        stream: str,
        ref: str,
        digest: str,
        put: Callable[[bytes], None],
    ) -> None:
        try:
            put(await self._mail.fetch_payload(ref, digest))
        except PayloadLost as lost:
            self._refuse(stream, delivery, Refusal(str(lost), 410))
        except Refusal as refusal:
            self._refuse(stream, delivery, refusal)
        except Unavailable as error:
            _LOG.warning("a payload is not to be had now; its message will come again: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)


def _check_not_stray(delivery: Delivery) -> None:
    if is_stray(delivery.headers):
        raise Refusal("nobody published this: it is an answer of nats-server sent astray", 403)


def parse_headers(block: bytes) -> dict[str, str]:
    """A raw NATS header block as a mapping; names in lower case, the first of each counts."""
    found: dict[str, str] = {}
    for line in block.decode("utf-8", "replace").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            found.setdefault(name.strip().lower(), value.strip())
    return found
