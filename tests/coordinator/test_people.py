"""What a task does beside its agents' steps, through real servers: it waits for people, signals,
time and other tasks, depends on conditions, grows while it runs, and keeps to its manifest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import pytest_asyncio
from harness.actors import Actor, Actors
from harness.audit import audit
from harness.coordination import client_of, registered, working
from harness.eventually import eventually
from harness.office import Office, desk, sagas
from harness.services import Servers
from headway.agents import Client, Conflict, InvalidInput, NotFound, connect
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.agents.views import StepView, TaskView, WaitingView
from headway.coordinator.family import DEPTH_MAX
from headway.sagas import Saga

pytestmark = pytest.mark.asyncio(loop_scope="module")

IN_TIME_S = 10.0


@dataclass
class World:
    """A coordinator as a process, and the office's agents in this one."""

    client: Client
    office: Office
    actors: Actors
    urls: dict[str, str]
    coordinator: Actor | None = None

    async def start(self, *arguments: str) -> Actor:
        self.coordinator = await self.actors.start("coordinator_process", *arguments, **self.urls)
        return self.coordinator

    def log(self, task: UUID) -> list[str]:
        return self.office.log[task]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(module_servers: Servers) -> AsyncIterator[World]:
    nats, url, folder = module_servers
    urls = {"HEADWAY_NATS_URL": nats.url, "HEADWAY_POSTGRES_URL": url}
    actors = Actors(folder)
    try:
        async with client_of(nats.url) as client, await connect(nats.url, name="office") as desks:
            world = World(client, Office(desks), actors, urls)
            await world.start()
            for saga in sagas():
                await registered(client, saga)
            async with working(nats.url, *world.office.agents, connection=desks):
                yield world
    finally:
        await actors.end()
    await audit(url)


@pytest.fixture
def client(world: World) -> Client:
    return world.client


async def begun(client: Client, saga: str, order=None, **options) -> UUID:
    return (await client.submit(saga, order or {}, **options)).task


async def ran(client: Client, saga: str, order=None, **options) -> TaskView:
    return await client.run(saga, order or {}, timeout=IN_TIME_S, **options)


async def ended(client: Client, task: UUID) -> TaskView:
    return await client.result(task, timeout=IN_TIME_S)


async def at(client: Client, task: UUID, step: str) -> StepView:
    """The step once it waits for something."""

    async def waiting() -> StepView | None:
        try:
            steps = (await client.status(task)).steps
        except NotFound:  # a child is named before it is begun
            return None
        return next((each for each in steps if each.name == step and each.waiting_for), None)

    return await eventually(waiting, what=f"step {step} waits")


async def at_agreement(client: Client, **options) -> UUID:
    task = await begun(client, "agreed", **options)
    waiting = await at(client, task, "agree")
    assert (waiting.kind, waiting.waiting_for) == ("approval", "a person's approval")
    return task


def refused(text: str):
    """A Conflict with exactly this text."""

    @asynccontextmanager
    async def expected() -> AsyncIterator[None]:
        with pytest.raises(Conflict) as error:
            yield
        assert str(error.value) == text

    return expected()


async def test_an_approved_step_goes_on_with_who_said_so_as_its_result(world, client):
    task = await at_agreement(client)
    assert (await client.status(task)).actions == ["approve", "reject", "cancel"]
    await client.approve(task, "agree", by="ann", reason="fine")
    view = await ended(client, task)
    assert view.status == "succeeded"
    assert view.results["agree"] == {"approved": True, "by": "ann", "reason": "fine"}
    assert world.log(task) == ["a", "b"]


async def test_a_rejected_step_turns_its_task_around(world, client):
    task = await at_agreement(client)
    await client.reject(task, "agree", by="ann", reason="too much")
    view = await ended(client, task)
    assert (view.status, view.reason) == (
        "compensated",
        "step 'agree': Rejected: too much",
    )
    assert world.log(task) == ["a", "undo a"]


async def test_the_same_word_again_changes_nothing_and_a_contrary_one_is_refused(client):
    yes, no = await asyncio.gather(at_agreement(client), at_agreement(client))
    await client.approve(yes, "agree", by="ann")
    await client.reject(no, "agree", by="ann")
    approved, rejected = await ended(client, yes), await ended(client, no)
    assert (await client.approve(yes, "agree", by="bob")).version == approved.version
    assert (await client.reject(no, "agree", by="bob")).version == rejected.version
    async with refused("step 'agree' does not wait for an approval; it is completed"):
        await client.reject(yes, "agree")
    async with refused("step 'agree' does not wait for an approval; it is failed"):
        await client.approve(no, "agree")


async def test_an_approval_that_nobody_gives_in_time_ends_by_its_default(world, client):
    fails, approves, rejects = await asyncio.gather(
        *(ran(client, f"timed-{name}") for name in ("none", "approve", "reject"))
    )
    assert (fails.status, fails.reason) == (
        "compensated",
        "step 'agree': Timeout.schedule_to_close: no answer within schedule_to_close",
    )
    assert approves.status == "succeeded"
    assert approves.results["agree"] == {"approved": True, "by": "", "reason": ""}
    assert (rejects.status, rejects.reason) == (
        "compensated",
        "step 'agree': Rejected: rejected by default",
    )
    assert world.log(rejects.task) == ["a", "undo a"]


async def test_a_task_can_be_cancelled_while_it_waits_for_a_person(world, client):
    task = await at_agreement(client)
    await client.cancel(task, "never mind", by="ann")
    view = await ended(client, task)
    assert (view.status, view.reason) == ("compensated", "never mind")
    assert world.log(task) == ["a", "undo a"]
    async with refused("step 'agree' does not wait for an approval; it is failed"):
        await client.approve(task, "agree")


async def test_a_word_on_what_is_no_approval_or_did_not_begin_is_refused(client):
    task = await begun(client, "agreed", {"a": "hold"})
    await at(client, task, "a")
    async with refused("step 'agree' does not wait for an approval; it is waiting"):
        await client.approve(task, "agree")
    async with refused("step 'a' is not of kind approval; those are: agree"):
        await client.approve(task, "a")
    with pytest.raises(InvalidInput, match="step: name the step, or the invocation, that waits"):
        await client.approve(task)
    with pytest.raises(NotFound, match="asked for no call"):
        await client.approve(task, invocation=new_task_id(), by="ann")
    await client.cancel(task)
    await ended(client, task)


async def test_a_signal_is_the_result_of_the_step_that_waits_for_it(world, client):
    task = await begun(client, "paid")
    assert (await at(client, task, "paid")).waiting_for == "signal 'paid'"
    await client.signal(task, "paid", {"amount": 5}, by="bank")
    view = await ended(client, task)
    assert (view.status, view.results["paid"]) == ("succeeded", {"amount": 5})
    assert world.log(task) == ["a", "b"]


async def test_a_signal_that_comes_early_is_kept(world, client):
    task = await begun(client, "paid", {"a": "hold"})
    await at(client, task, "a")
    await client.signal(task, "paid", 7)
    world.office.held[task].set()
    assert (await ended(client, task)).results["paid"] == 7


async def test_signals_are_taken_in_their_order_and_one_id_counts_once(client):
    task = await begun(client, "twice")
    for _ in range(2):
        await client.signal(task, "tick", 1, id="one")
    assert (await at(client, task, "second")).status == "scheduled"
    await client.signal(task, "tick", 2, id="two")
    view = await ended(client, task)
    assert view.results == {"first": 1, "second": 2}
    early = await begun(client, "paid", {"a": "reject"})
    assert (await client.signal(view.task, "tick", 1, id="one")).version == view.version
    await ended(client, early)


async def test_a_signal_that_nothing_waits_for_is_refused(client):
    task = await begun(client, "paid")
    async with refused("no step waits for a signal 'payed'; awaited are: paid"):
        await client.signal(task, "payed")
    await client.signal(task, "paid")
    await ended(client, task)
    async with refused("the task is succeeded; no signal reaches it any more"):
        await client.signal(task, "paid")
    with pytest.raises(InvalidInput, match="NUL"):
        await client.signal(task, "pa\0id")


async def test_what_a_person_says_is_taken_up_to_a_certain_length(client):
    """It is kept in the task's state, with all signals that came early, and in its history."""
    task = await begun(client, "paid")
    with pytest.raises(InvalidInput, match="payload: 262146 bytes, more than 262144; keep it else"):
        await client.signal(task, "paid", "x" * 262_144)
    for said in ({"by": "x" * 201}, {"reason": "x" * 2_001}):
        with pytest.raises(InvalidInput, match="at most 200 and 2000 characters are taken"):
            await client.cancel(task, **said)
    await client.signal(task, "paid", "x" * 262_142)
    await ended(client, task)


async def test_a_signal_that_does_not_come_in_time_fails_the_step(world, client):
    view = await ran(client, "late")
    assert (view.status, view.reason) == (
        "compensated",
        "step 'paid': Timeout.schedule_to_close: no answer within schedule_to_close",
    )
    assert world.log(view.task) == ["a", "undo a"]


async def test_a_step_whose_condition_is_false_is_skipped_and_what_follows_goes_on(world, client):
    small, large = await asyncio.gather(
        ran(client, "large", {"total": 5}), ran(client, "large", {"total": 501})
    )
    assert [step.status for step in small.steps] == ["completed", "skipped", "completed"]
    assert world.log(small.task) == ["a", "c"]
    assert world.log(large.task) == ["a", "b", "c"]


async def test_a_condition_that_cannot_be_told_fails_its_step(world, client):
    missing, odd = await asyncio.gather(ran(client, "missing"), ran(client, "odd", {"total": 5}))
    assert missing.status == odd.status == "compensated"
    assert missing.reason.startswith("step 'b': ConditionError: when: ")
    assert odd.reason == "step 'b': ConditionError: when: gives int, not true or false"
    assert world.log(missing.task) == ["a", "undo a"]


async def test_a_condition_that_cannot_be_read_is_refused_at_registration(client):
    bad = desk(desk(Saga("bad"), "a"), "b", "a", when="input.total >")
    with pytest.raises(InvalidInput, match=r"^step 'b': when: "):
        await client.register(bad.define())


async def test_what_a_child_came_to_is_its_steps_result(world, client):
    view = await ran(client, "family", {"y": {"gives": 7}})
    assert view.status == "succeeded", view.model_dump_json()
    assert view.results["c"] == 7
    child = child_of(view)
    assert (await client.status(child)).parent == view.task
    assert (world.log(view.task), world.log(child)) == (["a", "z"], ["x", "y"])


async def test_a_child_that_fails_turns_its_parent_around(world, client):
    view = await ran(client, "family", {"y": "reject"})
    assert (view.status, view.reason) == (
        "compensated",
        "step 'c': ChildCompensated: step 'y': Reject: as ordered",
    )
    assert world.log(child_of(view)) == ["x", "y", "undo x"]
    assert world.log(view.task) == ["a", "undo a"]


async def test_a_child_that_succeeded_is_undone_with_its_parent(world, client):
    view = await ran(client, "family", {"z": "reject"})
    assert view.status == "compensated"
    child = await client.status(child_of(view))
    assert (child.status, child.reason) == ("compensated", "its parent is undone")
    assert world.log(child.task) == ["x", "y", "undo y", "undo x"]
    assert world.log(view.task) == ["a", "z", "undo a"]


async def test_a_child_past_its_pivot_cannot_be_undone_and_a_person_must_look(world, client):
    view = await ran(client, "firm-family", {"z": "reject"})
    assert view.status == "failed_to_compensate"
    assert view.reason == (
        "step 'z': Reject: as ordered; compensation failed: step 'c': ChildRefused: "
        "the child is past its point of no return, step 'x'"
    )
    await client.settle(view.task, "c", "happened", reason="undone by phone", by="ann")
    assert (await ended(client, view.task)).status == "compensated"
    assert world.log(view.task) == ["a", "z", "undo a"]


async def test_a_child_of_a_saga_that_is_not_there_fails_its_step(client):
    view = await ran(client, "lost")
    assert (view.status, view.reason) == (
        "compensated",
        "step 'c': ChildRefused: there is no saga 'nowhere'; register it first "
        "(headway saga register)",
    )


async def test_a_saga_that_is_its_own_child_ends_where_children_are_too_deep(client):
    await registered(client, Saga("endless").child("again", "endless"))
    view = await client.run("endless", {}, timeout=60)
    assert view.status == "compensated"
    deepest = view
    for _ in range(DEPTH_MAX):
        assert deepest.steps[0].child is not None
        deepest = await client.status(deepest.steps[0].child)
    assert deepest.reason == (
        "step 'again': ChildRefused: children are nested at most 16 deep; is a saga its own child?"
    )


async def test_cancelling_a_parent_undoes_the_child_that_runs(world, client):
    task = await begun(client, "family", {"y": "hold"})
    child = (await at(client, task, "c")).child
    await at(client, child, "y")
    await client.cancel(task, "never mind")
    view = await ended(client, task)
    assert (view.status, view.reason) == ("compensated", "never mind")
    assert (await client.status(child)).status == "compensated"
    assert world.log(task) == ["a", "undo a"]
    assert "undo x" in world.log(child)


async def test_a_cancelled_parent_waits_for_a_child_that_only_goes_forward(world, client):
    task = await begun(client, "firm-family", {"x": "hold"})
    child = (await at(client, task, "c")).child
    await at(client, child, "x")
    await client.cancel(task, "never mind")
    await client.cancel(await at_agreement(client))  # by its end the child was asked, too
    try:
        assert (await client.status(task)).status == "compensating"
        assert world.log(task) == ["a"]
    finally:
        world.office.held[child].set()
    assert (await ended(client, child)).status == "succeeded"
    view = await ended(client, task)
    assert view.status == "failed_to_compensate"
    await client.settle(task, "c", "happened", by="ann")
    assert (await ended(client, task)).status == "compensated"


async def test_a_parked_child_keeps_its_parent_waiting_until_a_person_helps(world, client):
    task = await begun(client, "family", {"z": "reject", "undo y": "reject"})
    waiting = await eventually(lambda: undoing(client, task), what="the child is undone")
    child = waiting.child
    assert waiting.waiting_for == f"task {child}"
    parked = await eventually(lambda: parked_of(client, child), what="the child is parked")
    assert (parked.kind, parked.step) == ("failed_to_compensate", "y")
    assert (await client.status(task)).status == "compensating"
    await client.settle(child, "y", "happened", by="ann")
    assert (await ended(client, task)).status == "compensated"
    assert (await client.status(child)).status == "compensated"


async def undoing(client: Client, task: UUID) -> StepView | None:
    view = await client.status(task)
    return next(
        (step for step in view.steps if step.kind == "child" and step.phase != "action"), None
    )


async def parked_of(client: Client, task: UUID) -> WaitingView | None:
    page = await client.parked(limit=500)
    return next((one for one in page.waiting if one.task == task), None)


async def test_many_families_at_once_all_end(client):
    receipts = await asyncio.gather(*(client.submit("family", {}) for _ in range(150)))
    views = await asyncio.gather(*(client.result(each.task, timeout=30) for each in receipts))
    assert {view.status for view in views} == {"succeeded"}


async def test_an_agent_may_append_steps_to_its_task(world, client):
    step = {"action": "ann.do", "name": "look", "read_only": True, "input": {"n": 1}}
    undoable = {"action": "bob.do", "compensate": "bob.undo"}
    order = {"a": {"hands": [step, undoable]}}
    view = await ran(client, "plain", order)
    assert view.status == "succeeded"
    assert {step.name for step in view.steps} == {"a", "b", "look", "bob-do-1"}
    assert sorted(world.log(view.task)[1:3]) == ["bob-do-1", "look"]
    assert world.log(view.task)[3] == "b"
    view = await ran(client, "plain", {**order, "b": "reject"})
    assert view.status == "compensated"
    assert world.log(view.task)[-2:] == ["undo bob-do-1", "undo a"]


async def test_agents_that_only_hand_a_task_to_and_fro_are_stopped(world, client):
    view = await ran(client, "talk", {"each": {"passes": ["ann", "bob"]}})
    assert view.status == "parked"
    assert view.reason.startswith("hand-offs go round in a loop: the cycle 'bob.do#")
    assert view.reason.endswith(" 5 times")
    assert len(world.log(view.task)) == 10
    await client.cancel(view.task)
    assert (await ended(client, view.task)).status == "compensated"


async def test_a_hand_off_that_the_manifest_does_not_allow_parks_the_task(world, client):
    order = {"a": {"hands": [{"action": "bob.do", "read_only": True}]}}
    few = Manifest(max_steps=2)
    other, more = await asyncio.gather(
        ran(client, "plain", order, manifest=Manifest(agents=["desk"])),
        ran(client, "plain", order, manifest=few),
    )
    assert (other.status, other.reason) == (
        "parked",
        "step 'a' hands off, refused: the manifest does not allow agent 'bob'",
    )
    assert (more.status, more.reason) == (
        "parked",
        "step 'a' hands off, refused: the manifest allows 2 steps; there would be 3",
    )
    assert more.manifest == few
    await client.resume(other.task, by="ann", reason="go on without")
    await client.cancel(more.task, by="ann")
    assert (await ended(client, other.task)).status == "succeeded"
    assert world.log(other.task) == ["a", "b"]
    assert (await ended(client, more.task)).status == "compensated"
    assert world.log(more.task) == ["a", "undo a"]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"agents": ["ann", "bob"]}, "manifest: saga 'plain' needs agent 'desk' as well"),
        ({"max_steps": 1}, "manifest: saga 'plain' has 2 steps, more than max_steps 1"),
        ({"acceptance": {"type": "nothing"}}, "manifest: acceptance"),
    ],
)
async def test_a_saga_that_cannot_run_within_a_manifest_is_refused(client, manifest, words):
    with pytest.raises(InvalidInput, match=f"^{words}"):
        await client.submit("plain", {}, manifest=Manifest(**manifest))


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=0.5)


async def test_how_far_a_handler_is_can_be_seen(world, client):
    task = await begun(client, "plain", {"a": {"says": {"read": 3}}})

    async def told() -> bool:
        [step, _] = (await client.status(task)).steps
        return step.progress == {"read": 3}

    await eventually(told, what="its progress is told")
    world.office.held[task].set()
    assert (await ended(client, task)).status == "succeeded"


async def test_a_task_is_given_up_at_its_deadline(world, client):
    task = await begun(client, "past", {"b": "hold"}, manifest=Manifest(deadline=soon()))
    waiting, running = await asyncio.gather(
        ran(client, "agreed", manifest=Manifest(deadline=soon())),
        ran(client, "plain", {"b": "hold"}, manifest=Manifest(deadline=soon())),
    )
    assert (waiting.status, waiting.reason) == ("compensated", "the deadline passed")
    assert world.log(waiting.task) == ["a", "undo a"]
    assert (running.status, running.reason) == ("compensated", "the deadline passed")
    late = "the deadline passed beyond the point of no return"
    await eventually(lambda: has_reason(client, task, late))
    world.office.held[task].set()  # what runs may end, but nothing new begins
    past = await ended(client, task)
    assert (past.status, past.reason) == ("parked", late)
    await client.resume(task, by="ann")
    assert (await ended(client, task)).status == "succeeded"


async def has_reason(client: Client, task: UUID, reason: str) -> bool:
    return (await client.status(task)).reason == reason


WANTED = {"type": "object", "required": ["id"]}


async def test_an_output_that_is_not_accepted_parks_the_task_until_a_person_takes_it(client):
    manifest = Manifest(acceptance=WANTED)
    good = await ran(client, "plain", {"b": {"gives": {"id": 1}}}, manifest=manifest)
    assert good.status == "succeeded"
    view = await ran(client, "plain", {"b": {"gives": {}}}, manifest=manifest)
    assert (view.status, view.actions) == ("parked", ["resume", "cancel"])
    listed = await parked_of(client, view.task)
    assert (listed.step, listed.actions) == ("b", ["retry", "resume", "cancel"])
    await client.retry(view.task, "b", by="ann", reason="think again")
    view = await ended(client, view.task)
    assert view.reason == 'the output is not accepted: output: "id" is a required property'
    assert (await client.resume(view.task, by="ann", reason="good enough")).status == "succeeded"


async def test_an_output_that_is_not_accepted_can_undo_the_task(world, client):
    manifest = Manifest(acceptance=WANTED, on_rejection="compensate")
    view = await ran(client, "plain", {"b": {"gives": 5}}, manifest=manifest)
    assert view.status == "compensated"
    assert view.reason.startswith("the output is not accepted: output: ")
    assert world.log(view.task) == ["a", "b", "undo b", "undo a"]


async def test_an_output_that_is_not_accepted_is_asked_for_again_with_the_reason(world, client):
    manifest = Manifest(acceptance=WANTED, on_rejection="retry")
    better, never = await asyncio.gather(
        ran(client, "plain", {"b": {"better": {"id": 1}}}, manifest=manifest),
        ran(client, "plain", {"b": {"gives": 5}}, manifest=manifest),
    )
    assert (better.status, better.results["b"]) == ("succeeded", {"id": 1})
    assert world.log(better.task) == ["a", "b", "b"]
    first, _, again = world.office.told[better.task]
    assert first == ""
    assert again.startswith("the output is not accepted: output: ")
    assert never.status == "parked"
    assert world.log(never.task) == ["a", "b", "b", "b", "b"]


async def test_all_that_waits_for_a_person_is_in_one_list_with_what_is_open(client):
    agreed = await at_agreement(client)
    held, failed, unsettled = await asyncio.gather(
        ran(client, "talk", {"each": {"passes": ["ann", "bob"]}}),
        ran(client, "plain", {"b": "reject", "undo a": "reject"}),
        ran(client, "plain", {"a": "unsettled"}),
    )
    page = await client.parked()
    mine = {agreed, held.task, failed.task, unsettled.task}
    listed = {(one.task, one.kind): one for one in page.waiting if one.task in mine}
    assert {key: (one.step, one.actions) for key, one in listed.items()} == {
        (agreed, "approval"): ("agree", ["approve", "reject"]),
        (held.task, "parked"): ("bob-do-5", ["resume", "cancel"]),
        (failed.task, "failed_to_compensate"): ("a", ["retry", "resume", "settle"]),
        (unsettled.task, "parked"): ("a", ["retry", "resume", "settle", "cancel"]),
        (unsettled.task, "unsettled"): ("a", ["settle", "cancel"]),
    }
    assert listed[agreed, "approval"].reason == "step 'agree' waits for a person's approval"
    assert listed[failed.task, "failed_to_compensate"].reason == failed.reason
    call = listed[unsettled.task, "unsettled"]
    assert (call.key, call.tool, call.phase, call.details) == (
        "pay#1",
        "pay",
        "action",
        {"amount": 5},
    )
    assert all(one.context for one in listed.values())
    await client.approve(agreed, "agree")
    await ended(client, agreed)


async def test_the_list_is_read_page_by_page_and_by_saga(client):
    tasks = [await at_agreement(client) for _ in range(3)]
    whole = await client.parked(saga="agreed", limit=500)
    assert {one.saga for one in whole.waiting} == {"agreed"}
    found, cursor = [], None
    while True:
        page = await client.parked(saga="agreed", limit=2, cursor=cursor)
        found += page.waiting
        cursor = page.cursor
        if cursor is None:
            break
    assert found == whole.waiting
    assert [one.task for one in found][:3] == tasks[::-1]
    for task in tasks:
        await client.approve(task, "agree")
        await ended(client, task)
    left = await client.parked(saga="agreed", limit=500)
    assert not {one.task for one in left.waiting} & set(tasks)


async def test_a_call_of_which_nobody_knows_is_settled_by_a_person_and_its_task_goes_on(
    world, client
):
    view = await ran(client, "plain", {"a": "unsettled"})
    assert view.status == "parked"
    assert view.reason == "step 'a': Unsettled: nobody can tell whether 'pay#1' happened"
    settled = await client.settle_call(
        view.task, "a", "pay#1", "happened", {"receipt": 1}, "called the bank", by="ann"
    )
    assert settled.seq == 2
    entries = [entry async for entry in client.journal(view.task, "a")]
    assert [(entry.kind, entry.by, entry.reason) for entry in entries] == [
        ("intent", "", ""),
        ("result", "ann", "called the bank"),
    ]
    await client.resume(view.task, by="ann", reason="settled")
    assert (await ended(client, view.task)).status == "succeeded"
    acts = [entry async for entry in client.audit(view.task)]
    assert [(act.kind, act.who, act.reason) for act in acts if act.who == "ann"] == [
        ("result", "ann", "called the bank"),
        ("TaskResumed", "ann", "settled"),
    ]


async def test_what_waits_outlives_a_coordinator_that_dies_while_a_child_begins(world, client):
    agreed = await at_agreement(client)
    asleep, paid = await begun(client, "asleep"), await begun(client, "paid")
    nap = await at(client, asleep, "nap")
    assert nap.waiting_for.startswith("the time, until ")
    await at(client, paid, "paid")
    await world.coordinator.kill()
    deadly = await world.start("--die-at", "child")
    family = await client.publish("family", {})
    await deadly.ended()
    await world.start()
    views = await asyncio.gather(
        ended(client, family),
        ended(client, asleep),
        after(client.signal(paid, "paid"), ended(client, paid)),
        after(client.approve(agreed, "agree"), ended(client, agreed)),
    )
    assert [view.status for view in views] == ["succeeded"] * 4
    assert world.log(asleep) == ["a", "b"]
    assert len(world.log(child_of(views[0]))) == 2


async def after(first, then):
    await first
    return await then


def child_of(view: TaskView) -> UUID:
    [child] = [step.child for step in view.steps if step.child]
    return child


def tour(version: int, *stops: str) -> Saga:
    """A saga of one agent, whose steps come one after another."""
    saga, before = Saga("tour", version=version), ()
    for stop in stops:
        saga.step(stop, "desk.do", compensate="desk.undo", after=before)
        before = (stop,)
    return saga


async def at_the_second_stop(world: World, client: Client) -> UUID:
    """A task of version 1 whose first step is done and whose second one is held."""
    for version, *stops in ((1, "a", "b", "d"), (2, "a", "b", "c", "d"), (3, "start", "a", "b")):
        await registered(client, tour(version, *stops))
    task = await begun(client, "tour", {"b": "hold"}, version=1)
    await eventually(lambda: world.log(task) == ["a", "b"], what="step b is held")
    return task


async def test_a_task_is_moved_to_a_version_that_its_history_fits(world, client):
    task = await at_the_second_stop(world, client)
    looked = await client.move(task, 2, dry_run=True)
    assert (looked.saga_version, len(looked.steps)) == (1, 3)
    moved = await client.move(task, 2, reason="c was missing", by="eve")
    assert moved.saga_version == 2
    again = await client.move(task, 2, reason="c was missing", by="eve")
    assert again.version == moved.version
    world.office.held[task].set()
    assert (await ended(client, task)).status == "succeeded"
    assert world.log(task) == ["a", "b", "c", "d"]
    history = await client.history(task)
    told = [entry.data for entry in history if entry.type == "TaskMoved"]
    assert told == [{"origin": 1, "target": 2, "by": "eve", "reason": "c was missing"}]
    acts = [entry async for entry in client.audit(task) if entry.kind == "TaskMoved"]
    assert [(act.who, act.what, act.reason) for act in acts] == [
        ("eve", "version 2", "c was missing")
    ]


async def test_a_task_is_not_moved_to_a_version_that_its_history_does_not_fit(world, client):
    task = await at_the_second_stop(world, client)
    why = (
        "the task cannot be moved to version 3: step 'a' was begun before step 'start', which it "
        "comes after in version 3"
    )
    async with refused(why):
        await client.move(task, 3)
    async with refused(why):
        await client.move(task, 3, dry_run=True)
    with pytest.raises(NotFound) as error:
        await client.move(task, 9)
    assert str(error.value) == (
        "there is no version 9 of saga 'tour'; register it first (headway saga register)"
    )
    world.office.held[task].set()
    assert (await ended(client, task)).status == "succeeded"
    async with refused(
        "the task cannot be moved to version 2: the task is succeeded; only one that goes forward "
        "can be moved"
    ):
        await client.move(task, 2)


async def test_old_tasks_go_on_under_their_version_beside_new_ones(world, client):
    old = await at_the_second_stop(world, client)
    new = await begun(client, "tour", version=2)
    assert (await ended(client, new)).saga_version == 2
    assert world.log(new) == ["a", "b", "c", "d"]
    world.office.held[old].set()
    assert (await ended(client, old)).saga_version == 1
    assert world.log(old) == ["a", "b", "d"]
