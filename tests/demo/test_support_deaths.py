"""Orders to die: carried out once, at the entry that they name, on the side that they name."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from harness.eventually import eventually
from headway.agents.connection import Connection
from headway.agents.entries import JournalAppended, JournalOpen, JournalOpened, NewEntry
from headway.agents.errors import Superseded
from headway.agents.journal import Coordinated
from headway.coordinator.process import Launch
from headway.demo.support.deaths import SPARE, Order, Orders, Place, Watched, execute, places
from headway.demo.support.staff import Member

TASK = UUID("01920000-0000-7000-8000-000000000001")
OPENING = JournalOpen(task=TASK, step="s", phase="action", attempt=1, epoch=0, worker="w")


class Journal:
    """What is asked of the coordinator, and how it answers."""

    def __init__(self) -> None:
        self.appended: list[str] = []
        self.refuses = False

    async def open(self) -> JournalOpened:
        return JournalOpened(epoch=1, entries=[])

    async def append(self, _epoch: int, seq: int, entries: list[NewEntry]) -> JournalAppended:
        if self.refuses:
            raise Superseded("another worker has it")
        self.appended += [entry.key for entry in entries]
        return JournalAppended(seq=seq)


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    journal = Journal()
    monkeypatch.setattr(Coordinated, "open", lambda _self: journal.open())
    monkeypatch.setattr(Coordinated, "append", lambda _self, *args: journal.append(*args))
    return journal


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(tmp_path)


def watched(orders: Orders, deaths: list[tuple[str, list[str]]], journal: Journal) -> Watched:
    """A watched journal; each execution is noted with what had been appended by then."""

    def note(order: Order) -> None:
        deaths.append((order.when, list(journal.appended)))

    return Watched(orders, note, cast(Connection, None), "a", OPENING)


def entry(kind: Any, key: str = "") -> NewEntry:
    return NewEntry(kind=kind, key=key)


async def write(watched: Watched) -> None:
    """Two calls at once, then a checkpoint."""
    await watched.open()
    await watched.append(1, 1, [entry("intent", "a"), entry("intent", "b")])
    await watched.append(1, 3, [entry("result", "a"), entry("checkpoint")])
    await watched.append(1, 5, [entry("result", "b"), entry("checkpoint")])
    await watched.append(1, 7, [entry("checkpoint")])


@pytest.mark.parametrize(
    ("name", "when", "appended"),
    [
        ("intent b", "before", []),
        ("intent b", "during", ["a", "b"]),
        ("intent b", "after", ["a", "b"]),
        ("result b", "before", ["a", "b", "a", ""]),
        ("checkpoint 1", "before", ["a", "b", "a", "", "b", ""]),
        ("open", "after", []),
    ],
)
async def test_an_order_is_carried_out_at_its_place_and_never_again(
    orders: Orders, journal: Journal, name: str, when: Any, appended: list[str]
) -> None:
    orders.give(TASK, Order(name, when))
    deaths: list[tuple[str, list[str]]] = []
    await write(watched(orders, deaths, journal))
    assert deaths == [(when, appended)]
    assert orders.carried_out(TASK)
    await write(watched(orders, deaths, journal))
    assert len(deaths) == 1


async def test_an_unharmed_task_tells_the_places(orders: Orders, journal: Journal) -> None:
    orders.give(TASK, SPARE)
    deaths: list[tuple[str, list[str]]] = []
    await write(watched(orders, deaths, journal))
    assert deaths == []
    assert not orders.carried_out(TASK)
    names = ["open", "intent a", "intent b", "result a", "result b", "checkpoint 1"]
    found = places(orders.notes(TASK))
    assert found == [Place(name, when) for name in names for when in ("before", "during", "after")]


async def test_a_task_without_an_order_leaves_no_notes(orders: Orders, journal: Journal) -> None:
    await write(watched(orders, [], journal))
    assert orders.notes(TASK) == []


async def test_a_refused_zombie_is_noted(orders: Orders, journal: Journal) -> None:
    journal.refuses = True
    with pytest.raises(Superseded):
        await watched(orders, [], journal).append(1, 1, [entry("intent", "a")])
    assert orders.notes(TASK) == ["refused: Superseded"]


def test_who_is_named_is_killed_and_who_is_gone_is_not_missed(tmp_path: Path) -> None:
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    (tmp_path / "victim").write_text(str(victim.pid))
    gone = str(tmp_path / "gone")
    execute(Order("open", "before", (gone, str(tmp_path / "victim")), "spared"))
    assert victim.wait(10) == -signal.SIGKILL


async def test_a_member_of_the_staff_comes_back_at_once_each_time(tmp_path: Path) -> None:
    launch = Launch((sys.executable, "-c", "import time; time.sleep(60)"), env=os.environ)
    member = Member("sleeper", launch, tmp_path)
    await member.start()
    try:
        for deaths in range(1, 6):
            os.kill(int(member.pid_file.read_text()), signal.SIGKILL)
            await eventually(partial(_has_died, member, deaths), 5)
        os.kill(member.pid, signal.SIGSTOP)
    finally:
        await asyncio.wait_for(member.stop(), 5)


def _has_died(member: Member, times: int) -> bool:
    return member.deaths == times and member.pid_file.exists()
