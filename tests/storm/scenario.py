"""A recovery storm: many tasks in flight against a downstream that takes few calls a second, all
agents and coordinators killed together, and started again.

While what was left is worked off, more is submitted: some as usual, some urgent.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import Any

from harness.actors import Actor
from harness.coordination import registered
from harness.eventually import eventually
from harness.shop import linear
from harness.system import System
from headway.agents.limit_views import LimitRequest, LimitView

SHORT = ("--ack-wait", "0.6")
DRAIN_MAX = 1.2  # of the ideal
NOISE_S = 2.0  # two noisy cores
URGENT_MAX_S = 4.0
LATE_MAX_S = 8.0


@dataclass(frozen=True)
class Plan:
    """How large a storm. `begun`: calls that were made when everything is killed."""

    tasks: int
    rate: float
    burst: int
    begun: int
    call_s: float = 0.1
    latecomers: int = 20
    urgent: int = 10
    coordinators: int = 2
    agents: int = 2
    concurrency: int | None = None
    options: tuple[str, ...] = SHORT
    ack_wait_s: float = 0.6  # after which comes back what the killed had in hand


@dataclass(frozen=True)
class Outcome:
    """What came of it; times in seconds."""

    plan: Plan
    calls: int
    left: int  # calls still to be made when all was started again
    peak: int  # calls in the fullest second
    drained_s: float  # until nothing was left
    late_s: tuple[float, ...]  # from submission to end, of what was submitted meanwhile
    urgent_s: tuple[float, ...]
    ended: dict[str, int]
    doubled: int

    @property
    def ideal_s(self) -> float:
        return self.left / self.plan.rate

    @property
    def peak_max(self) -> float:
        return self.plan.rate + self.plan.burst

    @property
    def holds(self) -> bool:
        """Whether all that is promised was kept."""
        total = self.plan.tasks + self.plan.latecomers + self.plan.urgent
        return (
            self.ended == {"succeeded": total}
            and self.doubled == 0
            and self.peak <= self.peak_max
            and self.drained_s <= DRAIN_MAX * self.ideal_s + NOISE_S
            and max(self.urgent_s) <= URGENT_MAX_S + self.plan.ack_wait_s
            and max(self.late_s) <= LATE_MAX_S + self.plan.ack_wait_s
        )

    def rows(self) -> list[tuple[str, str]]:
        """The table, line by line."""
        plan = self.plan
        return [
            ("tasks in flight, killed and started again", f"{plan.tasks}"),
            ("declared", f"{plan.rate:g}/s, burst {plan.burst}"),
            ("calls in the fullest second", f"{self.peak} (bound {self.peak_max:g})"),
            ("calls in all, effects doubled", f"{self.calls}, {self.doubled}"),
            ("left when all was started again", f"{self.left} calls, ideal {self.ideal_s:.1f} s"),
            ("drained in", f"{self.drained_s:.1f} s, {self.drained_s / self.ideal_s:.2f} x ideal"),
            (f"{plan.latecomers} tasks submitted meanwhile, done in", _spread(self.late_s)),
            (f"{plan.urgent} of priority 9 submitted meanwhile, done in", _spread(self.urgent_s)),
            ("ended", ", ".join(f"{count} {status}" for status, count in self.ended.items())),
        ]


def _spread(seconds: tuple[float, ...]) -> str:
    return f"p50 {statistics.median(seconds):.1f} s, max {max(seconds):.1f} s"


async def storm(system: System, plan: Plan) -> Outcome:
    """Carry it out."""
    crew = await _crew(system, plan)
    await registered(system.client, linear(steps="a"))
    limit = LimitRequest(
        scope="agent",
        name="shop",
        rate=plan.rate,
        burst=plan.burst,
        concurrency=plan.concurrency,
    )
    await system.client.ask("limits.set", limit, LimitView)
    await asyncio.sleep(1.2)  # all coordinators know it within a second
    order = {"a": f"sleep={plan.call_s}"}
    inputs = [{"number": number, **order} for number in range(plan.tasks)]
    receipts = await system.client.submit_many("linear", inputs)
    assert all(hasattr(each, "task") for each in receipts)
    await eventually(lambda: len(system.downstream.calls()) >= plan.begun, 60, what="calls")
    await asyncio.gather(*(actor.kill() for actor in crew))
    before = len(system.downstream.calls())
    crew = await _crew(system, plan)
    await eventually(lambda: _is_up(system, plan), 60, what="all is started again")
    started_at = time.monotonic()
    done = await system.settled()
    late, urgent = await _come_late(system, plan, order)
    total = plan.tasks + plan.latecomers + plan.urgent
    left = total - done
    ended = await system.all_settled(total, 3 * total / plan.rate + 30)
    drained_s = time.monotonic() - started_at
    calls = system.downstream.calls()
    assert len(calls) > before
    return Outcome(
        plan,
        len(calls),
        left,
        peak([call["at"] for call in calls]),
        drained_s,
        late,
        urgent,
        dict(ended),
        _doubled(system),
    )


async def _crew(system: System, plan: Plan) -> list[Actor]:
    coordinators = [system.coordinator(*plan.options) for _ in range(plan.coordinators)]
    agents = [system.agent(*plan.options) for _ in range(plan.agents)]
    return list(await asyncio.gather(*coordinators, *agents))


async def _is_up(system: System, plan: Plan) -> bool:
    [agent] = (await system.client.agents()).agents
    return len(agent.instances) == plan.agents


async def _come_late(
    system: System, plan: Plan, order: dict[str, Any]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Submit more while the backlog is worked off; how long each took."""

    async def one(number: int, priority: int) -> float:
        began = time.monotonic()
        receipt = await system.client.submit(
            "linear", {"number": number, **order}, priority=priority
        )
        await system.client.result(receipt.task, timeout=120)
        return time.monotonic() - began

    late = [one(number, 4) for number in range(plan.latecomers)]
    urgent = [one(number, 9) for number in range(plan.urgent)]
    took = await asyncio.gather(*late, *urgent)
    return tuple(took[: plan.latecomers]), tuple(took[plan.latecomers :])


def peak(moments: list[float], window_s: float = 1.0) -> int:
    """The most calls in any window."""
    moments, first, most = sorted(moments), 0, 0
    for last, at in enumerate(moments):
        while moments[first] <= at - window_s:
            first += 1
        most = max(most, last - first + 1)
    return most


def _doubled(system: System) -> int:
    """Effects beyond one a task."""
    plan_total = len({call["operation"] for call in system.downstream.calls()})
    return sum(system.downstream.effects().values()) - plan_total
