"""The scripted model: what it says depends on nothing but the conversation. Pure.

It speaks the chat completions format of OpenAI, as far as tool calls need it. A conversation goes:
look up the order, ask for the policy, pay the money back, write to the customer, sum up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson
from headway.demo.support.tickets import ORDER_PATTERN

CHARS_PER_TOKEN = 4  # about as real ones count

Message = dict[str, Any]


def complete(messages: Sequence[Message]) -> dict[str, Any]:
    """The model's next message, as the body of an answer with its usage."""
    message = _next(messages)
    prompt, completion = _tokens(messages), _tokens([message])
    return {
        "object": "chat.completion",
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
            }
        ],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        },
    }


def _next(messages: Sequence[Message]) -> Message:
    order = _order_named(messages)
    if order is None:
        return _say("Please tell us the number of your order.")
    results = _results(messages)
    if "lookup_order" not in results:
        return _call(messages, "lookup_order", order=order)
    if "ask_policy" not in results:
        return _call(messages, "ask_policy", topic="damaged")
    if "refund" not in results and "refunded in full" in results["ask_policy"]["policy"]:
        price = results["lookup_order"]["price_cents"]
        return _call(messages, "refund", order=order, amount_cents=price)
    if "send_mail" not in results:
        return _call(messages, "send_mail", subject=f"Your order {order}", text=_letter(results))
    return _say(f"Order {order}: {_letter(results)}")


def _letter(results: dict[str, Any]) -> str:
    refund = results.get("refund", {})
    if "amount_cents" in refund:
        return f"We are sorry, and have paid {refund['amount_cents'] / 100:.2f} back to you."
    return "We are sorry. A person will look into it and write to you."


def _order_named(messages: Sequence[Message]) -> str | None:
    for message in messages:
        if message.get("role") == "user":
            found = re.search(rf"\b{ORDER_PATTERN}\b", str(message.get("content")))
            if found:
                return found.group()
    return None


def _results(messages: Sequence[Message]) -> dict[str, Any]:
    """What each tool answered, by the tool's name; its last answer if there are several."""
    names = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    return {
        names[message["tool_call_id"]]: orjson.loads(message["content"])
        for message in messages
        if message.get("role") == "tool" and message.get("tool_call_id") in names
    }


def _call(messages: Sequence[Message], tool: str, **arguments: Any) -> Message:
    turn = sum(message.get("role") == "assistant" for message in messages) + 1
    function = {"name": tool, "arguments": orjson.dumps(arguments).decode()}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"call_{turn}", "type": "function", "function": function}],
    }


def _say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _tokens(messages: Sequence[Message]) -> int:
    return -(-len(orjson.dumps(list(messages))) // CHARS_PER_TOKEN)
