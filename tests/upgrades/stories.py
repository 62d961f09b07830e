"""What a kept database holds: a task at each place where one may rest, and how it goes on.

These are for ever: a story may be added for a newer database, never changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from headway.agents import Client
from headway.agents.manifest import Manifest
from headway.agents.views import TaskView

Resting = Callable[[TaskView], bool]
GoOn = Callable[[Client, UUID], Awaitable[Any]]


def settled(view: TaskView) -> bool:
    return view.settled


def at_step(name: str) -> Resting:
    """The task waits at this step, which nobody but us moves on."""

    def resting(view: TaskView) -> bool:
        return any(step.name == name and step.status == "scheduled" for step in view.steps)

    return resting


def awaited(view: TaskView) -> bool:
    """The task's agent waits for a person's word on the call of a tool."""
    return any(step.waiting_for == "a person's approval of a call" for step in view.steps)


async def nothing(_client: Client, _task: UUID) -> None:
    """It goes on, or stays, by itself."""


@dataclass(frozen=True)
class Story:
    """`rests` tells when it is where it is to be kept, with status `kept`; `goes_on` what a person
    then does, and `ends` how it ends."""

    saga: str
    order: dict[str, Any] = field(default_factory=dict)
    rests: Resting = settled
    kept: str = "succeeded"
    goes_on: GoOn = nothing
    ends: str = "succeeded"
    manifest: Manifest | None = None


async def approve(client: Client, task: UUID) -> None:
    await client.approve(task, "agree", by="ann", reason="fine")


async def reject(client: Client, task: UUID) -> None:
    await client.reject(task, "agree", by="ann", reason="no")


async def signal(client: Client, task: UUID) -> None:
    await client.signal(task, "paid", {"amount": 5}, by="bank")


async def tick(client: Client, task: UUID) -> None:
    await client.signal(task, "tick", 2, id="two")


async def cancel(client: Client, task: UUID) -> None:
    await client.cancel(task, "no longer wanted", by="ann")


async def settle_undo(client: Client, task: UUID) -> None:
    await client.settle(task, "a", "happened", reason="undone by hand", by="ann")


async def settle_call(client: Client, task: UUID) -> None:
    await client.settle_call(task, "a", "pay#1", "happened", {"n": 1}, "saw it", by="ann")
    await client.resume(task, by="ann", reason="settled")


async def resume(client: Client, task: UUID) -> None:
    await client.resume(task, by="ann", reason="looked")


async def approve_call(client: Client, task: UUID) -> None:
    """Approve the call of a tool that waits for it."""
    page = await client.parked(limit=500)
    [call] = [one for one in page.waiting if one.task == task and one.kind == "gate"]
    await client.approve(task, invocation=call.invocation, by="ann", reason="fine")


STORIES: dict[str, Story] = {
    "done": Story("plain", {"a": {"gives": 7}}),
    "undone": Story("plain", {"b": "reject"}, kept="compensated", ends="compensated"),
    "undoing failed": Story(
        "plain",
        {"b": "reject", "undo a": "reject"},
        kept="failed_to_compensate",
        goes_on=settle_undo,
        ends="compensated",
    ),
    "stuck past the pivot": Story("past", {"b": "reject"}, kept="parked", ends="parked"),
    "at an agent": Story("plain", {"b": "hold"}, at_step("b"), "running"),
    "at an agent, then cancelled": Story(
        "plain", {"b": "hold"}, at_step("b"), "running", cancel, "compensated"
    ),
    "waits for approval": Story("agreed", {}, at_step("agree"), "running", approve),
    "waits for approval, rejected": Story(
        "agreed", {}, at_step("agree"), "running", reject, "compensated"
    ),
    "waits for a signal": Story("paid", {}, at_step("paid"), "running", signal),
    "asleep": Story("asleep", {}, at_step("nap"), "running"),
    "condition false": Story("large", {"total": 5}),
    "child done": Story("family", {"y": {"gives": 7}}),
    "child undone": Story("family", {"z": "reject"}, kept="compensated", ends="compensated"),
    "child at an agent": Story("family", {"y": "hold"}, at_step("c"), "running"),
    "handed off": Story(
        "plain", {"a": {"hands": [{"action": "bob.do", "compensate": "bob.undo"}]}}
    ),
    "went round in a loop": Story(
        "talk",
        {"each": {"passes": ["ann", "bob"]}},
        kept="parked",
        goes_on=cancel,
        ends="compensated",
    ),
    "open call": Story("plain", {"a": "unsettled"}, kept="parked", goes_on=settle_call),
    "call waits for approval": Story("till", {"amount": 5}, awaited, "running", approve_call),
    "not accepted": Story(
        "plain",
        {"b": {"gives": {}}},
        kept="parked",
        goes_on=resume,
        manifest=Manifest(goal="an id", acceptance={"type": "object", "required": ["id"]}),
    ),
}
