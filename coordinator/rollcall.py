"""Asking nats-server who listens on a roll's subject, and those who do what they hold.

A message with the header `Nats-Trace-Dest` makes each server that it passes tell to whom it gave
it: the subscriptions, with queue group (here the member's name) and connection. That needs no
system account and no answer from the members, who get nothing at all of it with `Nats-Trace-Only`.
A server also says to how many others it passed the message on, so a part that is missing shows:
what is not whole counts as not said.

Always holds: only what nats-server wrote is a trace, and only members answer for a roll. An agent's
user can have a server send bytes of his own here (`agents/strays.py`): they count for nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
from headway.agents import subjects
from headway.agents.strays import is_stray
from headway.agents.wire import Wire
from headway.coordinator.attendance import Look

LOOK_WITHIN_S = 1.0  # one server answers in a millisecond; a cluster, in one between its servers
ANSWER_WITHIN_S = 0.3  # a member that is busy for longer keeps what it has; it is asked again


class Holdings(NamedTuple):
    """What the members hold, and who of them did not answer in time."""

    held: set[str]
    silent: list[str]


@dataclass
class _Question:
    began: float
    done: asyncio.Future[None]
    answers_wanted: bool
    answers_on: str
    servers: dict[str, None] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    held: dict[str, list[str]] = field(default_factory=dict)
    traces: int = 0
    expected: int = 1

    @property
    def whole(self) -> bool:
        return self.traces == self.expected

    def settle(self) -> None:
        answered = not self.answers_wanted or self.members.keys() <= self.held.keys()
        if self.whole and answered and not self.done.done():
            self.done.set_result(None)


class RollCall:
    """What one coordinator, `asker`, asks."""

    def __init__(self, wire: Wire, asker: str) -> None:
        self._wire = wire
        self._asker = asker
        self._questions: dict[str, _Question] = {}
        self._number = 0

    async def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        traces = subjects.traces_for(self._asker)
        await self._wire.subscribe(f"{traces}.*", self._on_trace)
        for each in subjects.answers_for(self._asker):
            await self._wire.subscribe(each, self._on_answer)

    async def look(self, roll: str) -> Look | None:
        """Who listens on a roll's subject; None if that cannot be had now."""
        question = await self._ask(roll, answers=False, within_s=LOOK_WITHIN_S)
        return _look(question, self._loop.time()) if question.whole else None

    async def holdings(self, roll: str) -> Holdings | None:
        """What all who listen there hold; None if it cannot be had who does."""
        question = await self._ask(roll, answers=True, within_s=ANSWER_WITHIN_S)
        if not question.whole:
            return None
        silent = [name for name in question.members if name not in question.held]
        return Holdings({each for held in question.held.values() for each in held}, silent)

    async def _ask(self, roll: str, *, answers: bool, within_s: float) -> _Question:
        self._number += 1
        number = str(self._number)
        reply = subjects.answers_to(self._asker, roll, self._number)
        question = _Question(self._loop.time(), self._loop.create_future(), answers, reply)
        if not self._wire.connected:
            return question
        self._questions[number] = question
        dest = f"{subjects.traces_for(self._asker)}.{number}"
        lines = ["NATS/1.0", f"Nats-Trace-Dest: {dest}", "Nats-Trace-Only: true", "", ""]
        try:
            self._wire.publish(roll, b"", headers="\r\n".join(lines).encode())
            if answers:  # without headers, which some clients would copy into their answers
                self._wire.publish(roll, b"", reply)
            async with asyncio.timeout(within_s):
                await question.done
        except (TimeoutError, ConnectionError):
            pass
        finally:
            del self._questions[number]
        return question

    def _on_trace(self, subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        question = self._questions.get(subject.rpartition(".")[2])
        if question is None or is_stray(headers):
            return
        try:
            trace: dict[str, Any] = orjson.loads(body)
            server, events, hops = trace["server"]["id"], trace["events"], trace.get("hops", 0)
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return  # an answer to somebody, sent astray
        question.traces += 1
        question.expected += hops
        question.servers[server] = None
        for event in events:
            if event["type"] == "eg" and event.get("queue"):
                question.members[event["queue"]] = server
        question.settle()

    def _on_answer(self, subject: str, _reply: str, headers: bytes, body: bytes) -> None:
        question = self._questions.get(subject.rpartition(".")[2])
        if question is None or subject != question.answers_on or is_stray(headers):
            return
        try:
            answer = orjson.loads(body)
            question.held[str(answer["name"])] = [str(each) for each in answer["held"]]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return  # junk, from an agent's own user; whoever sent it has not answered
        question.settle()


def _look(question: _Question, ended: float) -> Look:
    return Look(question.began, ended, question.members, tuple(question.servers))
