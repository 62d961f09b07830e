"""Entries per second and latency of journals, on this machine, with everything on it.

Agents, one coordinator, nats-server and PostgreSQL, with the durability as shipped: an append is
answered once it is committed, fsync on. Each agent opens a journal of its own and then appends, one
request after another as it must, the intent and the result of each call. Afterwards SQL audits that
every journal is whole.

    .venv/bin/python bench/journal.py --entries 20000

Figures of one run are good as ratios within it; machines and hours differ.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median, quantiles
from uuid import UUID

import asyncpg
import psutil
from headway.agents import Client
from headway.agents.api import Api
from headway.agents.connection import Connection, connect
from headway.agents.entries import (
    JournalAppend,
    JournalAppended,
    JournalOpen,
    JournalOpened,
    NewEntry,
    Usage,
)
from headway.coordinator.embedded import Embedded
from headway.sagas import Saga

AGENTS = (1, 16, 256)
CALLS_MIN = 4  # of each agent
WARM_UP = 8, 25  # agents, calls
ARGUMENTS = {"order": 17, "customer": "c-9", "amount": {"currency": "EUR", "cents": 4_990}}
RESULT = {"receipt": "r-17", "text": "x" * 400}
AUDIT = """
SELECT count(*) AS journals,
       count(*) FILTER (WHERE h.seq <> e.entries OR e.last <> e.entries) AS gaps,
       count(*) FILTER (WHERE h.unsettled::text <> '{}') AS unsettled,
       coalesce(sum(e.entries), 0)::bigint AS entries
FROM headway.journals AS h
CROSS JOIN LATERAL (
    SELECT count(*) AS entries, coalesce(max(j.seq), 0) AS last
    FROM headway.journal_entries AS j
    WHERE j.task_id = h.task_id AND j.step = h.step AND j.phase = h.phase
) AS e
"""


@dataclass(slots=True)
class Run:
    """So many agents at once: the rate, and how long one append took, in ms."""

    agents: int
    entries: int
    entries_per_s: int
    append_ms: dict[str, float]
    open_ms: dict[str, float]
    cpu_us_per_entry: dict[str, int]


@dataclass(slots=True)
class Report:
    runs: list[Run] = field(default_factory=list)
    audit: dict[str, int] = field(default_factory=dict)


class Author:
    """An agent's side of one journal."""

    def __init__(self, connection: Connection, task: UUID) -> None:
        self._api = Api(connection, agent="writer")
        self._operation = {"task": task, "step": "do", "phase": "action"}
        self._epoch = self._seq = 0
        self.append_s: list[float] = []
        self.open_s = 0.0

    async def open(self) -> None:
        request = JournalOpen(**self._operation, attempt=1, epoch=0, worker="w")
        began = time.perf_counter()
        self._epoch = (await self._api.ask("journal.open", request, JournalOpened)).epoch
        self.open_s = time.perf_counter() - began

    async def work(self, calls: int) -> None:
        for number in range(calls):
            about = {"key": f"look#{number + 1}", "tool": "look"}
            digest = f"{number:064x}"
            await self._append(
                NewEntry(kind="intent", **about, arguments_digest=digest, data=ARGUMENTS)
            )
            usage = Usage(input_tokens=900, output_tokens=100, cost_usd=0.002)
            await self._append(
                NewEntry(kind="result", **about, data=RESULT, usage=usage, took_ms=5)
            )

    async def _append(self, entry: NewEntry) -> None:
        request = JournalAppend(
            **self._operation, epoch=self._epoch, seq=self._seq + 1, entries=[entry]
        )
        began = time.perf_counter()
        self._seq = (await self._api.ask("journal.append", request, JournalAppended)).seq
        self.append_s.append(time.perf_counter() - began)


def cpu_s(pids: dict[str, int]) -> dict[str, float]:
    """CPU of each process, children included."""
    spent = {}
    for name, pid in pids.items():
        process = psutil.Process(pid)
        family = [process] if name == "agents" else [process, *process.children(recursive=True)]
        spent[name] = sum(sum(each.cpu_times()[:2]) for each in family)
    return spent


async def run(
    client: Client, connection: Connection, pids: dict[str, int], agents: int, calls: int
) -> Run:
    receipts = await client.submit_many("journal", [{"n": n} for n in range(agents)])
    authors = [Author(connection, receipt.task) for receipt in receipts]
    await asyncio.gather(*(author.open() for author in authors))
    before, began = cpu_s(pids), time.perf_counter()
    await asyncio.gather(*(author.work(calls) for author in authors))
    took_s, after = time.perf_counter() - began, cpu_s(pids)
    entries = 2 * calls * agents
    spent = {name: round((after[name] - before[name]) / entries * 1e6) for name in before}
    appends = [each for author in authors for each in author.append_s]
    opens = [author.open_s for author in authors]
    return Run(agents, entries, round(entries / took_s), ms(appends), ms(opens), spent)


def ms(took_s: Sequence[float]) -> dict[str, float]:
    if len(took_s) < 2:
        return {"p50": round(took_s[0] * 1000, 2)}
    p99 = quantiles(took_s, n=100)[98]
    return {"p50": round(median(took_s) * 1000, 2), "p99": round(p99 * 1000, 2)}


async def measure(entries: int) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
        async with Embedded(Path(folder) / "data") as embedded:
            async with (
                await Client.connect(embedded.nats_url) as client,
                await connect(embedded.agents_nats_url, name="writers") as connection,
            ):
                saga = Saga("journal").step("do", "writer.do", read_only=True)
                await client.register(saga.define())
                pids = {name: each.pid for name, each in embedded.processes.items()}
                pids["agents"] = psutil.Process().pid
                await run(client, connection, pids, *WARM_UP)
                for agents in AGENTS:
                    calls = max(CALLS_MIN, entries // (2 * agents))
                    calls = min(calls, 1_000)
                    report.runs.append(await run(client, connection, pids, agents, calls))
            database = await asyncpg.connect(embedded.postgres_url)
            report.audit = dict(await database.fetchrow(AUDIT))
            await database.close()
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--entries", type=int, default=20_000, help="entries in each run, about")
    report = asyncio.run(measure(parser.parse_args().entries))
    print(json.dumps(asdict(report), indent=2))
    for each in report.runs:
        print(
            f"{each.agents} agents: {each.entries_per_s} entries/s, {each.append_ms} ms",
            file=sys.stderr,
        )
    whole = report.audit["gaps"] == 0 and report.audit["unsettled"] == 0
    print(f"audit: {report.audit} {'holds' if whole else 'FAILS'}", file=sys.stderr)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
