"""One command for the agent, and what became of it: the words in which checks are written."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from headway.agents import payloads, subjects
from headway.agents.identity import new_task_id
from headway.agents.messages import (
    COMPENSATE,
    COMPLETED,
    EXECUTE,
    FAILED,
    HEARTBEAT,
    INLINE_MAX_BYTES,
    STARTED,
    Event,
    EventData,
    FailureData,
    Phase,
    decode_event_data,
)
from headway.agents.views import ClaimReply, ClaimRequest
from headway.conform.seen import ENDINGS, Broken, Seen
from headway.conform.standin import StandIn
from headway.coordinator import outcomes
from headway.coordinator.errors import Refusal

SAGA = "conformance"
WITHIN_S = 10.0  # an agent that has nothing else to do answers much sooner
QUIET_S = 0.4  # in which nothing comes that is not to come
TAKES_OUT = (b"", b"+ACK", b"+NXT", b"+TERM")


@dataclass
class Order:
    """A command, as it was or will be stored. `attributes` are put over what is usual."""

    standin: StandIn
    action: str
    input: Any = None
    phase: Phase = "action"
    step: str = "only"
    attributes: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    task: UUID = field(default_factory=new_task_id)
    sequence: int = 0
    body: bytes = b""

    @property
    def subject(self) -> str:
        agent = self.standin.agent
        return subjects.command_subject(agent, self.action, str(self.task), self.step)

    def unsigned(self) -> dict[str, Any]:
        """The command, as JSON's types."""
        attempt, epoch = self.attributes.get("attempt", 1), self.attributes.get("epoch", 0)
        digits = self.task.hex
        usual = {
            "specversion": "1.0",
            "id": f"{self.task}/{self.step}/{self.phase}/{attempt}/{epoch}",
            "source": "/headway/coordinator",
            "type": EXECUTE if self.phase == "action" else COMPENSATE,
            "task": str(self.task),
            "saga": SAGA,
            "step": self.step,
            "phase": self.phase,
            "attempt": 1,
            "epoch": 0,
            "traceparent": f"00-{digits}-{digits[16:]}-01",
            "sentms": time.time_ns() // 1_000_000,
        }
        data = {"input": self.input, "results": {}, **self.data}
        by_reference = bool(self.attributes.get("dataref"))
        return {**usual, **self.attributes, **({} if by_reference else {"data": data})}

    async def send(self) -> Order:
        """Sign it and store it; the order itself."""
        body = self.standin.sign(self.subject, orjson.dumps(self.unsigned()))
        return await self.send_raw(body)

    async def send_raw(self, body: bytes) -> Order:
        """Store these bytes as the command."""
        self.body = body
        self.sequence = await self.standin.store(self.subject, body)
        return self

    async def send_large(self) -> Order:
        """As `send`, with its data by reference."""
        data = orjson.dumps({"input": self.input, "results": {}, **self.data})
        space = subjects.payloads_to(self.standin.agent)
        reference, digest = await payloads.put(self.standin.wire, space, str(self.task), data)
        self.attributes |= {"dataref": reference, "datadigest": digest}
        return await self.send()

    def answer_claims(self, *answers: ClaimReply | None) -> Order:
        """What is answered to its next claims; None is no answer."""
        self.standin.claims[str(self.task)] = deque(answers)
        return self

    @property
    def claims(self) -> list[ClaimRequest]:
        """The claims that were asked; Broken if one is none."""
        found = []
        for seen in self.standin.log.of("claim"):
            try:
                request = ClaimRequest.model_validate_json(seen.body)
            except ValueError as error:
                raise Broken(f"a claim does not fit its schema: {error}") from error
            if request.task == self.task:
                found.append(request)
        return found

    @property
    def answers(self) -> list[Seen]:
        """What was answered to its deliveries."""
        log, replies = self.standin.log, {each.reply for each in self.deliveries}
        return [each for each in log.of("answer") if each.subject in replies]

    @property
    def deliveries(self) -> list[Seen]:
        """A stream that was killed may give the sequence of an older command out again."""
        mine = (self.sequence, self.subject, self.body)
        log = self.standin.log
        return [each for each in log.of("delivery") if _which(each) == mine]

    def events(self, *kinds: str) -> list[tuple[Seen, Event]]:
        """The events of its task of these types; Broken if one is none, or not this task's."""
        subject = subjects.event_subject(self.standin.agent, str(self.task))
        found = []
        for seen in self.standin.log.of("event"):
            if seen.subject == subject:
                event = checked(self, seen)
                if not kinds or event.type in kinds:
                    found.append((seen, event))
        return found

    async def event(self, *kinds: str, within_s: float = WITHIN_S) -> tuple[Seen, Event]:
        """The first event of these types, once it is there."""

        def find() -> tuple[Seen, Event] | None:
            return next(iter(self.events(*kinds)), None)

        words = " or ".join(kind.rpartition(".")[2] for kind in kinds)
        return await self.standin.log.until(find, within_s, f"an event {words}")

    async def ended(self, within_s: float = WITHIN_S) -> tuple[Event, EventData]:
        """How the attempt ended, once its command is answered too; Broken if that came first."""
        seen, event = await self.event(*ENDINGS, within_s=within_s)
        acked = await self.acked()
        log = self.standin.log
        if log.place(acked) < log.place(seen):
            raise Broken("the command was acked before its event was published")
        return event, await data_of(self, event)

    async def completed(self, within_s: float = WITHIN_S) -> Any:
        """The result; Broken if it ended otherwise."""
        event, data = await self.ended(within_s)
        if event.type != COMPLETED:
            raise Broken(f"not completed but {_told(event, data)}")
        return data.result

    async def failed(self, within_s: float = WITHIN_S) -> FailureData:
        """Why it failed; Broken if it ended otherwise."""
        event, data = await self.ended(within_s)
        if event.type != FAILED or data.error is None:
            raise Broken(f"not failed but {_told(event, data)}")
        return data.error

    async def acked(self, *words: bytes, within_s: float = WITHIN_S) -> Seen:
        """The answer that takes the command out, or is one of `words`, once it is there."""
        wanted = words or TAKES_OUT

        def find() -> Seen | None:
            return next((each for each in self.answers if _word(each.body) in wanted), None)

        told = " or ".join(word.decode() or "an empty ack" for word in wanted)
        return await self.standin.log.until(find, within_s, told)


async def data_of(order: Order, event: Event) -> EventData:
    """An event's data, wherever they are; Broken if they are not what it says."""
    if not event.dataref:
        return event.data or EventData()
    try:
        body = await payloads.get(order.standin.wire, event.dataref, event.datadigest)
    except payloads.PayloadLost as lost:
        raise Broken(f"the event's payload: {lost}") from lost
    return decode_event_data(body)


def checked(order: Order, seen: Seen) -> Event:
    """An event as coordinators take it; Broken says what is wrong with it."""
    try:
        event = outcomes.decode(seen.body)
        outcomes.check_payload(order.standin.agent, event)
    except Refusal as refusal:
        raise Broken(f"an event that coordinators refuse: {refusal}") from refusal
    if event.task != str(order.task) or event.step != order.step or event.phase != order.phase:
        raise Broken("an event that names another task, step or phase than its command")
    if event.attempt != order.attributes.get("attempt", 1):
        raise Broken(f"an event of attempt {event.attempt}, which is not its command's")
    if event.data is not None and len(seen.body) > INLINE_MAX_BYTES:
        raise Broken(f"an event of {len(seen.body)} bytes; its data has to travel by reference")
    if event.type in (*ENDINGS, STARTED) and not seen.reply:
        raise Broken(f"{event.type} was published without asking the stream to confirm it")
    return event


def endings(orders: Sequence[Order]) -> list[tuple[Order, set[str]]]:
    """The ids of the events that ended each attempt."""
    return [(each, {event.id for _, event in each.events(*ENDINGS)}) for each in orders]


def heartbeats(order: Order) -> list[Event]:
    return [event for _, event in order.events(HEARTBEAT)]


def _which(seen: Seen) -> tuple[int, str, bytes]:
    return seen.sequence, seen.subject, seen.body


def _word(body: bytes) -> bytes:
    return body.split(b" ", 1)[0]


def _told(event: Event, data: EventData) -> str:
    why = "" if data.error is None else f" ({data.error.type}: {data.error.message})"
    return f"{event.type.rpartition('.')[2]}{why}"
