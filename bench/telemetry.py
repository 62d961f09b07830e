"""What telemetry costs: the CPU time of a task, over all processes, with it and without.

Systems with and without telemetry run in turn, so that a slow hour hits both; each sends to a
collector in a process of its own, which is not counted.

    .venv/bin/python bench/telemetry.py --tasks 5000 --rounds 3
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from saga3 import run

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

VARIANTS: dict[str, dict[str, str]] = {
    "off": {"OTEL_SDK_DISABLED": "true"},
    "metrics": {"OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"},
    "metrics and a tenth of the traces": {
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.1",
    },
    "metrics and all traces": {"OTEL_LOGS_EXPORTER": "none"},
    "metrics, all traces and records": {},
}


@contextmanager
def collector() -> Iterator[str]:
    process = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def measure(variant: dict[str, str], url: str, tasks: int) -> tuple[int, int]:
    """CPU time of a task (µs, all processes) and tasks a second, of one system."""
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, **variant}
    os.environ.update(given)
    try:
        report = asyncio.run(run(tasks, 1))
    finally:
        for name in given:
            del os.environ[name]
    [burst] = report.published
    return sum(burst.cpu_us_per_task.values()), burst.tasks_per_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=5_000, help="tasks submitted at once")
    parser.add_argument("--rounds", type=int, default=3, help="systems of each kind")
    chosen = parser.parse_args()
    found: dict[str, list[tuple[int, int]]] = {name: [] for name in VARIANTS}
    with collector() as url:
        for _ in range(chosen.rounds):
            for name, variant in VARIANTS.items():
                found[name].append(measure(variant, url, chosen.tasks))
                print(f"{name}: {found[name][-1]}", file=sys.stderr)
    cpu = {name: median(us for us, _ in all_) for name, all_ in found.items()}
    rates = {name: median(rate for _, rate in all_) for name, all_ in found.items()}
    report = {
        name: {
            "cpu_us_per_task": cpu[name],
            "of_off": round(cpu[name] / cpu["off"], 3),
            "tasks_per_s": rates[name],
        }
        for name in VARIANTS
    }
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
