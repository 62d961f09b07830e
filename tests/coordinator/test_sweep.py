"""The sweep looks after dispatches until it knows of each that it is in order, or was lost."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from headway.agents.identity import new_task_id
from headway.coordinator.intake import Item
from headway.coordinator.records import Loaded
from headway.coordinator.sweep import OTHERS_AGE_MS, SUSPECT_AGE_MS, Sweep
from headway.sagas import Saga, transition
from headway.sagas import inputs as i

NOW = 1_800_000_000_000
PAIR = (
    Saga("pair")
    .step("left", "clerk.left", compensate="clerk.undo")
    .step("right", "clerk.right", compensate="clerk.undo")
    .define()
)


@dataclass
class World:
    """One task with two commands under way, and what the streams are said to hold."""

    at: int = NOW + SUSPECT_AGE_MS
    stored: set[str] = field(default_factory=set)  # steps
    unread_events: bool = False
    items: list[Item] = field(default_factory=list)

    def __post_init__(self) -> None:
        state = transition(PAIR, None, i.Submit(NOW)).task
        self.task = Loaded(new_task_id(), PAIR, state, b"{}", b"", None, None, None, {})
        self.sweep = Sweep(self, self, self.items.append, lambda: self.at, random.Random(1))

    async def claim_due(self, now, lease_ms, limit):
        return []

    async def read(self, ids):
        return {self.task.id: self.task} if self.task.id in ids else {}

    async def postpone(self, timers):
        pass

    async def open_tasks(self, after, limit, due_before):
        return [self.task.id]

    async def outstanding(self, commands):
        return {each for each in commands if each.subject.rpartition(".")[2] in self.stored}

    async def unread(self, tasks) -> set[UUID]:
        return set(tasks) if self.unread_events else set()

    async def lost(self) -> list[str]:
        """The steps whose dispatch one look finds lost."""
        await self.sweep.step()
        found = [item.happened.step for item in self.items]
        self.items.clear()
        return found


@pytest.fixture
def world() -> World:
    return World()


async def test_a_dispatch_whose_command_is_nowhere_was_lost(world):
    world.stored = {"left"}
    await world.sweep.look_over(None)
    assert await world.lost() == ["right"]


async def test_what_nobody_suspects_is_not_looked_after(world):
    assert await world.lost() == []


async def test_a_dispatch_that_may_still_be_on_its_way_is_looked_after_later(world):
    world.at = NOW
    await world.sweep.look_over(None)
    assert await world.lost() == []
    world.at += SUSPECT_AGE_MS
    assert await world.lost() == ["left", "right"]


async def test_while_an_event_of_its_task_waits_a_dispatch_stays_suspect(world):
    """The event may be of the step beside it: to forget the suspicion would cost 30 s."""
    world.stored, world.unread_events = {"left"}, True
    await world.sweep.look_over(None)
    assert await world.lost() == []
    world.unread_events = False
    assert await world.lost() == [], "not before its time: the event is still being handled"
    world.at += SUSPECT_AGE_MS
    assert await world.lost() == ["right"]


async def test_in_order_it_is_suspect_no_more(world):
    world.stored = {"left", "right"}
    await world.sweep.look_over(None)
    assert await world.lost() == []
    world.stored = set()
    assert await world.lost() == []


async def test_what_is_suspected_for_itself_does_not_wait_as_long_as_all_of_a_lost_peer(world):
    """Even if the sweep has looked between the two."""
    world.at = NOW
    await world.sweep.look_over(None, OTHERS_AGE_MS)
    assert await world.lost() == []
    world.sweep.suspect(world.task.id)
    assert await world.lost() == []
    world.at = NOW + SUSPECT_AGE_MS
    assert await world.lost() == ["left", "right"]


async def test_what_a_lost_peer_may_still_publish_is_looked_after_later(world):
    world.at = NOW + SUSPECT_AGE_MS
    await world.sweep.look_over(None, OTHERS_AGE_MS)
    assert await world.lost() == []
    world.at = NOW + OTHERS_AGE_MS
    assert await world.lost() == ["left", "right"]
