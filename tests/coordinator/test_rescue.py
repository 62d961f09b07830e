"""Rescues that race with claims, with each other and with themselves; over a real store."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from harness.desk import SAGA, Desk
from headway.agents.identity import new_task_id
from headway.agents.subjects import command_subject
from headway.coordinator.commands import Outgoing, Sought
from headway.coordinator.intake import Answer
from headway.coordinator.rescue import Rescue
from headway.coordinator.rollcall import Holdings
from headway.coordinator.store import Store
from headway.coordinator.sweep import Sweep
from headway.sagas import Phase
from headway.sagas import inputs as i
from headway.sagas.task import Claim

NOBODY = Holdings(set(), [])


@dataclass
class Agents:
    """The streams and the workers of agent `x`, as a rescue finds them."""

    stored: list[Outgoing]
    holdings: Holdings | None = NOBODY
    events_unread: set[UUID] = field(default_factory=set)
    meanwhile: Callable[[], object] | None = None  # happens when workers are asked

    async def unanswered(self, agent: str, upto: int) -> list[tuple[str, bytes]]:
        assert (agent, upto) == ("x", 7)
        return [(each.subject, each.body(5_000)) for each in self.stored]

    async def outstanding(self, commands: Sequence[Sought]) -> set[Sought]:
        return {
            each
            for each in commands
            for stored in self.stored
            if stored.subject == each.subject and each.is_in(stored.body(5_000))
        }

    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]:
        return self.events_unread & set(tasks)

    async def look(self, _roll: str) -> None:
        raise AssertionError("a rescue does not look who is there")

    async def holding(self, roll: str) -> Holdings | None:
        assert roll == "hw.alive.x.held"
        if self.meanwhile is not None:
            await self.meanwhile()  # type: ignore[misc]
        return self.holdings


@dataclass
class Scene:
    desk: Desk
    other: Desk
    task: UUID
    agents: Agents

    async def rescue(self, desk: Desk | None = None) -> bool:
        """One attempt, by the coordinator at `desk`, and what follows from it."""
        desk = desk or self.desk
        put, done = await self.look(desk)
        await desk.handle(*put)
        return done

    async def look(self, desk: Desk):
        put: list = []
        asking = type("Asking", (), {"holdings": staticmethod(self.agents.holding)})()
        rescue = Rescue(self.agents, desk.store, asking, put.append, lambda: 5_000)
        done = await rescue.attempt("x", 7)
        return put, done

    async def sweep(self) -> None:
        """One look of the sweep at the task, a second later, and what follows from it."""
        put: list = []
        sweep = Sweep(self.desk.store, self.agents, put.append, lambda: 6_000, random.Random(1))
        sweep.suspect(self.task)
        await sweep.step()
        await self.desk.handle(*put)

    async def claim(self, epoch: int, delivery: int, worker: str) -> Answer:
        asked = Claim(epoch, delivery, worker)
        happened = i.ClaimAsked(4_000, "a", Phase.ACTION, 1, asked)
        return await self.other.tell(self.task, happened, agent="x")

    async def state(self):
        [loaded] = (await self.other.store.read([self.task])).values()
        return loaded.task.steps["a"]

    @property
    def published(self) -> list[tuple[str, int]]:
        return [(o.attributes["step"], o.attributes["epoch"]) for o in self.desk.bus.sent]


@pytest.fixture
async def scene(postgres_url: str) -> AsyncIterator[Scene]:
    """A task whose step `a` was delivered to a worker that is lost."""
    stores = Store(postgres_url), Store(postgres_url)
    await stores[0].open()
    await stores[0].sagas.register(SAGA.define(), 1)
    desk, other, task = Desk(stores[0]), Desk(stores[1]), new_task_id()
    await desk.submit(task)
    yield Scene(desk, other, task, Agents(list(desk.bus.sent)))
    for store in stores:
        await store.close()


async def test_what_nobody_holds_is_published_again_once(scene: Scene) -> None:
    assert await scene.rescue()
    assert scene.published == [("a", 0), ("a", 1)]
    assert (await scene.claim(1, 1, "next")).refusal is None
    assert (await scene.state()).epoch == 2


async def test_what_a_live_worker_holds_is_left_alone(scene: Scene) -> None:
    held = command_subject("x", "a", str(scene.task), "a")
    scene.agents.holdings = Holdings({held}, [])
    assert await scene.rescue()
    assert scene.published == [("a", 0)]


@pytest.mark.parametrize("holdings", [None, Holdings(set(), ["frozen"])], ids=["trace", "frozen"])
async def test_nothing_is_done_before_everybody_has_answered(scene: Scene, holdings) -> None:
    scene.agents.holdings = holdings
    assert not await scene.rescue()
    assert scene.published == [("a", 0)]
    scene.agents.holdings = NOBODY
    assert await scene.rescue()
    assert scene.published == [("a", 0), ("a", 1)]


async def test_a_command_whose_answer_waits_to_be_handled_is_left_for_later(scene: Scene) -> None:
    scene.agents.events_unread = {scene.task}
    assert not await scene.rescue()
    assert scene.published == [("a", 0)]
    await scene.other.success(scene.task, "a")
    scene.agents.events_unread = set()
    assert await scene.rescue()
    assert scene.published == [("a", 0)]


async def test_who_claims_while_the_workers_are_asked_keeps_the_command(scene: Scene) -> None:
    """The old command is on its way to a live worker, which does not know of it when asked."""
    scene.agents.meanwhile = lambda: scene.claim(0, 2, "live")
    assert await scene.rescue()
    state = await scene.state()
    assert (state.epoch, state.claim) == (1, Claim(0, 2, "live"))
    assert scene.published == [("a", 0)]


async def test_who_claims_after_it_was_published_again_is_refused_the_old_command(
    scene: Scene,
) -> None:
    await scene.rescue()
    late = await scene.claim(0, 2, "live")
    assert late.refusal is not None
    assert late.refusal.reason == "a later delivery of this command was granted already"
    assert (await scene.claim(1, 1, "next")).refusal is None


async def test_what_was_published_again_and_did_not_arrive_is_so_though_the_old_command_is_there(
    scene: Scene,
) -> None:
    """nats-server was killed in between. The old command came again every `ack_wait`, was granted
    to nobody, and was taken for what its task waits for."""
    await scene.rescue()
    await scene.sweep()
    assert scene.published == [("a", 0), ("a", 1), ("a", 2)]
    assert (await scene.claim(1, 1, "next")).refusal is not None
    scene.agents.stored = scene.desk.bus.sent[-1:]
    await scene.sweep()
    assert (await scene.claim(2, 1, "next")).refusal is None
    await scene.sweep()
    assert scene.published == [("a", 0), ("a", 1), ("a", 2)]


async def test_of_two_that_rescue_the_same_one_does(scene: Scene) -> None:
    (one, _), (other, _) = await scene.look(scene.desk), await scene.look(scene.other)
    await scene.desk.handle(*one)
    await scene.other.handle(*other)
    assert (await scene.state()).epoch == 1
    assert scene.published == [("a", 0), ("a", 1)]
    assert scene.other.bus.sent == []


async def test_a_rescuer_that_froze_and_acts_on_what_it_knew_changes_nothing(scene: Scene) -> None:
    (old, _) = await scene.look(scene.desk)
    await scene.claim(0, 2, "live")  # ack_wait ran out meanwhile
    await scene.desk.handle(*old)
    state = await scene.state()
    assert (state.epoch, state.claim) == (1, Claim(0, 2, "live"))
    assert scene.published == [("a", 0)]


async def test_one_that_read_the_old_command_and_then_the_new_state_leaves_it_alone(
    scene: Scene,
) -> None:
    """Its copy of the stream is older than its copy of the task, which a peer's rescue changed."""
    await scene.rescue()
    assert await scene.rescue(scene.other)
    assert (await scene.state()).epoch == 1
    assert scene.other.bus.sent == []


async def test_a_worker_lost_again_is_followed_again(scene: Scene) -> None:
    await scene.rescue()
    await scene.claim(1, 1, "second")
    scene.agents.stored = scene.desk.bus.sent[-1:]
    await scene.rescue()
    assert scene.published == [("a", 0), ("a", 1), ("a", 3)]


async def test_junk_among_the_commands_is_no_obstacle(scene: Scene) -> None:
    subject = scene.agents.stored[0].subject
    junk = [
        ("hw.commands.x.a.not-a-task.a", b"{}"),
        (command_subject("x", "a", str(new_task_id()), "a"), b"{}"),
        (subject, b"not json"),
        (subject, b"{}"),
    ]
    real = scene.agents.unanswered

    async def unanswered(agent: str, upto: int):
        return junk + await real(agent, upto)

    scene.agents.unanswered = unanswered  # type: ignore[method-assign]
    assert await scene.rescue()
    assert scene.published == [("a", 0), ("a", 1)]
