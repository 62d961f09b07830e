"""Gates, through real servers and coordinators. The tests play the agent that calls `pay`."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from harness.coordination import client_of, coordinators, registered
from harness.eventually import eventually
from headway.agents import gates as g
from headway.agents.api import Api
from headway.agents.client import Client
from headway.agents.connection import connect
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    NewEntry,
)
from headway.agents.errors import Halted, NotFound, Refused, Superseded
from headway.agents.identity import invocation_id, new_task_id, operation_id
from headway.agents.manifest import Manifest
from headway.agents.messages import (
    COMPLETED,
    FAILED,
    Event,
    EventData,
    FailureData,
    encode,
)
from headway.agents.subjects import event_subject
from headway.agents.views import (
    ClaimReply,
    ClaimRequest,
    WaitingPage,
    WaitingRequest,
    WaitingView,
)
from headway.coordinator.caller import Caller
from headway.coordinator.clock import now_ms
from headway.coordinator.errors import Refusal
from headway.coordinator.gates import Gates
from headway.coordinator.signing import Signing
from headway.coordinator.store import Store
from headway.sagas import Retry, Saga

pytestmark = pytest.mark.asyncio(loop_scope="module")

ARGUMENTS = {"order": "A-17", "amount": 120}
DIGEST = g.arguments_digest([], ARGUMENTS)
OTHER_DIGEST = g.arguments_digest([], ARGUMENTS | {"amount": 121})
PATIENT = Retry(initial_interval=60.0)
REFUND = Saga("refund").step(
    "pay", "shop.pay", compensate="shop.unpay", retry=PATIENT, compensation_retry=PATIENT
)
REFUND.step("look", "shop.look", read_only=True, retry=PATIENT)


@dataclass
class System:
    client: Client
    nats_url: str
    postgres_url: str

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:
        connection = await asyncpg.connect(self.postgres_url)
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await connection.close()

    async def agent(self, step: str = "pay", **submission: Any) -> Agent:
        """A task of which we hold the outstanding attempt of `step`, and its journal."""
        receipt = await self.client.submit("refund", {}, **submission)
        agent = Agent(self, receipt.task, step)
        await agent.open()
        return agent


class Agent:
    """An attempt of a step, as its worker would carry it out."""

    def __init__(self, system: System, task: UUID, step: str = "pay") -> None:
        self.system = system
        self.client = system.client
        self.connection = system.client.connection
        self.api = Api(self.connection, agent="shop")
        self.of = {"task": task, "step": step, "phase": "action"}
        self.attempt = 1
        self.epoch = 0
        self.journal_epoch = 0
        self.seq = 0

    @property
    def task(self) -> UUID:
        return self.of["task"]

    async def open(self) -> None:
        opening = JournalOpen(**self.of, attempt=self.attempt, epoch=self.epoch, worker="w")
        opened = await self.api.ask("journal.open", opening, JournalOpened)
        self.journal_epoch = opened.epoch
        self.seq = opened.entries[-1].seq if opened.entries else 0

    async def append(self, kind: str, key: str = "pay#1", **fields: Any) -> None:
        entry = NewEntry(kind=kind, key=key, **fields)
        appending = JournalAppend(
            **self.of, epoch=self.journal_epoch, seq=self.seq + 1, entries=[entry]
        )
        self.seq = (await self.api.ask("journal.append", appending, JournalAppended)).seq

    async def intend(self, key: str = "pay#1", tool: str = "pay") -> None:
        await self.append(
            "intent", key, tool=tool, arguments_digest=DIGEST, sensitive=True, data=ARGUMENTS
        )

    def request(self, key: str = "pay#1", **changes: Any) -> g.GateRequest:
        operation = operation_id(self.task, self.of["step"], self.of["phase"])
        fields = {
            **self.of,
            "attempt": self.attempt,
            "epoch": self.epoch,
            "journal_epoch": self.journal_epoch,
            "invocation": invocation_id(operation, key),
            "key": key,
            "tool": "pay",
            "arguments_digest": DIGEST,
        }
        return g.GateRequest(**(fields | changes))

    async def ask(self, **changes: Any) -> g.GateReply:
        return await self.api.ask("gate.request", self.request(**changes), g.GateReply)

    async def token(self, **changes: Any) -> str:
        reply = await self.ask(**changes)
        assert reply.status == "granted"
        return reply.token

    async def decide(self, decision: str, reason: str = "", by: str = "ann") -> g.GateView:
        deciding = g.GateDecide(
            task=self.task,
            invocation=self.request().invocation,
            decision=decision,
            by=by,
            reason=reason,
        )
        return await self.client.ask("gate.decide", deciding, g.GateView, repeatable=False)

    async def claim(self, step: str | None = None, epoch: int = 0) -> None:
        """A worker takes an attempt over: the task moves on by one version."""
        of = self.of | ({"step": step} if step else {})
        claim = ClaimRequest(**of, attempt=self.attempt, epoch=epoch, delivery=2, worker="w2")
        reply = await self.api.ask("claim", claim, ClaimReply)
        assert reply.granted, reply.reason
        if step is None:
            self.epoch = reply.epoch

    async def report(self, kind: str, data: EventData) -> None:
        event = Event(
            id=str(uuid4()),
            task=str(self.task),
            step=self.of["step"],
            phase=self.of["phase"],
            attempt=self.attempt,
            epoch=self.epoch,
            type=kind,
            source="/test",
            data=data,
        )
        subject = event_subject("shop", str(self.task))
        assert await self.connection.wire.store_all([(subject, encode(event))]) == [None]

    async def becomes(self, status: str) -> None:
        async def is_it() -> bool:
            return (await self.client.status(self.task)).status == status

        await eventually(is_it, what=f"the task is {status}")

    async def audit(self) -> list[tuple[str, str, str, str]]:
        """Kind, who, what and reason of all that happened at gates, in the order in which it was
        written: the clocks of two coordinators may differ by a millisecond."""
        rows = await self.system.fetch(
            "SELECT kind, who, what, reason FROM headway.audit"
            " WHERE task_id = $1 AND kind LIKE 'gate-%' ORDER BY id",
            self.task,
        )
        return [tuple(row) for row in rows]


@asynccontextmanager
async def running(nats_url: str, postgres_url: str, count: int) -> AsyncIterator[System]:
    async with coordinators(nats_url, postgres_url, count), client_of(nats_url) as client:
        await registered(client, REFUND)
        yield System(client, nats_url, postgres_url)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(module_servers):
    """Two coordinators, for all tests of this module."""
    nats, url, _ = module_servers
    async with running(nats.url, url, 2) as system:
        yield system


@pytest_asyncio.fixture(loop_scope="module")
async def agent(system):
    """An agent that is about to call `pay`."""
    agent = await system.agent()
    await agent.intend()
    return agent


def redeem(agent: Agent, token: str, *, digest: str = DIGEST, tool: str = "pay"):
    return g.redeem(agent.connection, token, tool=tool, arguments_digest=digest, agent="shop")


async def refusal(work: Any) -> tuple[int, str, str]:
    """Code, kind and text of the refusal that `work` ends with."""
    with pytest.raises(Refused) as refused:
        await work
    return refused.value.code, refused.value.kind, refused.value.reason


async def test_a_token_is_given_used_and_verified_without_the_network(agent):
    token = await agent.token()
    keys = await g.public_keys(agent.connection)
    gate = g.verify(token, keys, tool="pay", arguments_digest=DIGEST)
    assert (gate.task, gate.step, gate.attempt) == (agent.task, "pay", 1)
    assert gate.version == (await agent.client.status(agent.task)).version
    await redeem(agent, token)
    assert await agent.audit() == [
        ("gate-issued", "shop", "pay", ""),
        ("gate-redeemed", "", "pay", ""),
    ]


async def test_a_replayed_token_is_refused(agent):
    token = await agent.token()
    first = await redeem(agent, token)
    when = first.redeemed_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    text = f"the gate token was redeemed before, at {when}"
    assert await refusal(redeem(agent, token)) == (409, "gate-redeemed", text)
    assert (await agent.audit())[-1] == ("gate-refused", "", "pay", text)


async def test_the_same_use_asked_again_is_answered_as_the_first_time(agent, system):
    using = g.GateRedeem(
        token=await agent.token(), tool="pay", arguments_digest=DIGEST, use=uuid4()
    )
    first = await agent.client.ask("gate.redeem", using, g.GateRedeemed)
    again = await agent.client.ask("gate.redeem", using, g.GateRedeemed)
    async with gates_at(system, hours=1) as much_later:
        late = await much_later.redeem(using, Caller("shop"))
    assert first == again == late


@asynccontextmanager
async def gates_at(system: System, hours: float) -> AsyncIterator[Gates]:
    """The gates of a coordinator whose clock is ahead."""
    store = Store(system.postgres_url)
    clock = lambda: now_ms() + round(hours * 3_600_000)  # noqa: E731
    yield Gates(store, Signing(store, clock), system.client.connection.wire, clock)
    await store.close()


async def test_a_late_token_is_refused(agent, system):
    token = await agent.token()
    claims = jwt.decode(token, options={"verify_signature": False})
    using = g.GateRedeem(token=token, tool="pay", arguments_digest=DIGEST, use=uuid4())
    async with gates_at(system, hours=1) as late:
        with pytest.raises(Refusal) as refused:
            await late.redeem(using, Caller("shop"))
    assert (refused.value.code, refused.value.kind) == (410, "gate-expired")
    assert str(refused.value).startswith("the gate token expired at 2")
    assert claims["exp"] - claims["iat"] == g.TOKEN_LIFETIME_S == 30
    await redeem(agent, token)  # in time


async def test_forged_tokens_are_refused(agent):
    token = await agent.token()
    head, claims = (
        jwt.get_unverified_header(token),
        jwt.decode(token, options={"verify_signature": False}),
    )
    ours = {"kid": head["kid"]}
    stranger = Ed25519PrivateKey.generate()
    damaged = (401, "gate-forged", "the gate token is forged or damaged")
    for forged in (
        jwt.encode(claims, stranger, algorithm="EdDSA", headers=ours),
        jwt.encode(claims, None, algorithm="none", headers=ours),
        token[:-6] + ("A" if token[-6] != "A" else "B") + token[-5:],
        "not a token",
    ):
        assert await refusal(redeem(agent, forged)) == damaged
    unknown = jwt.encode(claims, stranger, algorithm="EdDSA", headers={"kid": "another"})
    text = "the gate token is signed with a key that is not ours"
    assert await refusal(redeem(agent, unknown)) == (401, "gate-forged", text)
    await redeem(agent, token)


async def test_a_token_for_another_tool_is_refused(agent):
    token = await agent.token()
    text = "the gate token is for tool 'pay', not for 'mail'"
    assert await refusal(redeem(agent, token, tool="mail")) == (403, "gate-other-tool", text)
    assert (await agent.audit())[-1] == ("gate-refused", "", "pay", text)
    await redeem(agent, token)


async def test_a_token_for_other_arguments_is_refused(agent):
    token = await agent.token()
    text = (
        f"the gate token is for a call of 'pay' with other arguments: digest {DIGEST[:12]}…, "
        f"not {OTHER_DIGEST[:12]}…"
    )
    refused = await refusal(redeem(agent, token, digest=OTHER_DIGEST))
    assert refused == (403, "gate-other-arguments", text)
    await redeem(agent, token)


async def test_a_token_is_refused_once_its_task_has_moved_on_and_a_new_one_is_good(agent):
    token = await agent.token()
    before = (await agent.client.status(agent.task)).version
    await agent.claim("look")
    assert await refusal(redeem(agent, token)) == (
        409,
        "gate-stale",
        f"the gate token is for version {before} of the task, which is at version {before + 1} "
        "now; ask for a new one",
    )
    await redeem(agent, await agent.token())


async def test_only_the_newest_token_of_a_call_is_good(agent):
    older, newer = await agent.token(), await agent.token()
    text = "a newer gate token was given for this call; only that one is good"
    assert await refusal(redeem(agent, older)) == (409, "gate-stale", text)
    await redeem(agent, newer)


async def test_a_token_is_refused_once_its_call_is_settled_in_the_journal(agent):
    token = await agent.token()
    await agent.append("failure", data={"type": "Timeout", "message": "no answer"})
    text = "the call of 'pay' is settled in the journal"
    assert await refusal(redeem(agent, token)) == (409, "gate-closed", text)
    text = "the journal has no unsettled intent of call 'pay#1'"
    assert await refusal(agent.ask()) == (409, "gate-closed", text)


async def test_of_many_who_redeem_at_once_one_does(agent):
    token = await agent.token()
    outcomes = await asyncio.gather(
        *(redeem(agent, token) for _ in range(12)), return_exceptions=True
    )
    refused = [each for each in outcomes if isinstance(each, g.GateRefused)]
    assert [each.kind for each in refused] == ["gate-redeemed"] * 11
    assert [kind for kind, *_ in await agent.audit()].count("gate-redeemed") == 1


async def test_a_token_is_used_before_its_task_is_cancelled_or_never(system):
    """Seeded: who is first is left to chance; the history and the record must agree on it."""
    seed = random.SystemRandom().randrange(1 << 32)
    sys.stdout.write(f"seed: {seed}\n")
    rng = random.Random(seed)

    async def cancel_later(agent: Agent) -> None:
        await asyncio.sleep(rng.uniform(0.0, 0.01))
        await agent.client.cancel(agent.task, "changed our mind")

    for _ in range(5):
        agent = await system.agent()
        await agent.intend()
        token = await agent.token()
        outcome, _ = await asyncio.gather(
            redeem(agent, token), cancel_later(agent), return_exceptions=True
        )
        if isinstance(outcome, g.GateRefused):
            assert outcome.kind == "gate-closed"
        else:
            assert isinstance(outcome, g.GateRedeemed)


async def test_a_task_that_is_undone_wants_no_call_and_takes_no_token(agent):
    token = await agent.token()
    await agent.client.cancel(agent.task, "changed our mind", by="ann")
    await agent.becomes("compensated")
    text = "the task wants no call of step 'pay' now: the task is compensated"
    assert await refusal(redeem(agent, token)) == (409, "gate-closed", text)
    assert await refusal(agent.ask()) == (409, "gate-closed", text)
    with pytest.raises(g.GateRefused) as refused:
        await g.token_for(agent.connection, agent.request(), agent="shop")
    assert refused.value.kind == g.CLOSED


async def test_a_parked_task_wants_no_call_and_takes_no_token(agent):
    token = await agent.token()
    held = FailureData("Unsettled", "call 'pay#1' may have happened", hold=True)
    await agent.report(FAILED, EventData(error=held))
    other = Agent(agent.system, agent.task, "look")
    await other.report(COMPLETED, EventData(result=1))
    await agent.becomes("parked")
    text = "the task wants no call of step 'pay' now: the task is parked"
    assert await refusal(redeem(agent, token)) == (409, "gate-closed", text)
    assert await refusal(agent.ask()) == (409, "gate-closed", text)


async def test_a_compensation_gets_tokens_of_its_own(system):
    agent = await system.agent()
    await agent.report(COMPLETED, EventData(result=1))
    other = Agent(system, agent.task, "look")
    no = FailureData("No", "no", retryable=False, noeffect=True)
    await other.report(FAILED, EventData(error=no))
    await agent.becomes("compensating")
    agent.of["phase"] = "compensation"
    await agent.open()
    await agent.intend()
    await redeem(agent, await agent.token())


async def test_whoever_was_replaced_gets_no_token_and_whoever_replaced_it_does(agent):
    token, before = await agent.token(), agent.request()
    await agent.claim()
    text = "attempt 1 (epoch 0) of step 'pay' is not the one that the task waits for"
    assert await refusal(agent.ask(epoch=0)) == (409, "superseded", text)
    with pytest.raises(Superseded, match="is not the one that the task waits for"):
        await g.token_for(agent.connection, before, agent="shop")
    await agent.open()
    assert await refusal(agent.ask(journal_epoch=1)) == (
        409,
        "superseded",
        "the journal was opened again: its epoch is 2",
    )
    assert (await refusal(redeem(agent, token)))[1] == "gate-stale"
    await redeem(agent, await agent.token())


async def test_a_tool_that_the_manifest_forbids_gets_no_token(system):
    agent = await system.agent(manifest=Manifest(tools=["look"]))
    text = "tool 'pay' is not one of the 1 that the task's manifest allows"
    assert await refusal(agent.ask()) == (403, "tool-not-allowed", text)
    with pytest.raises(Halted) as halted:
        await g.token_for(agent.connection, agent.request(), agent="shop")
    assert (halted.value.kind, halted.value.reason) == ("ToolNotAllowed", text)
    assert (await agent.audit())[0] == ("gate-refused", "shop", "pay", text)


async def test_there_is_no_gate_of_a_task_that_does_not_exist(system):
    task = uuid4()
    nobody = Agent(system, task)
    assert await refusal(nobody.ask(journal_epoch=1)) == (
        404,
        "about:blank",
        f"there is no task {task}",
    )
    with pytest.raises(NotFound, match=f"task {task} asked for no call"):
        await nobody.decide("approved")


async def test_a_call_waits_for_a_person_and_goes_on_as_soon_as_one_approves(agent, system):
    waiting = asyncio.create_task(agent.ask(requires_approval=True, wait_s=5.0))
    view = await eventually(partial(shown, agent), what="the call is listed")
    assert (view.kind, view.saga, view.step, view.tool) == ("gate", "refund", "pay", "pay")
    assert view.reason == "a call of tool 'pay' waits for a person's approval"
    assert view.actions == ["approve", "reject"]
    assert view.invocation == agent.request().invocation
    assert (view.details, view.context) == (ARGUMENTS, DIGEST[:16])
    assert not waiting.done()
    async with asyncio.timeout(2.5):  # long before it is asked again
        decided = await agent.decide("approved", "a good customer")
        reply = await waiting
    assert (decided.status, decided.by, decided.reason) == ("approved", "ann", "a good customer")
    assert reply.status == "granted"
    await redeem(agent, reply.token)
    assert await agent.audit() == [
        ("gate-requested", "shop", "pay", ""),
        ("gate-approved", "ann", "pay", "a good customer"),
        ("gate-issued", "shop", "pay", ""),
        ("gate-redeemed", "", "pay", ""),
    ]
    assert await shown(agent) is None


async def shown(agent: Agent) -> WaitingView | None:
    """This agent's call in the list of all that waits for a person, if it is there."""
    page = await agent.client.ask("parked", WaitingRequest(saga="refund"), WaitingPage)
    found = next((each for each in page.waiting if each.task == agent.task), None)
    assert (await agent.client.parked(task=agent.task)).waiting == (
        [] if found is None else [found]
    )
    assert (await agent.client.parked(task=new_task_id())).waiting == []
    return found


async def test_a_call_that_is_rejected_stays_rejected_and_says_by_whom_and_why(agent):
    assert (await agent.ask(requires_approval=True)).status == "waiting"
    await agent.decide("rejected", "too much")
    reply = await agent.ask(requires_approval=True)
    assert (reply.status, reply.by, reply.reason, reply.token) == (
        "rejected",
        "ann",
        "too much",
        "",
    )
    with pytest.raises(g.GateRejected) as rejected:
        await g.token_for(agent.connection, agent.request(requires_approval=True), agent="shop")
    assert str(rejected.value) == "rejected by ann: too much"
    code, kind, text = await refusal(agent.decide("approved", by="bob"))
    assert (code, kind) == (409, "gate-decided")
    assert text.startswith("the call of 'pay' was rejected before, by ann at 2")


async def test_of_two_people_who_decide_at_once_one_does(agent):
    await agent.ask(requires_approval=True)
    outcomes = await asyncio.gather(
        *(agent.decide("approved" if n % 2 else "rejected", by=f"p{n}") for n in range(6)),
        return_exceptions=True,
    )
    [decided] = [each for each in outcomes if isinstance(each, g.GateView)]
    refused = [each for each in outcomes if isinstance(each, Refused)]
    assert len(refused) == 5
    assert {each.kind for each in refused} == {"gate-decided"}
    assert all(f"by {decided.by} at" in each.reason for each in refused)


async def test_an_approval_holds_for_the_attempt_that_comes_after(agent):
    await agent.ask(requires_approval=True)
    await agent.decide("approved")
    await agent.claim()
    await agent.open()
    await redeem(agent, await agent.token(requires_approval=True))


async def test_a_call_that_its_task_does_not_want_any_more_can_not_be_approved(agent, system):
    await agent.ask(requires_approval=True)
    await agent.client.cancel(agent.task, "changed our mind")
    await agent.becomes("compensated")
    text = "the task wants no call of step 'pay' now: the task is compensated"
    assert await refusal(agent.decide("approved")) == (409, "gate-closed", text)
    assert await shown(agent) is None


async def test_whoever_waits_for_a_person_hears_at_once_that_the_task_is_parked(system):
    agent = await system.agent()
    await agent.intend()
    other = Agent(system, agent.task, "look")
    await other.report(COMPLETED, EventData(result=1))
    asking = asyncio.create_task(agent.ask(requires_approval=True, wait_s=5.0))
    await eventually(partial(shown, agent), what="the call is listed")
    held = FailureData("Unsettled", "call 'pay#1' may have happened", hold=True)
    await agent.report(FAILED, EventData(error=held))
    async with asyncio.timeout(2.5):
        text = "the task wants no call of step 'pay' now: the task is parked"
        assert await refusal(asking) == (409, "gate-closed", text)


async def test_a_gate_is_passed_though_the_task_moves_on_in_between(agent, monkeypatch):
    ask, epochs = g.token_for, iter(range(1))

    async def token_and_then_a_change(*given: Any, **named: Any) -> str:
        token = await ask(*given, **named)
        if next(epochs, None) is not None:
            await agent.claim("look")
        return token

    monkeypatch.setattr(g, "token_for", token_and_then_a_change)
    await g.pass_gate(agent.connection, agent.request(), agent="shop")
    assert [kind for kind, *_ in await agent.audit()] == [
        "gate-issued",
        "gate-refused",
        "gate-issued",
        "gate-redeemed",
    ]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE headway.gate_events SET who = 'nobody'",
        "DELETE FROM headway.gate_events",
        "TRUNCATE headway.gate_events",
    ],
)
async def test_what_happened_at_gates_cannot_be_changed(agent, system, change):
    await agent.token()
    with pytest.raises(asyncpg.RestrictViolationError, match="it is append-only"):
        await system.fetch(change)


async def test_coordinators_that_make_the_key_at_the_same_time_use_the_same(postgres_url):
    stores = [Store(postgres_url) for _ in range(6)]
    await stores[0].open()
    keys = await asyncio.gather(*(Signing(store, now_ms).key() for store in stores))
    assert len({key.public.kid for key in keys}) == 1
    for store in stores:
        await store.close()


async def test_an_approval_is_waited_for_while_coordinators_come_and_go(
    nats_url, postgres_url, monkeypatch
):
    monkeypatch.setattr(g, "WAIT_MAX_S", 0.5)  # a coordinator that stops answers all before
    waited = asyncio.Event()
    async with await connect(nats_url, name="agent") as connection:
        async with running(nats_url, postgres_url, 1) as system:
            agent = await system.agent()
            await agent.intend()
            request = agent.request(requires_approval=True)
            token = asyncio.create_task(
                g.token_for(connection, request, agent="shop", waiting=waited.set)
            )
            await eventually(partial(shown, agent), what="the call is listed")
            await asyncio.wait_for(waited.wait(), 10.0)
        assert not token.done()
        async with running(nats_url, postgres_url, 1) as system:
            agent.client = system.client
            await agent.decide("approved")
            async with asyncio.timeout(10.0):
                await g.redeem(connection, await token, tool="pay", arguments_digest=DIGEST)
