"""Approvals that are guessed, and gate tokens that are used again: neither lets anything happen."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID, uuid4

import nats.errors
import orjson
import pytest
from harness.coordination import registered, working
from harness.eventually import eventually
from harness.system import System
from headway.agents import Agent, Call, Client, Context, tool
from headway.agents import gates as g
from headway.agents.errors import Conflict, NotFound, Refused
from headway.agents.identity import ACTION, invocation_id, operation_id
from headway.agents.subjects import agent_subject
from headway.coordinator.app import Coordinator
from headway.coordinator.roles import OPERATE, SUBMIT, VIEW
from headway.coordinator.token_making import TokenMaking
from headway.sagas import Retry, Saga

REFUND = Saga("refund").step(
    "pay", "shop.pay", compensate="shop.unpay", retry=Retry(maximum_attempts=1)
)


@dataclass
class Till:
    """What a payment service saw: for whom it was called, with which token."""

    client: Client
    calls: list[tuple[UUID, str]] = field(default_factory=list)

    def agent(self) -> Agent:
        @tool(recovery="manual", sensitive=True, redeems=True, requires_approval=True)
        async def refund(call: Call, cents: int) -> str:
            await redeem(self.client, call.token, call.tool, call.arguments_digest)
            self.calls.append((call.task, call.token))
            return "paid"

        agent = Agent("shop")

        @agent.action("pay", tools=[refund])
        async def pay(ctx: Context) -> str:
            return await ctx.call(refund, 500)

        @agent.compensation("unpay")
        async def unpay(ctx: Context) -> None:
            return None

        return agent


def invocation_of(task: UUID) -> UUID:
    """Anybody who knows a task's id can work this out: it is no secret."""
    return invocation_id(operation_id(task, "pay", ACTION), "refund#1")


async def test_an_approval_is_no_good_before_it_is_asked_for_nor_for_another_call(
    system: System, running: list[Coordinator]
) -> None:
    await registered(system.client, REFUND)
    till = Till(system.client)
    task = (await system.client.submit("refund", {})).task
    for guess in (invocation_of(task), uuid4()):
        with pytest.raises(NotFound) as refused:
            await system.client.approve(task, invocation=guess, by="me")
        assert str(refused.value) == f"task {task} asked for no call {guess}"
    async with working(system.nats.url, till.agent(), grace_s=0.1):
        [call] = await eventually(lambda: waiting(system.client, task), 10)
        other = (await system.client.submit("refund", {})).task
        with pytest.raises(NotFound):
            await system.client.approve(other, invocation=call, by="me")
        for guess in (uuid4(), UUID(int=call.int ^ 1)):
            with pytest.raises(NotFound):
                await system.client.approve(task, invocation=guess, by="me")
        assert till.calls == []
        await system.client.approve(task, invocation=call, by="me")
        assert (await system.client.result(task, timeout=10)).status == "succeeded"
        with pytest.raises(Conflict):
            await system.client.approve(task, invocation=call, by="me")
        await system.client.cancel(other)
        await system.client.result(other, timeout=10)
    assert [called for called, _ in till.calls] == [task]


async def test_with_tokens_only_role_operate_approves_and_no_agent_does(
    system: System, running: list[Coordinator], making: TokenMaking
) -> None:
    """The id of a call is no secret, so it is the token that keeps others from approving it."""
    url = system.nats.url
    tokens = {role: await making.create(role, role) for role in (VIEW, SUBMIT, OPERATE)}
    async with (
        await Client.connect(url, token=tokens[VIEW]) as viewer,
        await Client.connect(url, token=tokens[SUBMIT]) as submitter,
        await Client.connect(url, token=tokens[OPERATE]) as operator,
        working(url, (till := Till(operator)).agent()),
    ):
        await registered(operator, REFUND)
        task = (await submitter.submit("refund", {})).task
        [call] = await eventually(lambda: waiting(operator, task), 10)
        for who in (system.client, viewer, submitter):
            with pytest.raises(Refused) as refused:
                await who.approve(task, invocation=call, by="operate")
            assert refused.value.code in (401, 403)
        for operation in ("approve", "gate.decide"):
            body = {"task": str(task), "invocation": str(call), "decision": "approved", "by": "me"}
            with pytest.raises(nats.errors.NoRespondersError):
                await system.client.connection.wire.request(
                    agent_subject("shop", operation), orjson.dumps(body), 2
                )
        assert till.calls == []
        await operator.reject(task, invocation=call, by="somebody else")
        assert (await operator.result(task, timeout=10)).status == "compensated"
        [decided] = [
            each async for each in operator.audit(task=task) if each.kind == "gate-rejected"
        ]
    assert decided.who == OPERATE
    assert till.calls == []


async def test_a_gate_token_that_was_seen_is_no_good_again(
    system: System, running: list[Coordinator]
) -> None:
    """Whoever reads it on its way, or in a log, comes too late, and anything else is refused."""
    await registered(system.client, REFUND)
    till = Till(system.client)
    async with working(system.nats.url, till.agent(), grace_s=0.1):
        task = (await system.client.submit("refund", {})).task
        [call] = await eventually(lambda: waiting(system.client, task), 10)
        await system.client.approve(task, invocation=call, by="me")
        assert (await system.client.result(task, timeout=10)).status == "succeeded"
    [(_, token)] = till.calls
    digest = g.arguments_digest((), {"cents": 500})
    for name, arguments in (("refund", digest), ("refund", "0" * 64), ("unlock", digest)):
        with pytest.raises(Refused) as refused:
            await redeem(system.client, token, name, arguments)
        assert refused.value.code in (403, 409)
    head, body, signature = token.split(".")
    for forged in (f"{head}.{body}.", f"{head}.{body}.{signature[::-1]}", f"{head}..{signature}"):
        with pytest.raises(Refused) as damaged:
            await redeem(system.client, forged, "refund", digest)
        assert damaged.value.code == 401
    kinds = [each.kind async for each in system.client.audit(task=task)]
    assert kinds.count("gate-redeemed") == 1
    assert kinds.count("gate-refused") >= 3


async def redeem(client: Client, token: str, name: str, digest: str) -> g.GateRedeemed:
    request = g.GateRedeem(token=token, tool=name, arguments_digest=digest, use=uuid4())
    return await client.ask("gate.redeem", request, g.GateRedeemed)


async def waiting(client: Client, task: UUID) -> list[UUID]:
    """The calls of a task that wait for approval."""
    page = await client.parked()
    return [each.invocation for each in page.waiting if each.task == task and each.invocation]
