"""The downstream service: a process that answers late, fails, or forgets to answer, as told."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from harness.eventually import eventually
from headway.coordinator.ports import free_port
from headway.demo.calls import Answer, Call, ask, is_listening
from headway.demo.evidence import read_evidence
from headway.demo.orders import Order, write_orders
from headway.demo.trouble import Trouble

NO_TROUBLE = Trouble()


class Service:
    """The running process, and an order to call it for."""

    def __init__(self, data: Path, orders: list[Order]) -> None:
        write_orders(data / "orders.jsonl", orders)
        self.order = orders[0]
        self.file = data / "downstream.sqlite3"
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        command = [sys.executable, "-P", "-m", "headway.demo.downstream"]
        command += ["--data", str(data), "--port", str(port)]
        self.process = subprocess.Popen(command)

    async def reserve(self, operation: UUID, trouble: Trouble, **changes: Any) -> Answer:
        call = Call(operation, "inventory.reserve", self.order, trouble=trouble, **changes)
        return await ask(self.address, call)

    def outcomes(self) -> list[str]:
        return [call.outcome for call in read_evidence(self.file).calls]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=10)


@pytest.fixture
async def service(tmp_path: Path, make_order: Callable[..., Order]) -> AsyncIterator[Service]:
    service = Service(tmp_path, [make_order("O-1", quantity=2), make_order("O-2", quantity=8)])
    await eventually(lambda: is_listening(service.address))
    yield service
    assert service.stop() == 0, "SIGTERM ends it in good order"


async def test_it_serves_in_a_process_of_its_own(service: Service) -> None:
    operation = uuid4()
    assert (await service.reserve(operation, NO_TROUBLE)).outcome == "applied"
    assert (await service.reserve(operation, NO_TROUBLE)).outcome == "duplicate"
    assert (await service.reserve(operation, NO_TROUBLE, undo=True)).outcome == "undone"


async def test_a_dropped_answer_hides_an_effect_that_a_second_call_finds(service: Service) -> None:
    operation = uuid4()
    with pytest.raises(ConnectionError):
        await service.reserve(operation, Trouble(drops=True))
    assert (await service.reserve(operation, NO_TROUBLE)).outcome == "duplicate"
    assert service.outcomes() == ["applied", "duplicate"]


async def test_a_failing_call_applies_nothing(service: Service) -> None:
    operation = uuid4()
    assert (await service.reserve(operation, Trouble(fails=True))).outcome == "failed"
    assert (await service.reserve(operation, NO_TROUBLE)).outcome == "applied"


async def test_a_held_action_that_its_compensation_overtakes_is_refused(service: Service) -> None:
    operation = uuid4()
    held = asyncio.create_task(service.reserve(operation, Trouble(hold_s=0.3)))
    assert (await service.reserve(operation, NO_TROUBLE, undo=True)).outcome == "empty"
    assert (await held).outcome == "fenced"


async def test_an_effect_is_applied_though_the_caller_has_hung_up(service: Service) -> None:
    operation = uuid4()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await service.reserve(operation, Trouble(hold_s=0.2))
    later = Trouble(hold_s=0.4)
    assert (await service.reserve(operation, later)).outcome == "duplicate"


async def test_junk_is_hung_up_on_and_harms_nobody(service: Service) -> None:
    host, _, port = service.address.rpartition(":")
    for junk in (b"\xff\x00\n", b"{}\n", b"no end", b"x" * 100_000 + b"\n"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(junk)
        writer.write_eof()
        try:
            assert await reader.read() == b""
        except ConnectionResetError:
            continue  # it hung up before it had read everything
        finally:
            writer.close()
    assert (await service.reserve(uuid4(), NO_TROUBLE)).outcome == "applied"


async def test_an_unknown_action_is_hung_up_on(service: Service) -> None:
    with pytest.raises(ConnectionError):
        await ask(service.address, Call(uuid4(), "inventory.steal", service.order))
