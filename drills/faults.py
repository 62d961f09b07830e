"""The faults on disposable tasks: what is done, what must come of it, and how soon.

Each is a function of the setting that causes the fault, waits for the recovery, and returns how
many seconds that took; it raises when something else happened.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

import orjson
from headway.agents.subjects import api_subject
from headway.drills.handlers import ATTEMPTS, CRASHING, SAGA
from headway.drills.setting import NotRecovered, Setting

LINGER_S = 30.0  # longer than any recovery: what lingers is harmed or cancelled meanwhile
SHORT_S = 1.0
FAILURES = 2
REQUESTS = 5

# Seconds that are documented (ARCHITECTURE.md, "Faults, and what answers them").
QUICK_S = 1.0
FROZEN_S = 10.0
CRASHING_S = 12.0


@dataclass(frozen=True, slots=True)
class Fault:
    """`how` says what recovers, `why` why that counts."""

    name: str
    does: str
    how: str
    why: str
    bound_s: float
    run: Callable[[Setting], Awaitable[float]]


async def _agent_killed(setting: Setting) -> float:
    task = await setting.submit(reserve=f"linger={LINGER_S}")
    call = await setting.called(task, "reserve")
    await setting.crew.send(call.pid, signal.SIGKILL)
    killed_at = time.time()
    again = await setting.called(task, "reserve", 2)
    await setting.settled(task, "succeeded")
    return again.at - killed_at


async def _agent_frozen(setting: Setting) -> float:
    task = await setting.submit(reserve=f"linger={SHORT_S}")
    call = await setting.called(task, "reserve")
    await setting.crew.send(call.pid, signal.SIGSTOP)
    frozen_at = time.time()
    again = await setting.called(task, "reserve", 2)
    await setting.settled(task, "succeeded")
    await setting.crew.send(call.pid, signal.SIGCONT)
    await asyncio.sleep(SHORT_S)  # its late answer must change nothing, which the audit sees
    return again.at - frozen_at


async def _agent_stopped(setting: Setting) -> float:
    task = await setting.submit(reserve=f"linger={SHORT_S}")
    call = await setting.called(task, "reserve")
    await setting.crew.send(call.pid, signal.SIGTERM)
    stopped_at = time.time()
    following = await setting.called(task, "charge")
    await setting.settled(task, "succeeded")
    return max(0.0, following.at - stopped_at - SHORT_S)  # the handler may end its work


async def _agent_crashes(setting: Setting) -> float:
    setting.downstream.wish(CRASHING, granted=True)
    try:
        began_at = time.time()
        task = await setting.submit(reserve="crash")
        refilling = asyncio.create_task(_refill(setting))
        try:
            await setting.settled(task, "parked")
        finally:
            refilling.cancel()
        took_s = time.time() - began_at
    finally:
        setting.downstream.wish(CRASHING, granted=False)
    await setting.at_strength()
    await setting.client.retry(task, "reserve", by=SAGA, reason="the drill stops its crashing")
    await setting.settled(task, "succeeded")
    return took_s


async def _refill(setting: Setting) -> None:
    while True:
        await setting.at_strength()
        await asyncio.sleep(SHORT_S / 10)


async def _step_fails(setting: Setting) -> float:
    began_at = time.time()
    await setting.settled(await setting.submit(ship="reject"), "compensated")
    return time.time() - began_at


async def _compensation_fails(setting: Setting) -> float:
    task = await setting.submit(ship="reject", undo_charge=f"fail={FAILURES}")
    failed = await setting.called(task, "charge", 1, "compensation")
    await setting.settled(task, "compensated")
    last = await setting.called(task, "charge", FAILURES + 1, "compensation")
    return last.at - failed.at


async def _submitted_twice(setting: Setting) -> float:
    task, order = setting.new_task(), setting.order()
    began_at = time.time()
    await asyncio.gather(*(setting.client.submit(SAGA, order, task=task) for _ in range(REQUESTS)))
    await setting.client.publish(SAGA, order, task=task)
    await setting.settled(task, "succeeded")
    took_s = time.time() - began_at
    _once_each(setting, task)
    return took_s


async def _reply_lost(setting: Setting) -> float:
    """The request is heard, and its answer goes where nobody listens; so it is asked again."""
    task, order = setting.new_task(), setting.order()
    wire = setting.client.connection.wire
    request = {"saga": SAGA, "task": str(task), "input": order}
    wire.publish(api_subject("submit"), orjson.dumps(request), wire.new_inbox())
    asked_at = time.time()
    await setting.client.submit(SAGA, order, task=task)
    await setting.settled(task, "succeeded")
    took_s = time.time() - asked_at
    _once_each(setting, task)
    return took_s


def _once_each(setting: Setting, task: UUID) -> None:
    calls = [call.step for call in setting.downstream.calls(task)]
    if len(calls) != len(set(calls)):
        raise NotRecovered(f"task {task} ran more than once: {', '.join(calls)}")


async def _cancelled(setting: Setting) -> float:
    task = await setting.submit(charge=f"linger={LINGER_S}")
    await setting.called(task, "charge")
    cancelled_at = time.time()
    await setting.client.cancel(task, "the drill cancels it", by=SAGA)
    await setting.settled(task, "compensated")
    return time.time() - cancelled_at


async def _call_taken_over(setting: Setting) -> float:
    """The payment is made, and whoever made it dies before the journal has it."""
    task = await setting.submit(charge=f"linger-paid={LINGER_S}")
    call = await setting.called(task, "charge")

    async def paid() -> int:
        return setting.downstream.payments(task)

    await setting.until(paid, "the payment")
    await setting.crew.send(call.pid, signal.SIGKILL)
    killed_at = time.time()
    again = await setting.called(task, "charge", 2)
    await setting.settled(task, "succeeded")
    if setting.downstream.payments(task) != 1:
        raise NotRecovered(f"task {task} was paid {setting.downstream.payments(task)} times")
    return again.at - killed_at


FAULTS = (
    Fault(
        "agent-killed",
        "kill -9 the agent that carries out a step",
        "another instance runs the step again",
        "machines die in the middle of work",
        QUICK_S,
        _agent_killed,
    ),
    Fault(
        "agent-frozen",
        "stop the agent's process (SIGSTOP), and let it go on later",
        "another instance runs the step; the late answer counts once",
        "a pause looks like a death, and then the dead one wakes up",
        FROZEN_S,
        _agent_frozen,
    ),
    Fault(
        "agent-stopped",
        "tell the agent to stop (SIGTERM) while it works",
        "its step ends there or is handed back, and others go on",
        "each deployment does this",
        QUICK_S,
        _agent_stopped,
    ),
    Fault(
        "agent-crashes",
        "a step kills its process each time",
        "the task is parked, and ends once a person says so",
        "one poisonous task must not take down all agents for ever",
        CRASHING_S,
        _agent_crashes,
    ),
    Fault(
        "step-fails",
        "the last step is rejected",
        "the steps before it are compensated, in reverse",
        "business failures leave nothing half done",
        QUICK_S,
        _step_fails,
    ),
    Fault(
        "compensation-fails",
        f"a compensation fails {FAILURES} times of {ATTEMPTS}",
        "it is tried again until it succeeds",
        "undoing meets the same troubles as doing",
        QUICK_S,
        _compensation_fails,
    ),
    Fault(
        "submitted-twice",
        f"submit a task {REQUESTS} times at once, and publish it, under one id",
        "each step runs once",
        "people and programs press the button again",
        QUICK_S,
        _submitted_twice,
    ),
    Fault(
        "reply-lost",
        "lose the coordinator's answer to a submission, and ask again",
        "the second answer is as good, and each step runs once",
        "an answer that is lost looks like a request that was",
        QUICK_S,
        _reply_lost,
    ),
    Fault(
        "cancelled",
        "cancel a task in the middle of a step",
        "the step is stopped and what was done is undone",
        "people change their minds",
        QUICK_S,
        _cancelled,
    ),
    Fault(
        "call-taken-over",
        "kill -9 an agent right after it paid, before its journal knows",
        "whoever takes over finds out that it was paid, and does not pay again",
        "this is where money is lost",
        QUICK_S,
        _call_taken_over,
    ),
)
