"""The agent `hotels` with one fault, which the kit has to find: `python faulty.py FAULT`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from headway.demo.languages import bare, bare_attempt, bare_words
from headway.demo.languages.bare_attempt import Attempt
from headway.demo.languages.bare_wire import BareWire
from headway.demo.languages.hotels import HANDLERS

FAULTS: dict[str, tuple[Callable[[], None], str]] = {}
"""By name: what brings it about, and the check that finds it."""


def finds(check: str) -> Callable[[Callable[[], None]], None]:
    def declare(fault: Callable[[], None]) -> None:
        FAULTS[fault.__name__.replace("_", "-")] = fault, check

    return declare


@finds("unsigned")
def believes_what_is_unsigned() -> None:
    bare.complaint = lambda _key, _subject, _body: ""


@finds("moved")
def signs_without_the_subject() -> None:
    known = bare_words.complaint

    def complaint(key: bytes, subject: str, body: bytes) -> str:
        wrong = known(key, subject, body)
        return "" if wrong.startswith("the signature") else wrong

    bare.complaint = complaint


@finds("action")
def acks_before_the_event() -> None:
    known = Attempt._end

    async def end(self: Attempt, kind: str, data: Any = None) -> None:
        await self._answer(b"+ACK")
        await known(self, kind, data)

    Attempt._end = end


@finds("event-not-stored")
def does_not_wait_for_the_stream() -> None:
    async def store(self: BareWire, subject: str, value: Any) -> None:
        await self.say(subject, value)

    BareWire.store = store


@finds("duplicate")
def never_claims() -> None:
    bare.is_fresh = lambda _command, _msg: True
    bare.REMEMBERED_MAX = 0


@finds("first-delivery")
def claims_all() -> None:
    bare.is_fresh = lambda _command, _msg: False


@finds("late-refused")
def begins_though_refused() -> None:
    known = Attempt._claim

    async def claim(self: Attempt, first: bool) -> bool:
        await known(self, first)
        return True

    Attempt._claim = claim


@finds("late-granted")
def keeps_the_old_epoch() -> None:
    known = Attempt._claim

    async def claim(self: Attempt, first: bool) -> bool:
        granted = await known(self, first)
        self._epoch = self.command["epoch"]
        return granted

    Attempt._claim = claim


@finds("elsewhere")
def takes_it_from_another() -> None:
    known = BareWire.claim

    async def claim(self: BareWire, request: Any) -> Any:
        return await known(self, request) | {"elsewhere": False}

    BareWire.claim = claim


@finds("turn")
def does_not_wait_for_its_turn() -> None:
    async def claim(self: BareWire, request: Any) -> Any:
        return await self.ask("claim", request)

    BareWire.claim = claim


@finds("redelivery")
def begins_a_redelivery() -> None:
    async def adopt(self: Attempt, msg: Any) -> None:
        again = Attempt(
            self._wire, {"conform-work": self._handler}, msg, self._action, self.command
        )
        again._epoch += 1
        again.start(claim=False, first=False)

    Attempt.adopt = adopt


@finds("kept")
def does_not_keep_it() -> None:
    async def keep(self: Attempt) -> None:
        return

    Attempt.keep = keep


@finds("roll")
def holds_nothing() -> None:
    async def on_roll_call(self: bare.BareAgent, msg: Any) -> None:
        await msg.respond(b'{"name": "%s", "held": []}' % self._wire.worker.encode())

    bare.BareAgent._on_roll_call = on_roll_call


@finds("deadline")
def has_no_deadline() -> None:
    known = Attempt._handle

    async def handle(self: Attempt, run: Any, data: Any) -> None:
        self.command = self.command | {"starttoclosems": 0}
        await known(self, run, data)

    Attempt._handle = handle


@finds("operation")
def has_another_operation_id() -> None:
    bare_attempt.operation_id = lambda command, phase="": command["id"]


@finds("encrypted")
def works_on_what_is_encrypted() -> None:
    known = Attempt._handle

    async def run(self: Attempt, claim: bool, first: bool) -> None:
        data = {**(self.command.get("data") or {}), "sealed": False}
        await known(self, self._handler[1], data)

    Attempt._run = run


@finds("result-too-large")
def says_all_that_it_has() -> None:
    bare_words.RESULT_MAX_BYTES = 100_000_000


@finds("payload-lost")
def does_not_check_the_digest() -> None:
    known = BareWire.get_payload

    async def get(self: BareWire, reference: str, _digest: str) -> bytes:
        return await known(self, reference, reference.split(".")[-2])

    BareWire.get_payload = get


@finds("start")
def does_not_say_that_it_starts() -> None:
    known = Attempt._run

    async def run(self: Attempt, claim: bool, first: bool) -> None:
        self.command = self.command | {"reportstart": False}
        await known(self, claim, first)

    Attempt._run = run


@finds("graceful-stop")
def drops_what_it_has_when_stopped() -> None:
    async def run(self: bare.BareAgent, stop: asyncio.Event) -> None:
        await self._listen()
        pulling = asyncio.create_task(self._pull())
        await stop.wait()
        pulling.cancel()

    bare.BareAgent.run = run


@finds("paced")
def does_not_hear_that_it_is_limited() -> None:
    async def on_paced(self: bare.BareAgent, msg: Any) -> None:
        return

    bare.BareAgent._on_paced = on_paced


@finds("server-killed")
def gives_up_when_the_server_is_gone() -> None:
    known = bare.Client.connect

    async def connect(self: Any, **options: Any) -> None:
        await known(self, **options | {"max_reconnect_attempts": 0, "allow_reconnect": False})

    bare.Client.connect = connect


if __name__ == "__main__":
    FAULTS[sys.argv[1]][0]()
    asyncio.run(bare.serve("hotels", HANDLERS))
