"""The support desk's agent, and a buyer who asks several suppliers at once.

`support` answers a customer's ticket: a model chooses what is looked up, paid and written, and the
shop's services do it. Whatever dies in between, each model call is billed once, the money is paid
once and the mail is sent once, because every call is in the task's journal and goes to its service
under the invocation's own id.

The model is whatever answers at OPENAI_BASE_URL; OPENAI_API_KEY and HEADWAY_DEMO_MODEL go with it.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import orjson
from headway.agents import Agent, Context, Reject
from headway.agents.errors import ToolFailed
from headway.agents.messages import describe
from headway.agents.tools import Attempts, Call, Metered, tool
from headway.demo.support.downstream import (
    MAIL,
    ORDERS,
    PAYMENTS,
    POLICY,
    PRICES,
    PURCHASES,
    SUPPLIERS,
)
from headway.demo.support.posting import post
from headway.demo.support.service import GATE_HEADER, INVOCATION_HEADER
from headway.demo.support.tickets import LARGE_REFUND_CENTS, Ticket
from pydantic import BaseModel, ConfigDict, Field, ValidationError

SERVICES_VARIABLE = "HEADWAY_DEMO_SERVICES"  # environment: the address of the shop's services
MODEL_URL_VARIABLE = "OPENAI_BASE_URL"
MODEL_KEY_VARIABLE = "OPENAI_API_KEY"
MODEL_VARIABLE = "HEADWAY_DEMO_MODEL"
MODEL_DEFAULT = "gpt-4o-mini"

ANSWER = "answer"
BUY = "buy"

TURNS_MAX = 20  # of the model, for one ticket
TALK_KEPT = 40  # messages of the conversation, beside the instructions and the ticket

INSTRUCTIONS = (
    "You answer the customers of a shop. Look up the order, ask for the policy on 'damaged' or "
    "'regret', do what it says, write to the customer with send_mail, and at the end say in one "
    "sentence what was done. Pay at most once, and write at most one mail."
)

_BRISK = Attempts(initial_interval=0.1, maximum_interval=2.0, maximum_attempts=5)
"""Every service here is only asked, or dedupes: trying again does no harm."""

Message = dict[str, Any]


class Answer(BaseModel):
    """How a ticket ended."""

    text: str
    done: list[dict[str, Any]]


class Talk(BaseModel):
    """How far a ticket has come.

    Attributes:
        turn: how often the model was asked.
        messages: the instructions, the ticket, and what followed; of a long conversation its end.
        done: what was paid, and to whom was written.
    """

    turn: int = 0
    messages: list[Message]
    done: list[dict[str, Any]] = []

    def take_in(self, wish: str, found: dict[str, Any]) -> None:
        """A tool's answer to the model's `wish`."""
        content = orjson.dumps(found).decode()
        self.messages.append({"role": "tool", "tool_call_id": wish, "content": content})
        if "receipt" in found or "sent_to" in found:
            self.done.append(found)
        rest = self.messages[2:][-TALK_KEPT:]
        while rest and rest[0]["role"] == "tool":  # never without the wish that it answers
            rest = rest[1:]
        self.messages[2:] = rest


class _Arguments(BaseModel):
    """What a model wants of a tool; it may be anything, so it is checked."""

    model_config = ConfigDict(extra="forbid")


class LookupOrder(_Arguments):
    """Look up what was ordered, its price, and when it was delivered."""

    order: str


class AskPolicy(_Arguments):
    """Ask for the shop's rule on a topic: 'damaged' or 'regret'."""

    topic: str


class Refund(_Arguments):
    """Pay money back to the customer. A person has to agree to a large amount."""

    order: str
    amount_cents: int = Field(gt=0)


class SendMail(_Arguments):
    """Write to the customer."""

    subject: str
    text: str


_OFFERED: dict[str, type[_Arguments]] = {
    "lookup_order": LookupOrder,
    "ask_policy": AskPolicy,
    "refund": Refund,
    "send_mail": SendMail,
}


@tool(recovery="dedupe_key", retry=_BRISK, model=True)
async def ask_model(call: Call, talk: list[Message]) -> Metered[Message]:
    """The model's next message. (An endpoint that knows no Idempotency-Key bills the one call that
    was under way at a kill again.)"""
    model = os.environ.get(MODEL_VARIABLE, MODEL_DEFAULT)
    reply = await post(
        f"{os.environ[MODEL_URL_VARIABLE].rstrip('/')}/chat/completions",
        {
            "model": model,
            "messages": talk,
            "tools": [_offer(name, arguments) for name, arguments in _OFFERED.items()],
        },
        {
            INVOCATION_HEADER: str(call.id),
            "Authorization": f"Bearer {os.environ.get(MODEL_KEY_VARIABLE, '')}",
        },
    )
    usage = reply.get("usage") or {}
    return Metered(
        reply["choices"][0]["message"],
        input_tokens=usage.get("prompt_tokens", 0),
        output_tokens=usage.get("completion_tokens", 0),
        model=model,
    )


@tool(recovery="natural", retry=_BRISK)
async def lookup_order(order: str) -> dict[str, Any]:
    return await _ask(ORDERS, order=order)


@tool(recovery="natural", retry=_BRISK)
async def ask_policy(topic: str) -> dict[str, Any]:
    return await _ask(POLICY, topic=topic)


@tool(recovery="dedupe_key", retry=_BRISK, sensitive=True)
async def refund(call: Call, order: str, amount_cents: int) -> dict[str, Any]:
    return await _act(call, PAYMENTS, order=order, amount_cents=amount_cents)


@tool(recovery="dedupe_key", retry=_BRISK, requires_approval=True)
async def large_refund(call: Call, order: str, amount_cents: int) -> dict[str, Any]:
    return await _act(call, PAYMENTS, order=order, amount_cents=amount_cents)


@tool(recovery="dedupe_key", retry=_BRISK)
async def send_mail(call: Call, to: str, subject: str, text: str) -> dict[str, Any]:
    return await _act(call, MAIL, to=to, subject=subject, text=text)


@tool(recovery="natural", retry=_BRISK)
async def ask_price(supplier: str) -> int:
    return int((await _ask(PRICES, supplier=supplier))["cents"])


@tool(recovery="dedupe_key", retry=_BRISK)
async def purchase(call: Call, project: str, supplier: str) -> dict[str, Any]:
    return await _act(call, PURCHASES, project=project, supplier=supplier)


async def answer(ctx: Context, ticket: Ticket) -> Answer:
    """Let the model work on the ticket until it has no more wishes."""
    talk = _resumed(ctx) or Talk(
        messages=[
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": ticket.text},
        ]
    )
    while talk.turn < TURNS_MAX:
        talk.turn += 1
        said: Message = await ctx.call(ask_model, talk.messages, key=f"model-{talk.turn}")
        talk.messages.append(said)
        wishes = said.get("tool_calls") or []
        if not wishes:
            return Answer(text=str(said.get("content")), done=talk.done)
        for number, wish in enumerate(wishes, start=1):
            key = f"turn-{talk.turn}-{number}"
            found = await _fulfil(ctx, ticket, wish["function"], key)
            talk.take_in(wish["id"], found)
        await ctx.checkpoint(talk)
    raise Reject(f"the model was not done after {TURNS_MAX} turns", kind="TooManyTurns")


async def buy(ctx: Context, project: str) -> dict[str, Any]:
    """Ask all suppliers at once, and buy from the cheapest."""
    prices = await asyncio.gather(*(ctx.call(ask_price, supplier) for supplier in SUPPLIERS))
    _, cheapest = min(zip(prices, SUPPLIERS, strict=True))
    bought: dict[str, Any] = await ctx.call(purchase, project, cheapest)
    return bought


def support(name: str = "support") -> Agent:
    """The agent that answers tickets; with a name of its own, if several are to be told apart."""
    agent = Agent(name)
    agent.action(
        ANSWER, tools=[ask_model, lookup_order, ask_policy, refund, large_refund, send_mail]
    )(answer)
    return agent


def research(name: str = "research") -> Agent:
    """The agent that buys; with a name of its own, as above."""
    agent = Agent(name)
    agent.action(BUY, tools=[ask_price, purchase])(buy)
    return agent


async def _fulfil(
    ctx: Context, ticket: Ticket, function: dict[str, Any], key: str
) -> dict[str, Any]:
    """Do what the model wants; what it cannot have, it is told in words."""
    try:
        wanted = _OFFERED[function["name"]].model_validate_json(function["arguments"])
    except KeyError:
        return {"error": "there is no such tool"}
    except ValidationError as error:
        return {"error": describe(error)}
    try:
        match wanted:
            case LookupOrder(order=order):
                found = await ctx.call(lookup_order, order, key=key)
            case AskPolicy(topic=topic):
                found = await ctx.call(ask_policy, topic, key=key)
            case Refund(order=order) if order != ticket.order:
                return {"error": "this ticket is about another order"}
            case Refund(order=order, amount_cents=cents):
                pay = large_refund if cents >= LARGE_REFUND_CENTS else refund
                found = await ctx.call(pay, order, cents, key=key)
            case SendMail(subject=subject, text=text):
                found = await ctx.call(send_mail, ticket.email, subject, text, key=key)
    except ToolFailed as no:
        return {"error": str(no)}
    return dict(found)


def _resumed(ctx: Context) -> Talk | None:
    """The conversation as it was at the last checkpoint, if there is one."""
    state = ctx.restore()
    return None if state is None else Talk.model_validate(state)


def _offer(name: str, arguments: type[_Arguments]) -> dict[str, Any]:
    """A tool as models are told of it."""
    schema = arguments.model_json_schema()
    function = {"name": name, "description": schema.pop("description"), "parameters": schema}
    return {"type": "function", "function": function}


async def _ask(service: str, **body: Any) -> dict[str, Any]:
    return await post(f"{os.environ[SERVICES_VARIABLE]}/{service}", body, {})


async def _act(call: Call, service: str, **body: Any) -> dict[str, Any]:
    headers = {INVOCATION_HEADER: str(call.id), GATE_HEADER: call.token or ""}
    return await post(f"{os.environ[SERVICES_VARIABLE]}/{service}", body, headers)
