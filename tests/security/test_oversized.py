"""JSON that is too large, too deep or too much: answered in bounded time and memory, everywhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import orjson
import psutil
import pytest
from harness.coordination import working
from harness.eventually import eventually
from harness.requests import TASK, sample, with_text
from harness.shop import shop
from harness.system import System
from headway.agents.api import ERROR_CODE
from headway.agents.command_key import UNSIGNED, WRONGLY_SIGNED
from headway.agents.command_signing import signed
from headway.agents.subjects import agent_subject, api_subject, command_subject, event_subject
from headway.coordinator.app import Coordinator

SIZE = 1_000_000  # bytes: nearly all that one message may have
ANSWER_WITHIN_S = 3.0
MEMORY_MAX_BYTES = 400_000_000  # more than before, for coordinator, worker and test together

BODIES = {
    "brackets": b"[" * SIZE,
    "braces": b'{"a":' * (SIZE // 5),
    "deep and whole": b"[" * (SIZE // 2) + b"]" * (SIZE // 2),
    "one number": b"1" * SIZE,
    "a fraction": b"0." + b"1" * SIZE,
    "an exponent": b"1e" + b"9" * SIZE,
    "numbers": b"[" + b"0," * (SIZE // 2 - 1) + b"0]",
    "members": b"{" + b",".join(b'"%d":0' % n for n in range(SIZE // 10)) + b"}",
    "one member again and again": b'{"task":' + b'0,"task":' * (SIZE // 9 - 1) + b"0}",
    "escapes": b'"' + rb"\u0041" * (SIZE // 6 - 1) + b'"',
    "half a string": b'"' + b"x" * (SIZE - 1),
    "not UTF-8": b'"' + b"\xff" * (SIZE - 2) + b'"',
    "white space": b" " * SIZE,
}


def within(request: dict[str, Any], body: bytes) -> Iterator[bytes]:
    """The request with `body` in place of one of its texts, for some of them."""
    for changed in list(with_text(request, "TEXT"))[:1]:
        yield orjson.dumps(changed).replace(b'"TEXT"', body[: SIZE - 2_000])


@pytest.fixture
def memory() -> Iterator[None]:
    process = psutil.Process()
    before = process.memory_info().rss
    yield
    grown = process.memory_info().rss - before
    assert grown < MEMORY_MAX_BYTES, f"{grown / 1e6:.0f} MB more than before"


async def test_every_operation_answers_what_is_wrong_with_it(
    system: System, running: list[Coordinator], memory: None
) -> None:
    offer, wire = running[0]._api._offer, system.client.connection.wire
    everything = [
        *((api_subject(name), serve) for name, serve in offer.people.items()),
        *((agent_subject("shop", name), serve) for name, serve in offer.agents.items()),
    ]
    slowest = 0.0
    for number, (subject, serve) in enumerate(everything):
        names = list(BODIES)
        bodies = [BODIES[names[(2 * number + place) % len(names)]] for place in range(2)]
        bodies += within(sample(serve.request), bodies[0])
        for body in bodies:
            began_at = time.monotonic()
            answer = await wire.request(subject, body, ANSWER_WITHIN_S)
            slowest = max(slowest, time.monotonic() - began_at)
            code = int((answer.headers or {}).get(ERROR_CODE, "200"))
            assert code < 500, (subject, body[:60], answer.data[:300])
            assert len(answer.data) < 10_000
    view = await system.client.submit("linear", {"number": 1})
    assert view.created
    assert slowest < ANSWER_WITHIN_S


async def test_every_stream_takes_it_and_coordinator_and_worker_go_on(
    system: System, running: list[Coordinator], memory: None
) -> None:
    """What is no JSON, or too deep, is refused; the rest is a task's input, as JSON is."""
    async with working(system.nats.url, shop(system.downstream)):
        for number, body in enumerate(BODIES.values()):
            subject = command_subject("shop", "a", TASK, f"s{number}")
            for each in ("hw.tasks.linear", "hw.tasks.none", event_subject("shop", TASK)):
                await stored(system, each, body)
            await stored(system, subject, body)
            await stored(system, subject, signed(b"k" * 32, subject, body))
        view = await system.client.run("linear", {"number": 1}, timeout=20)
        assert view.status == "succeeded"
        await eventually(lambda: nothing_waits(system), 20)
    letters = [each for each in await system.dead_letters() if "size" in each]
    reasons = [each["reason"] for each in letters]
    assert {each for each in reasons if "sign" in each} == {UNSIGNED, WRONGLY_SIGNED}
    assert sum("nested more than" in each for each in reasons) >= 3
    assert max(map(len, reasons)) < 1_000
    assert max(len(orjson.dumps(each)) for each in letters) < 200_000


async def stored(system: System, subject: str, body: bytes) -> None:
    """Store it; on a command's subject, which takes one at a time, wait for its turn."""

    async def once() -> bool:
        [error] = await system.client.connection.wire.store_all([(subject, body)])
        return error is None

    await eventually(once, 10)


async def nothing_waits(system: System) -> bool:
    jetstream = system.client.connection.nc.jetstream()
    infos = [await jetstream.stream_info(name) for name in ("HW_TASKS", "HW_EVENTS", "HW_COMMANDS")]
    return not any(info.state.messages for info in infos)


async def test_many_large_requests_at_once_keep_nobody_waiting_for_long(
    system: System, running: list[Coordinator], memory: None
) -> None:
    wire = system.client.connection.wire
    flood = [wire.request(api_subject("submit"), body, 30) for body in BODIES.values()]
    asking = asyncio.gather(*flood)
    assert (await system.client.submit("linear", {"number": 1})).created
    codes = {(answer.headers or {}).get(ERROR_CODE) for answer in await asking}
    assert codes == {"422"}
    assert (await system.client.health()).status == "ok"
