"""Whose worker asks is what the server enforced, and it must be the agent that a step is for."""

from __future__ import annotations

from uuid import UUID, uuid4

import orjson
import pytest
from harness.coordination import registered
from harness.eventually import eventually
from harness.system import System
from headway.agents import gates as g
from headway.agents.api import Api
from headway.agents.document_views import CollectionView, Transitions
from headway.agents.documents import Documents
from headway.agents.entries import JournalAppended, JournalOpen, JournalOpened, NewEntry
from headway.agents.identity import invocation_id, operation_id
from headway.coordinator.app import Coordinator
from headway.sagas import Saga
from security.attackers import Attacker

pytestmark = pytest.mark.usefixtures("running")

DIGEST = "0" * 64
FOR_SHOP = "the action of step 'a' is for agent 'shop', not for 'mallory'"


def operation(task: UUID) -> dict[str, object]:
    return {"task": task, "step": "a", "phase": "action"}


async def opened(system: System, task: UUID) -> tuple[Api, int]:
    """The journal of step `a`, held by its agent; with an intent in it."""
    api = Api(system.client.connection, agent="shop")
    opening = JournalOpen(**operation(task), attempt=1, epoch=0, worker="w")
    epoch = (await api.ask("journal.open", opening, JournalOpened)).epoch
    intent = NewEntry(kind="intent", key="pay#1", tool="pay", arguments_digest=DIGEST)
    body = orjson.dumps(appending(task, epoch, 1, intent), default=str)
    await api.ask("journal.append", body, JournalAppended)
    return api, epoch


def appending(task: UUID, epoch: int, seq: int, entry: NewEntry) -> dict[str, object]:
    entries = [entry.model_dump(mode="json", exclude_defaults=True)]
    return {**operation(task), "epoch": epoch, "seq": seq, "entries": entries}


def gate(task: UUID, epoch: int) -> g.GateRequest:
    return g.GateRequest(
        **operation(task),
        attempt=1,
        epoch=0,
        journal_epoch=epoch,
        invocation=invocation_id(operation_id(task, "a", "action"), "pay#1"),
        key="pay#1",
        tool="pay",
        arguments_digest=DIGEST,
    )


async def test_an_agent_has_nothing_of_anothers_step(system: System, mallory: Attacker) -> None:
    task = (await system.client.submit("linear", {"number": 1})).task
    _, epoch = await opened(system, task)
    of = operation(task)
    claimed = await mallory.ask(
        "claim", {**of, "attempt": 1, "epoch": 0, "delivery": 2, "worker": "w"}
    )
    assert claimed[0] == 200
    assert orjson.loads(claimed[1]) == {
        **orjson.loads(claimed[1]),
        "granted": False,
        "reason": "agent 'mallory' answered a command of step 'a' that was for 'shop'",
    }
    opening = {**of, "attempt": 1, "epoch": 0, "worker": "w"}
    assert await mallory.ask("journal.open", opening) == (403, FOR_SHOP)
    entry = NewEntry(kind="note", data="mine")
    assert await mallory.ask("journal.append", appending(task, epoch, 2, entry)) == (403, FOR_SHOP)
    assert await mallory.ask("journal.read", of) == (403, FOR_SHOP)
    request = gate(task, epoch).model_dump(mode="json")
    assert await mallory.ask("gate.request", request) == (403, FOR_SHOP)


async def test_an_agent_takes_no_turn_that_is_anothers(
    system: System, running: list[Coordinator], mallory: Attacker
) -> None:
    await registered(system.client, Saga("own").step("a", "mallory.a", read_only=True))
    own = (await system.client.submit("own", {})).task
    task = (await system.client.submit("linear", {"number": 1})).task
    await system.client.set_limit("agent", "mallory", rate=100.0)
    await eventually(lambda: running[0]._admission.declared.is_paced("mallory"))

    async def turn(of: UUID, attempt: int) -> dict[str, object]:
        where = {**operation(of), "attempt": attempt, "epoch": 0, "delivery": 1, "worker": "w"}
        code, answer = await mallory.ask("claim", {**where, "first": True})
        assert code == 200
        found: dict[str, object] = orjson.loads(answer)
        return found

    assert (await turn(task, 2_147_483_647))["reason"] == FOR_SHOP
    assert (await turn(task, 1))["granted"] is False
    over = "this attempt is not outstanding any more"
    assert (await turn(own, 2_147_483_647))["reason"] == over
    assert (await turn(own, 1))["granted"] is True
    rows = await system.fetch("SELECT task_id, agent, attempt FROM headway.admissions")
    assert [tuple(row) for row in rows] == [(own, "mallory", 1)]
    await system.client.remove_limit("agent", "mallory")


async def test_an_agent_uses_no_gate_token_that_another_was_given(
    system: System, mallory: Attacker
) -> None:
    task = (await system.client.submit("linear", {"number": 1})).task
    api, epoch = await opened(system, task)
    token = (await api.ask("gate.request", gate(task, epoch), g.GateReply)).token
    use = {"token": token, "tool": "pay", "arguments_digest": DIGEST, "use": uuid4()}
    assert await mallory.ask("gate.redeem", use) == (403, FOR_SHOP)
    connection = system.client.connection
    await g.redeem(connection, token, tool="pay", arguments_digest=DIGEST, agent="shop")
    kinds = [(entry.kind, entry.who) async for entry in system.client.audit(task)]
    assert ("gate-refused", "mallory") in kinds


async def test_an_agent_writes_documents_in_the_name_of_its_own_steps_only(
    system: System, mallory: Attacker
) -> None:
    await registered(system.client, Saga("own").step("a", "mallory.a", read_only=True))
    theirs = (await system.client.submit("linear", {"number": 1})).task
    own = (await system.client.submit("own", {})).task
    documents = Documents(system.client.connection)
    await documents.collection("notes")

    async def put(**who: object) -> tuple[int, str]:
        write = {"collection": "notes", "key": "k", "expected": None, "body": {}}
        return await mallory.ask("document.put", {**write, **who})

    text = "the work of step 'a' is for agent 'shop', not for 'mallory'"
    assert await put(task=theirs, step="a") == (403, text)
    unsaid = "task and step: an agent writes in the name of its step"
    assert await put(by="ann") == (403, unsaid)
    nowhere = uuid4()
    assert await put(task=nowhere, step="a") == (404, f"there is no task {nowhere}")
    assert (await put(task=own, step="a"))[0] == 200
    assert (await put(task=own, step="a"))[0] == 200
    deletion = {"collection": "notes", "key": "k", "expected": None, "task": theirs, "step": "a"}
    assert await mallory.ask("document.delete", deletion) == (403, text)
    versions = await documents.history("notes", "k")
    assert [(each.by, each.task, each.step) for each in versions] == [("mallory", own, "a")] * 2


async def test_an_agent_may_make_a_collection_but_not_change_its_rules(
    system: System, mallory: Attacker
) -> None:
    rules = Transitions(field="status", initial=["new"], legal={"new": ["paid"]})
    documents = Documents(system.client.connection)
    assert (await mallory.ask("document.collection", {"name": "notes"}))[0] == 200
    made: CollectionView = await documents.collection("orders", transitions=rules)
    text = (
        "collection 'orders' has other rules, which an agent cannot change: have a person do it "
        "(headway document collection)"
    )
    assert await mallory.ask("document.collection", {"name": "orders"}) == (403, text)
    same = {"name": "orders", "transitions": rules.model_dump()}
    assert (await mallory.ask("document.collection", same))[0] == 200
    assert (await documents.collection("orders", transitions=rules)).version == made.version


async def test_the_body_of_a_request_does_not_say_who_asks(
    system: System, mallory: Attacker
) -> None:
    task = (await system.client.submit("linear", {"number": 1})).task
    opening = {**operation(task), "attempt": 1, "epoch": 0, "worker": "w", "agent": "shop"}
    code, reason = await mallory.ask("journal.open", opening)
    assert (code, "agent" in reason) == (422, True)


async def test_what_people_ask_for_is_not_to_be_had_by_agents(
    system: System, mallory: Attacker
) -> None:
    for operation_name in ("submit", "cancel", "gate.decide", "journal.settle", "audit", "list"):
        with pytest.raises(Exception, match="no responders"):
            await mallory.ask(operation_name, {})
        await mallory.publish(f"hw.api.{operation_name}")
        await eventually(lambda subject=f"hw.api.{operation_name}": subject in mallory.refused)
