"""What telemetry costs: CPU time of a task, over all processes, and tasks a second, with it and
without.

A system with telemetry and one without stand side by side and get the same bursts in turn, so that
whatever else the machine does hits both; what is told is the ratio of each pair, as its median and
quartiles. The system with telemetry sends to a collector in a process of its own, which is not
counted. CPU time is counted until what is owed has been sent, without what it takes to do nothing.

    .venv/bin/python bench/telemetry.py --tasks 3000 --rounds 10 --only "metrics and all traces"
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from headway.agents import Client
from headway.coordinator.embedded import Embedded
from saga3 import WARM_UP_TASKS, Ended, Watch, agents, burst, many, saga

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
LINGER_S = 6.0  # after the last task has ended: spans are sent by then


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


Measured = tuple[dict[str, int], int]
"""CPU time of a task (µs) by process, and tasks a second."""


@dataclass(slots=True)
class System:
    client: Client
    watch: Watch
    ended: Ended
    idle_s: dict[str, float] = field(default_factory=dict)  # CPU time in LINGER_S without a task

    async def rest(self) -> None:
        """Look at what it takes to do nothing."""
        before = self.watch.cpu_s()
        await asyncio.sleep(LINGER_S)
        after = self.watch.cpu_s()
        self.idle_s = {name: after[name] - before[name] for name in before}

    async def burst(self, tasks: int) -> Measured:
        orders = [{"order": number} for number in range(tasks)]
        found = await burst(
            *(self.watch, tasks, self.ended, lambda: many(self.client, "saga3", orders)),
            linger_s=LINGER_S,
        )
        spent = {
            name: us - round(self.idle_s.get(name, 0.0) / tasks * 1e6)
            for name, us in found.cpu_us_per_task.items()
        }
        return spent, found.tasks_per_s


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
class Pairs:
    """What was measured of one variant, and beside it of none."""

    cpu: list[tuple[int, int]] = field(default_factory=list)  # µs a task
    rates: list[tuple[int, int]] = field(default_factory=list)  # tasks a second
    by_process: dict[str, list[int]] = field(default_factory=dict)  # µs a task more than without

    def take(
        self, with_it: tuple[dict[str, int], int], without: tuple[dict[str, int], int]
    ) -> None:
        self.cpu.append((sum(with_it[0].values()), sum(without[0].values())))
        self.rates.append((with_it[1], without[1]))
        for name, spent in with_it[0].items():
            self.by_process.setdefault(name, []).append(spent - without[0][name])

    def report(self) -> dict[str, object]:
        return {
            "cpu_us_per_task": [round(median(each)) for each in zip(*self.cpu, strict=True)],
            "cpu_ratio": _spread(self.cpu),
            "rate_ratio": _spread(self.rates),
            "more_us_per_task": {
                name: round(median(each)) for name, each in self.by_process.items()
            },
        }


def _spread(pairs: list[tuple[int, int]]) -> dict[str, float]:
    ratios = [with_it / without for with_it, without in pairs]
    low, middle, high = quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return {"quartile": round(low, 3), "median": round(middle, 3), "quartile3": round(high, 3)}


async def measure(variant: dict[str, str], url: str, tasks: int, rounds: int) -> Pairs:
    """As many pairs as there are rounds; who is first takes turns."""
    found = Pairs()
    async with system(variant, url) as with_it, system(OFF, url) as without:
        for number in range(rounds):
            measured = {}
            for each in (with_it, without) if number % 2 else (without, with_it):
                measured[each is with_it] = await each.burst(tasks)
            found.take(measured[True], measured[False])
            print(f"  {found.cpu[-1]} µs, {found.rates[-1]} tasks/s", file=sys.stderr)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=3_000, help="tasks submitted at once")
    parser.add_argument("--rounds", type=int, default=10, help="pairs of bursts")
    parser.add_argument("--only", action="append", choices=VARIANTS, help="these variants")
    chosen = parser.parse_args()
    report = {}
    with collector() as url:
        for name in chosen.only or VARIANTS:
            print(name, file=sys.stderr)
            pairs = asyncio.run(measure(VARIANTS[name], url, chosen.tasks, chosen.rounds))
            report[name] = pairs.report()
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
