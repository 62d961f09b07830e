"""The work that goes on while things break: a flow of orders, many with trouble of their own."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headway.agents import Client, HeadwayError
from headway.agents.identity import new_task_id

STEPS = {
    "trip": ("book", "charge", "ship", "tell"),
    "fork": ("book", "charge", "ship"),
    "errand": ("run", "charge", "ship"),
    "doomed": ("book", "crash", "ship"),
}
TOOL_CALLS = ("think", "pay", "mail")
HOLD_MAX_S = 0.3
PUBLISHED_SHARE = 0.2


@dataclass(frozen=True)
class Order:
    """One task to be: its saga and input, and how it ends if nothing else goes wrong."""

    saga: str
    input: dict[str, Any]
    expected: str


@dataclass
class Submitted:
    """What became of handing in the orders. `refused` may or may not have become tasks."""

    accepted: dict[UUID, Order] = field(default_factory=dict)
    refused: dict[UUID, HeadwayError] = field(default_factory=dict)


def orders(
    rng: random.Random, kinds: tuple[str, ...] = ("trip", "fork", "errand")
) -> Iterator[Order]:
    """Without end; the same for the same `rng`."""
    number = 0
    while True:
        number += 1
        saga = rng.choice(kinds)
        words: dict[str, str] = {}
        for step in STEPS[saga]:
            if rng.random() < 0.5:
                words[step] = f"hold={rng.uniform(0.0, HOLD_MAX_S):.3f}"
        words, expected = _with_trouble(rng, saga, words)
        yield Order(saga, {"number": number, "words": words}, expected)


def _with_trouble(
    rng: random.Random, saga: str, words: dict[str, str]
) -> tuple[dict[str, str], str]:
    if saga == "doomed":
        return words, "parked"
    add = lambda step, word: words.__setitem__(step, f"{words.get(step, '')} {word}".strip())  # noqa: E731
    if saga == "errand" and rng.random() < 0.5:
        add(rng.choice(TOOL_CALLS), rng.choice(["drop", "fail=1", "late=0.1", "hold=0.2"]))
    step = rng.choice(STEPS[saga][:-1] if saga == "trip" else STEPS[saga])
    match rng.choices(
        ["none", "reject", "fail", "drop", "late", "undo fails", "undo broken"],
        [55, 16, 8, 8, 6, 5, 2],
    ):
        case ["reject"]:
            add("ship" if step == "run" else step, "reject")
            return words, "compensated"
        case ["fail"] if step != "run":
            add(step, "fail=2")
        case ["drop"] if step != "run":
            add(step, "drop")
        case ["late"] if step != "run":
            add(step, f"late={rng.uniform(0.0, HOLD_MAX_S):.3f}")
        case ["undo fails"]:
            add("ship", "reject")
            add("undo-charge", "fail=2 drop")
            return words, "compensated"
        case ["undo broken"]:
            add("ship", "reject")
            add("undo-charge", "reject")
            return words, "failed_to_compensate"
    return words, "succeeded"


async def hand_in(
    client: Client,
    wanted: Iterator[Order],
    rng: random.Random,
    *,
    per_s: float,
    publish: bool,
    until: asyncio.Event,
    submitted: Submitted,
) -> None:
    """Submit orders one by one at this rate; a share of them as plain messages if `publish`."""

    async def one(order: Order, as_message: bool) -> None:
        task = new_task_id()
        try:
            if as_message:
                await client.publish(order.saga, order.input, task=task)
            else:
                await client.submit(order.saga, order.input, task=task)
            submitted.accepted[task] = order
        except HeadwayError as error:
            submitted.refused[task] = error

    async with asyncio.TaskGroup() as group:
        while not until.is_set():
            as_message = publish and rng.random() < PUBLISHED_SHARE
            group.create_task(one(next(wanted), as_message))
            await asyncio.sleep(1 / per_s)
