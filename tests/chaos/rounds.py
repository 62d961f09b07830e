"""A round: work, a fault in its midst, healing, waiting for everything to end, and the audit."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from chaos import recovery
from chaos.claims import Finding, audit
from chaos.faults import Fault
from chaos.laws import broken_laws, told
from chaos.load import Order, Submitted, hand_in, orders
from chaos.recovery import Struck
from chaos.stage import Stage
from harness.eventually import eventually
from headway.agents import Connection, connect
from headway.agents.subjects import COMMANDS_STREAM, COORDINATOR, EVENTS_STREAM, TASKS_STREAM
from nats.js.errors import NotFoundError

FIRST_WORK_S = (0.5, 1.5)  # before the fault begins
LAST_WORK_S = 1.0  # after it has ended
DRAINED_WITHIN_S = 30.0
LEFT_LINES_MAX = 20

SETTLED = """
    SELECT t.id::text AS task, extract(epoch FROM max(e.at))::float8 AS at
    FROM headway.tasks AS t JOIN headway.task_events AS e ON e.task_id = t.id
    WHERE e.type IN ('TaskSucceeded', 'TaskCompensated', 'TaskParked', 'TaskFailedToCompensate')
    GROUP BY t.id
"""
OPEN = """
    SELECT count(*) FROM headway.tasks
    WHERE status IN ('running', 'compensating')
"""
QUEUES = (TASKS_STREAM, EVENTS_STREAM, COMMANDS_STREAM)


@dataclass
class Result:
    """What a round came to. `otherwise` are tasks that ended in another way than they were ordered
    to, which an outage may explain, by how and why."""

    fault: str
    seed: str
    tasks: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    otherwise: Counter[str] = field(default_factory=Counter)
    recoveries: list[recovery.Sign] = field(default_factory=list)
    took_s: float = 0.0

    @property
    def held(self) -> bool:
        return not self.findings

    def count(self, *clauses: str) -> int:
        return sum(finding.clause in clauses for finding in self.findings)


async def play(stage: Stage, fault: Fault, seed: str) -> Result:
    """One round on a running stage."""
    rng, began_at = random.Random(seed), time.monotonic()
    result = Result(fault.name, seed)
    submitted = Submitted(stage.accepted)
    done = asyncio.Event()
    before = set(stage.accepted)
    working = asyncio.create_task(
        hand_in(
            stage.client,
            orders(rng, fault.sagas),
            random.Random(f"{seed}/how"),
            per_s=fault.per_s,
            publish=fault.publishes,
            until=done,
            submitted=submitted,
        )
    )
    struck: list[Struck] = []
    try:
        await asyncio.sleep(rng.uniform(*FIRST_WORK_S))
        struck = await fault.cause(stage, random.Random(f"{seed}/fault"))
        await asyncio.sleep(LAST_WORK_S)
    except Exception as error:  # a round that could not be played is a failed one
        result.findings.append(
            Finding("law", "the fault itself", f"{type(error).__name__}: {error}")
        )
    finally:
        await stage.heal()
        done.set()
        await working
    stage.accepted.update(stage.extra)
    stage.extra.clear()
    result.findings += await _settled(stage, fault)
    await stage.let_wreck_rest()
    await _judge(stage, result, before, struck)
    result.took_s = time.monotonic() - began_at
    return result


async def _settled(stage: Stage, fault: Fault) -> list[Finding]:
    """Wait until nothing is open, and then until the streams have nothing left to deliver."""

    async def nothing_open() -> bool:
        known = await stage.fetch(
            "SELECT count(*) FROM headway.tasks WHERE id = ANY($1)", [*stage.accepted]
        )
        assert known[0][0] == len(stage.accepted), f"{len(stage.accepted) - known[0][0]} unknown"
        rows = await stage.fetch(OPEN)  # now that all are there
        return rows[0][0] == 0

    async with await connect(stage.nats.url, name="onlooker") as onlooker:

        async def drained() -> bool:
            left = [await _left(onlooker, stream) for stream in QUEUES]
            assert not any(left), "\n".join(left)
            return True

        try:
            await eventually(nothing_open, fault.settle_s, what="everything ended or parked")
            await eventually(drained, DRAINED_WITHIN_S)
        except AssertionError:
            left = [await _left(onlooker, stream) for stream in QUEUES]
            return [Finding("stuck", "the streams", "\n".join(left))]
    return []


async def _left(onlooker: Connection, stream: str) -> str:
    """What a queue still holds for somebody, and where its consumers stand; nothing if it is empty.

    A command or an event that its consumer is through with comes to nobody, and stands for nothing:
    a server that had no room, or was killed, may have kept it. A submission must not be left so.
    """
    jetstream = onlooker.nc.jetstream()
    state = (await jetstream.stream_info(stream)).state
    if not state.messages:
        return ""
    consumers = {each.name: each for each in await jetstream.consumers_info(stream)}
    waiting: list[str] = []
    with suppress(NotFoundError):
        sequence = state.first_seq
        while sequence <= state.last_seq and len(waiting) < LEFT_LINES_MAX:
            message = await jetstream.get_msg(stream, sequence, next=True, subject=">")
            reader = message.subject.split(".")[2] if stream == COMMANDS_STREAM else COORDINATOR
            floor = consumers[reader].ack_floor.stream_seq if reader in consumers else 0
            if stream == TASKS_STREAM or message.seq > floor:
                waiting.append(f"  {message.seq} {message.subject}")
            sequence = message.seq + 1
    if not waiting:
        return ""
    stand = [
        f"  {name}: delivered {each.delivered.stream_seq}, "
        f"through with {each.ack_floor.stream_seq}, {each.num_ack_pending} unanswered, "
        f"{each.num_pending} pending"
        for name, each in consumers.items()
    ]
    return "\n".join([f"{stream} holds {state.messages}, up to {state.last_seq}", *stand, *waiting])


async def _judge(stage: Stage, result: Result, before: set[UUID], struck: list[Struck]) -> None:
    tasks, log = await told(stage.postgres_url), stage.log()
    result.findings += audit(tasks, [str(task) for task in stage.accepted], log)
    result.findings += await broken_laws(stage.postgres_url)
    mine = {str(task): order for task, order in stage.accepted.items() if task not in before}
    result.tasks = len(mine)
    for task in tasks:
        if task.id in mine:
            result.statuses[task.status] += 1
            _compare(result, task, mine[task.id])
    ended = {row["task"]: row["at"] for row in await stage.fetch(SETTLED)}
    began = {task: int(task.replace("-", "")[:12], 16) / 1000 for task in mine}
    for each in struck:
        killed = recovery.of_killed_agents(log, each) if each.pids else []
        result.recoveries += killed or recovery.of_open_tasks(log, began, ended, each)


def _compare(result: Result, task: Any, order: Order) -> None:
    if task.status != order.expected:
        result.otherwise[f"{order.expected} -> {task.status}: {task.reason[:100]}"] += 1
