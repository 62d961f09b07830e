"""What telemetry costs: CPU time of a task, over all processes, and tasks a second, with it and
without.

A system with telemetry and one without stand side by side and get the same bursts in turn, so that
whatever else the machine does hits both; what is told is the ratio of each pair, as its median and
quartiles. The system with telemetry sends to a collector in a process of its own, which is not
counted, and neither is what a system takes that does nothing.

    .venv/bin/python bench/telemetry.py --tasks 1000 --rounds 30 --only "metrics and all traces"
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
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from headway.agents import Client
from headway.coordinator.embedded import Embedded
from saga3 import WARM_UP_TASKS, Burst, Ended, Watch, agents, burst, many, saga

SINK = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Sink(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_address[1], flush=True)
server.serve_forever()
"""

OFF = {"OTEL_SDK_DISABLED": "true"}
VARIANTS: dict[str, dict[str, str]] = {
    "off": OFF,  # against itself: what the measurement is worth
    "metrics": {"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"},
    "metrics and a tenth of the traces": {
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.1",
    },
    "metrics and all traces": {"OTEL_LOGS_EXPORTER": "none"},
    "metrics, all traces and records": {},
}
REST_S = 6.0  # for a look at what a system takes that does nothing


@contextmanager
def collector() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def environment(given: dict[str, str]) -> Iterator[None]:
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]


@dataclass(slots=True)
class System:
    client: Client
    watch: Watch
    ended: Ended
    idle: dict[str, float] = field(default_factory=dict)  # CPU seconds a second without a task

    async def rest(self) -> None:
        before = self.watch.cpu_s()
        await asyncio.sleep(REST_S)
        after = self.watch.cpu_s()
        self.idle = {name: (after[name] - before[name]) / REST_S for name in before}

    async def burst(self, tasks: int) -> Burst:
        orders = [{"order": number} for number in range(tasks)]
        return await burst(
            self.watch, tasks, self.ended, lambda: many(self.client, "saga3", orders)
        )


@asynccontextmanager
async def system(variant: dict[str, str], url: str) -> AsyncIterator[System]:
    """A system of its own, warm."""
    async with AsyncExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix="headway-bench-"))
        with environment({"OTEL_EXPORTER_OTLP_ENDPOINT": url, **variant}):
            embedded = await opened.enter_async_context(Embedded(Path(folder) / "data"))
            agents_pid = opened.enter_context(agents(embedded.agents_nats_url))
        client = await opened.enter_async_context(await Client.connect(embedded.nats_url))
        await client.register(saga("saga3", "third.do").define())
        pids = {name: each.pid for name, each in embedded.processes.items()}
        watch = Watch({**pids, "agents": agents_pid, "client": os.getpid()})
        found = System(client, watch, Ended())
        await client.connection.wire.subscribe("hw.feed.*.*.succeeded", found.ended.count)
        await found.burst(WARM_UP_TASKS)
        await found.rest()
        yield found


@dataclass(slots=True)
class Measured:
    """CPU time of a task by process (µs), and tasks a second."""

    cpu_us: dict[str, float]
    tasks_per_s: int


async def pair(systems: Sequence[System], tasks: int) -> list[Measured]:
    """A burst for each system, one after the other. CPU time is counted over both bursts, so that
    what one sends while the other works is counted; of the client, which both share, over each."""
    began, before = time.perf_counter(), [each.watch.cpu_s() for each in systems]
    bursts = [await each.burst(tasks) for each in systems]
    after, took_s = [each.watch.cpu_s() for each in systems], time.perf_counter() - began
    measured = []
    for place, each in enumerate(systems):
        cpu_us = {
            name: (spent - before[place][name] - each.idle[name] * took_s) / tasks * 1e6
            for name, spent in after[place].items()
        }
        cpu_us["client"] = bursts[place].cpu_us_per_task["client"]
        measured.append(Measured(cpu_us, bursts[place].tasks_per_s))
    return measured


async def measure(variant: dict[str, str], url: str, tasks: int, rounds: int) -> dict[str, object]:
    """As many pairs as there are rounds; who is first takes turns."""
    pairs: list[tuple[Measured, Measured]] = []
    async with system(variant, url) as with_it, system(OFF, url) as without:
        for number in range(rounds):
            if number % 2:
                first, second = await pair((with_it, without), tasks)
            else:
                second, first = await pair((without, with_it), tasks)
            pairs.append((first, second))
            print(f"  {_cpu(first):.0f}, {_cpu(second):.0f} µs a task", file=sys.stderr)
    return report(pairs)


def report(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, object]:
    """Medians: of both kinds, and of the ratios of pairs with their quartiles."""
    names = pairs[0][0].cpu_us
    return {
        "cpu_us_per_task": [round(median(map(_cpu, each))) for each in zip(*pairs, strict=True)],
        "cpu_ratio": _spread([_cpu(with_it) / _cpu(without) for with_it, without in pairs]),
        "rate_ratio": _spread([a.tasks_per_s / b.tasks_per_s for a, b in pairs]),
        "more_us_per_task": {
            name: round(median(a.cpu_us[name] - b.cpu_us[name] for a, b in pairs)) for name in names
        },
    }


def _cpu(measured: Measured) -> float:
    return sum(measured.cpu_us.values())


def _spread(ratios: list[float]) -> dict[str, float]:
    low, middle, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {"quartile": round(low, 3), "median": round(middle, 3), "quartile3": round(high, 3)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=1_000, help="tasks submitted at once")
    parser.add_argument("--rounds", type=int, default=30, help="pairs of bursts")
    parser.add_argument("--only", action="append", choices=VARIANTS, help="these variants")
    chosen = parser.parse_args()
    found = {}
    with collector() as url:
        for name in chosen.only or VARIANTS:
            print(name, file=sys.stderr)
            measuring = measure(VARIANTS[name], url, chosen.tasks, chosen.rounds)
            found[name] = asyncio.run(measuring)
    print(json.dumps(found, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
