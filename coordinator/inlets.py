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
from headway.agents.deadletters import Refused
from headway.agents.errors import InvalidInput, Unavailable
from headway.agents.headers import parse_headers
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
from headway.coordinator.vouching import VOUCHED_HEADER, Vouching
from headway.sagas.inputs import Submit

_LOG = logging.getLogger(__name__)

_SHOWN = (TOKEN_HEADER.lower(), VOUCHED_HEADER)  # headers that say who asks: never kept


class Mail(Protocol):
    """The bus, as far as messages coming in need it."""

    def refuse(self, refused: Refused, kept: Callable[[], None]) -> None: ...
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
        vouching: Vouching,
    ) -> None:
        """`acknowledge` publishes to a delivery's reply subject."""
        self._tokens = tokens
        self._vouching = vouching
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
        if VOUCHED_HEADER in headers or self._tokens.can_tell(token):
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
        owner = ""
        try:
            _check_not_stray(delivery)
            owner = self._owner(delivery, headers, token)
            published = submissions.parse(delivery.subject, headers, delivery.body)
            put = partial(self._put_task, delivery, published, owner)
            if published.data is None:
                stream, ref = subjects.TASKS_STREAM, published.ref
                self._fetch(delivery, stream, ref, published.digest, put, owner)
            else:
                put(published.data)
        except Refusal as refusal:
            self._refuse(subjects.TASKS_STREAM, delivery, refusal, owner)

    def _owner(self, delivery: Delivery, headers: dict[str, str], token: str) -> str:
        """Who submits a task; Refusal if nobody may."""
        vouched = headers.get(VOUCHED_HEADER)
        if vouched is not None:
            name = submissions.name_in(headers)
            return self._vouching.owner(vouched, delivery.subject, name, delivery.body)
        caller = self._tokens.caller(token)
        if caller.role:
            check_role("submit", NEEDS["submit"], caller)
        return caller.name

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
        answered = partial(self._answered, subjects.EVENTS_STREAM, delivery, "")
        self._put(Item(task, happened, answered, agent=agent, repeated=delivery.delivered > 1))

    def _put_task(
        self, delivery: Delivery, published: submissions.Published, owner: str, data: bytes
    ) -> None:
        new = submissions.new_task(published, data, self._stored(delivery), owner)
        answered = partial(self._answered, subjects.TASKS_STREAM, delivery, owner)
        self._put(
            Item(
                new.id,
                Submit(self._clock()),
                answered,
                new=new,
                repeated=delivery.delivered > 1,
            )
        )

    def _answered(self, stream: str, delivery: Delivery, owner: str, answer: Answer) -> None:
        if answer.refusal is not None:
            self._refuse(stream, delivery, answer.refusal, owner)
        else:
            self._acknowledge(delivery.reply, ACK)

    def _refuse(self, stream: str, delivery: Delivery, refusal: Refusal, owner: str = "") -> None:
        headers = parse_headers(delivery.headers)
        is_task = stream == subjects.TASKS_STREAM
        refused = Refused(
            stream,
            delivery.subject,
            delivery.body,
            refusal.reason,
            {name: value for name, value in headers.items() if name not in _SHOWN},
            str(submissions.nameless_id(self._stored(delivery))) if is_task else "",
            owner,
        )
        self._mail.refuse(refused, partial(self._acknowledge, delivery.reply, ACK))

    def _stored(self, delivery: Delivery) -> submissions.Stored:
        return submissions.Stored(
            self.tasks_stream_created, delivery.sequence, delivery.stored_at_ms
        )

    def _fetch(
        self,
        delivery: Delivery,
        stream: str,
        ref: str,
        digest: str,
        put: Callable[[bytes], None],
        owner: str = "",
    ) -> None:
        self._spawn(self._fetched(delivery, stream, ref, digest, put, owner))

    async def _fetched(
        self,
        delivery: Delivery,
        stream: str,
        ref: str,
        digest: str,
        put: Callable[[bytes], None],
        owner: str,
    ) -> None:
        try:
            put(await self._mail.fetch_payload(ref, digest))
        except PayloadLost as lost:
            self._refuse(stream, delivery, Refusal(str(lost), 410), owner)
        except Refusal as refusal:
            self._refuse(stream, delivery, refusal, owner)
        except Unavailable as error:
            _LOG.warning("a payload is not to be had now; its message will come again: %s", error)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._fetching.add(task)
        task.add_done_callback(self._fetching.discard)


def _check_not_stray(delivery: Delivery) -> None:
    if is_stray(delivery.headers):
        raise Refusal("nobody published this: it is an answer of nats-server sent astray", 403)
