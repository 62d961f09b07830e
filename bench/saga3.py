"""Tasks per second and latency of a three-step saga, on this machine, with everything on it.

Client, one coordinator, one process with three agents, nats-server and PostgreSQL, with the
durability as shipped: commit before publish, PubAck before ack, fsync on, submissions flushed
before their PubAck. Afterwards SQL audits that every task ended and no history has a gap.

    make bench                       # or: .venv/bin/python bench/saga3.py --tasks 10000

Figures of one run are good as ratios within it; machines and hours differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import asyncpg
import psutil
from headway.agents import Client
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM, TASKS_STREAM
from headway.coordinator.embedded import Embedded
from headway.sagas import Saga

HERE = Path(__file__).parent
WARM_UP_TASKS = 500
HANDLERS = 256  # of each agent at a time
RUN_TIMEOUT_S = 120.0
AT_REST_POLL_S = 0.1
AUDIT = """
SELECT count(*) FILTER (WHERE t.status NOT IN ('succeeded', 'compensated')) AS open,
       count(*) FILTER (WHERE t.version <> h.rows OR h.first <> 1 OR h.last <> h.rows) AS gaps,
       count(*) AS tasks
FROM headway.tasks AS t
LEFT JOIN LATERAL (
    SELECT count(*) AS rows, min(version) AS first, max(version) AS last
    FROM headway.task_events WHERE task_id = t.id
) AS h ON true
"""


@dataclass(slots=True)
class Burst:
    """Many tasks at once: the rate, and what each process spent on one of them."""

    tasks: int
    accepted_s: float
    ended_s: float
    tasks_per_s: float
    cpu_us_per_task: dict[str, int]


@dataclass(slots=True)
class Report:
    published: list[Burst] = field(default_factory=list)
    submitted: list[Burst] = field(default_factory=list)
    compensated: list[Burst] = field(default_factory=list)
    one_at_a_time_ms: dict[str, float] = field(default_factory=dict)
    memory_mib: dict[str, int] = field(default_factory=dict)
    audit: dict[str, int] = field(default_factory=dict)


def saga(name: str, last: str) -> Saga:
    return (
        Saga(name)
        .step("one", "first.do", compensate="first.undo")
        .step("two", "second.do", compensate="second.undo", after="one")
        .step("three", last, compensate="third.undo", after="two")
    )


class Watch:
    """CPU and memory of each process, children included."""

    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids

    def cpu_s(self) -> dict[str, float]:
        return {
            name: sum(sum(process.cpu_times()[:2]) for process in self._family(name, pid))
            for name, pid in self._pids.items()
        }

    def memory_mib(self) -> dict[str, int]:
        """Unique set size: memory that would be freed if the process ended."""
        return {
            name: sum(process.memory_full_info().uss for process in self._family(name, pid)) >> 20
            for name, pid in self._pids.items()
        }

    def _family(self, name: str, pid: int) -> list[psutil.Process]:
        process = psutil.Process(pid)
        return [process] if name == "client" else [process, *process.children(recursive=True)]


async def burst(
    watch: Watch, tasks: int, ended: Ended, accept: Callable[[], Awaitable[Any]]
) -> Burst:
    before, began = watch.cpu_s(), time.perf_counter()
    ended.expect(tasks)
    await accept()
    accepted_s = time.perf_counter() - began
    await asyncio.wait_for(ended.all.wait(), RUN_TIMEOUT_S)
    ended_s = time.perf_counter() - began
    after = watch.cpu_s()
    spent = {name: round((after[name] - before[name]) / tasks * 1e6) for name in before}
    return Burst(tasks, round(accepted_s, 3), round(ended_s, 3), round(tasks / ended_s), spent)


class Ended:
    """Counts ends on the feed, which costs the client next to nothing."""

    def __init__(self) -> None:
        self.all = asyncio.Event()
        self._left = 0

    def expect(self, tasks: int) -> None:
        self.all.clear()
        self._left = tasks

    def count(self, *_message: object) -> None:
        self._left -= 1
        if self._left == 0:
            self.all.set()


async def measure(client: Client, watch: Watch, tasks: int, rounds: int) -> Report:
    report, ended = Report(), Ended()
    for kind in ("succeeded", "compensated"):
        await client.connection.wire.subscribe(f"hw.feed.*.*.{kind}", ended.count)
    orders = [{"order": number} for number in range(tasks)]
    await one_at_a_time(client, WARM_UP_TASKS // 10)
    report.one_at_a_time_ms = await one_at_a_time(client, 200)
    warm_up = orders[:WARM_UP_TASKS]
    await burst(watch, len(warm_up), ended, lambda: many(client, "saga3", warm_up))
    half = orders[: tasks // 2]
    for _ in range(rounds):
        for bursts, few, accept in (
            (report.published, orders, partial(many, client, "saga3", orders)),
            (report.submitted, orders, partial(client.submit_many, "saga3", orders)),
            (report.compensated, half, partial(many, client, "saga3-undone", half)),
        ):
            bursts.append(await burst(watch, len(few), ended, accept))
            await at_rest(client)
    report.memory_mib = watch.memory_mib()
    return report


async def at_rest(client: Client) -> None:
    """Until the streams are empty: tasks have ended before all that they left is put away."""
    streams = client.connection.nc.jetstream()
    left = True
    async with asyncio.timeout(RUN_TIMEOUT_S):
        while left:
            await asyncio.sleep(AT_REST_POLL_S)
            names = (TASKS_STREAM, COMMANDS_STREAM, EVENTS_STREAM)
            left = any([(await streams.stream_info(name)).state.messages for name in names])


async def many(client: Client, name: str, orders: list[dict[str, int]]) -> None:
    await client.publish_many(name, orders)


async def one_at_a_time(client: Client, count: int) -> dict[str, float]:
    """From the submission to the whole result in the client's hands."""
    took: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        view = await client.run("saga3", {"order": number}, timeout=RUN_TIMEOUT_S)
        took.append((time.perf_counter() - began) * 1000)
        assert view.status == "succeeded", view
    return {"p50": round(median(took), 2), "p99": round(quantiles(took, n=100)[98], 2)}


@contextmanager
def agents(nats_url: str) -> Iterator[int]:
    command = [sys.executable, "-m", "headway.cli.main", "agent"]
    names = [f"saga3_agents:{name}" for name in ("first", "second", "third")]
    process = subprocess.Popen(
        [*command, "--concurrency", str(HANDLERS), *names],
        cwd=HERE,
        env={**os.environ, "HEADWAY_NATS_URL": nats_url, "PYTHONSAFEPATH": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(15)


async def audit(postgres_url: str) -> dict[str, int]:
    connection = await asyncpg.connect(postgres_url)
    try:
        return dict(await connection.fetchrow(AUDIT))
    finally:
        await connection.close()


async def run(tasks: int, rounds: int) -> Report:
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
        async with Embedded(Path(folder) / "data") as embedded:
            with agents(embedded.agents_nats_url) as agents_pid:
                async with await Client.connect(embedded.nats_url) as client:
                    await client.register(saga("saga3", "third.do").define())
                    await client.register(saga("saga3-undone", "third.refuse").define())
                    pids = {name: each.pid for name, each in embedded.processes.items()}
                    watch = Watch({**pids, "agents": agents_pid, "client": os.getpid()})
                    report = await measure(client, watch, tasks, rounds)
            report.audit = await audit(embedded.postgres_url)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=10_000, help="tasks submitted at once")
    parser.add_argument("--rounds", type=int, default=3, help="how often each burst is repeated")
    chosen = parser.parse_args()
    report = asyncio.run(run(chosen.tasks, chosen.rounds))
    print(json.dumps(asdict(report), indent=2))
    for name in ("published", "submitted", "compensated"):
        rates = [each.tasks_per_s for each in getattr(report, name)]
        print(f"{name}: {median(rates):.0f} tasks/s (of {sorted(rates)})", file=sys.stderr)
    print(f"one at a time: {report.one_at_a_time_ms} ms", file=sys.stderr)
    whole = report.audit["open"] == 0 and report.audit["gaps"] == 0
    print(f"audit: {report.audit} {'holds' if whole else 'FAILS'}", file=sys.stderr)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
