"""Gate tokens for sensitive tools: asked for, decided on by people, redeemed once.

Always holds: of one call at most one token is good at a time, and one use of it is recorded, in the
statement that checks the task's version and the journal: a task that moves on, a second user and a
second coordinator all see one order. What is asked, decided, given, used and refused is kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from uuid import UUID, uuid4

import orjson
from headway.agents import gates as g
from headway.agents.news import SETTLED, news_of, wait_for
from headway.agents.subjects import feed_subject
from headway.agents.views import PAGE_LIMIT_MAX, Nothing, WaitingRequest, WaitingView
from headway.agents.wire import Wire
from headway.coordinator import gate_rows, gating
from headway.coordinator.caller import Caller
from headway.coordinator.commands import check_agent, not_for
from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed, typed_by
from headway.coordinator.signing import Signing
from headway.coordinator.store import Store

NEWS = "gate"  # on the feed: a person is waited for, or has decided
ARGUMENTS_MAX_BYTES = 4_096  # of a call, shown to people

_LOG = logging.getLogger(__name__)


class Gates:
    """What the API can do about gates. Refusals have the kinds of `headway.agents.gates`."""

    def __init__(
        self, store: Store, signing: Signing, wire: Wire, clock: Callable[[], int]
    ) -> None:
        self._store = store
        self._signing = signing
        self._wire = wire
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {
            "gate.redeem": typed_by(g.GateRedeem, g.GateRedeemed, self.redeem),
            "gate.decide": typed(g.GateDecide, g.GateView, self.decide),
            "gate.keys": typed(Nothing, g.PublicKeys, self.keys),
        }

    def agent_operations(self) -> dict[str, Serve]:
        return {
            "gate.request": typed_by(g.GateRequest, g.GateReply, self.request),
            "gate.redeem": typed_by(g.GateRedeem, g.GateRedeemed, self.redeem),
            "gate.keys": typed(Nothing, g.PublicKeys, self.keys),
        }

    async def request(self, request: g.GateRequest, caller: Caller) -> g.GateReply:
        """A token, if this very call is wanted now and a person who must approve has; waits for
        that as long as is asked."""
        until = time.monotonic() + request.wait_s
        reply = await self._reply(request, caller.agent)
        if reply.status != "waiting" or not request.wait_s:
            return reply
        async with news_of(self._wire, request.task, _is_news) as news:
            while reply.status == "waiting" and (left := until - time.monotonic()) > 0:
                news.clear()
                reply = await self._reply(request, caller.agent)
                if reply.status == "waiting":
                    await wait_for(news, left)
        return reply

    async def redeem(self, request: g.GateRedeem, caller: Caller) -> g.GateRedeemed:
        """Use a token up, or say why it is not good. An agent can use up only its own."""
        key = await self._signing.key()
        try:
            gate = g.read(request.token, key.keys)
        except g.GateRefused as refused:
            _LOG.warning("a gate token was refused: %s", refused)
            raise _refusal(refused) from refused
        if caller.agent and caller.agent != gate.agent:
            raise await self._noted(
                gate, not_for(caller.agent, gate.step, gate.phase, gate.agent), by=caller.agent
            )
        try:
            tool, digest, now = request.tool, request.arguments_digest, self._clock() / 1000
            g.check(gate, tool=tool, arguments_digest=digest, now=now)
        except g.GateRefused as refused:
            known = await self._known(gate)
            if refused.kind == g.EXPIRED and known.by == request.use:
                return g.GateRedeemed(redeemed_at=known.at)
            raise await self._noted(gate, _refusal(refused)) from refused
        return await self._use(gate, request.use)

    async def decide(self, request: g.GateDecide) -> g.GateView:
        """A person's word on a call that waits for it, and that is still wanted."""
        rows = await self._store.fetch("gate", request.task, request.invocation)
        loaded = (await self._store.read([request.task])).get(request.task)
        if not rows or loaded is None:
            raise Refusal(f"task {request.task} asked for no call {request.invocation}", 404)
        view = gate_rows.view_of(rows[0])
        gating.check_decision(loaded.task, view)
        decided = await self._store.fetch(
            "decide_gate",
            request.task,
            request.invocation,
            request.decision,
            request.by,
            request.reason,
            self._clock(),
            gate_rows.data_of_view(view),
        )
        if not decided:  # somebody else was faster: say who
            return await self.decide(request)
        self._announce(loaded)
        return gate_rows.view_of(decided[0])

    async def keys(self, _request: Nothing) -> g.PublicKeys:
        """What tokens are checked with."""
        return (await self._signing.key()).keys

    async def waiting(self, of: WaitingRequest) -> list[WaitingView]:
        """Calls that wait for a person, and that their task still wants; longest first, at most
        PAGE_LIMIT_MAX."""
        arguments = of.saga, PAGE_LIMIT_MAX, ARGUMENTS_MAX_BYTES, of.owner, of.task
        rows = await self._store.fetch("waiting_gates", *arguments)
        return [gate_rows.waiting_of(row) for row in rows]

    async def _reply(self, request: g.GateRequest, agent: str) -> g.GateReply:
        """As things stand now, without waiting."""
        loaded = (await self._store.read([request.task])).get(request.task)
        if loaded is None:
            raise Refusal(f"there is no task {request.task}", 404)
        check_agent(agent, loaded, request.step, request.phase)
        operation = request.task, request.step, request.phase
        rows = await self._store.fetch("gate_and_call", *operation, request.key, request.invocation)
        call, kept = gate_rows.call_of(rows), gate_rows.kept_of(rows)
        try:
            status = gating.answer(request, loaded.task, loaded.manifest, call, kept)
        except Refusal as refusal:
            data = gate_rows.data_of_request(request, refused=refusal.kind)
            note = request.step, self._clock(), agent, request.tool, refusal.reason, None, data
            await self._store.fetch("note_refusal", request.task, *note)
            raise
        if status == gating.REJECTED and kept is not None:
            return _reply(request, "rejected", by=kept.by, reason=kept.reason)
        if status == gating.WAITING:
            if kept is None or kept.status != gating.WAITING:
                await self._await_approval(request, loaded, agent)
            return _reply(request, "waiting")
        return await self._issue(request, loaded, agent)

    async def _await_approval(self, request: g.GateRequest, loaded: Loaded, agent: str) -> None:
        anew = await self._store.fetch(
            "await_approval",
            *gate_rows.columns_of(request),
            self._clock(),
            agent,
            gate_rows.data_of_request(request),
        )
        if anew:
            self._announce(loaded)

    async def _issue(self, request: g.GateRequest, loaded: Loaded, agent: str) -> g.GateReply:
        now_ms = self._clock()
        gate = gating.gate(request, agent, loaded.task, uuid4(), now_ms)
        token = (await self._signing.key()).sign(gate)
        issued = await self._store.fetch(
            "issue_token",
            *gate_rows.columns_of(request),
            gate.token_id,
            now_ms,
            agent,
            gate_rows.data_of_request(request, version=gate.version),
        )
        if not issued:  # meanwhile a person is asked, or has rejected it
            return await self._reply(request, agent)
        return _reply(request, "granted", token=token)

    async def _use(self, gate: g.Gate, use: UUID) -> g.GateRedeemed:
        """Record the use of a token that is good, if its task stands where it did."""
        rows = await self._store.fetch(
            "redeem_token",
            gate.task,
            gate.version,
            gate.invocation,
            gate.token_id,
            use,
            self._clock(),
            gate_rows.data_of_gate(gate),
        )
        if rows:
            return g.GateRedeemed(redeemed_at=rows[0]["at"])
        known = await self._known(gate)
        if known.by == use:
            return g.GateRedeemed(redeemed_at=known.at)
        loaded = (await self._store.read([gate.task])).get(gate.task)
        task = None if loaded is None else loaded.task
        raise await self._noted(gate, gating.not_redeemable(gate, task, known))

    async def _known(self, gate: g.Gate) -> gating.Use:
        rows = await self._store.fetch("token_use", gate.task, gate.invocation, gate.token_id)
        return gating.Use(*rows[0]) if rows else gating.NO_USE

    async def _noted(self, gate: g.Gate, refusal: Refusal, by: str = "") -> Refusal:
        """The refusal of a token, once it is in the audit log; `by` is the agent that tried."""
        data = gate_rows.data_of_gate(gate, refused=refusal.kind)
        note = gate.step, self._clock(), by, gate.tool, refusal.reason, gate.token_id, data
        await self._store.fetch("note_refusal", gate.task, *note)
        return refusal

    def _announce(self, loaded: Loaded) -> None:
        """Tell the feed; lossy, so whoever waits asks again all the same."""
        task, saga = str(loaded.id), loaded.definition.name
        news = {
            "task": task,
            "saga": saga,
            "status": loaded.task.status,
            "version": loaded.task.version,
            "at": datetime.fromtimestamp(self._clock() / 1000, UTC),
        }
        with suppress(ConnectionError):
            self._wire.publish(feed_subject(saga, task, NEWS), orjson.dumps(news))


def _is_news(kind: str) -> bool:
    return kind == NEWS or kind in SETTLED


def _refusal(refused: g.GateRefused) -> Refusal:
    return Refusal(refused.reason, refused.code, refused.kind)


def _reply(request: g.GateRequest, status: g.Answer, **known: str) -> g.GateReply:
    return g.GateReply(status=status, invocation=request.invocation, **known)
