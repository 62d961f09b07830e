"""The demo from beginning to end: an order desk whose processes are being killed, then an audit."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headway.agents.client import Client
from headway.cli import output
from headway.coordinator.embedded import Embedded
from headway.coordinator.supervisor import Supervised
from headway.demo.audit import Case, audit
from headway.demo.crew import crew
from headway.demo.datafolder import data_folder, log_into
from headway.demo.desk import Desk
from headway.demo.downstream import LEDGER_FILE, ORDERS_FILE
from headway.demo.evidence import read_evidence
from headway.demo.killer import COORDINATOR, NATS, Find, Killed, Returned, carry_out, plan
from headway.demo.narration import Narration
from headway.demo.orders import ORDERS_DEFAULT, Order, generate, read_orders, write_orders
from headway.demo.report import Report, compile_report, render
from headway.demo.together import together

KILLS_DEFAULT = 12
ORDERS_PER_S = 12.0
S_PER_KILL = 1.5  # orders keep coming at least so long for each kill

ANSWER_WITHIN_S = 60.0  # servers that are killed are back long before

SERVERS = "servers"
DESK = "desk"
LOG_FILE = "demo.log"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run is made of; the same scenario brings the same orders, troubles and kills."""

    orders: Sequence[Order]
    seed: int
    kills: int

    @property
    def span_s(self) -> float:
        """Seconds over which orders come in and processes are killed."""
        return max(len(self.orders) / ORDERS_PER_S, self.kills * S_PER_KILL)


def run_demo(
    *,
    orders: Path | None = None,
    count: int = ORDERS_DEFAULT,
    seed: int = 1,
    kills: int = KILLS_DEFAULT,
    as_json: bool = False,
    keep: Path | None = None,
) -> int:
    """Run it all and write the report to standard output; the exit status.

    The status is 0 only if the audit holds. `orders` is a file as `headway.demo.orders` describes
    it; without one, `count` orders are generated from `seed`. Data and logs stay in `keep`, or
    are removed. InvalidInput when the orders do not fit or `keep` is taken.
    """
    scenario = Scenario(read_orders(orders) if orders else generate(count, seed), seed, kills)
    with data_folder(keep) as data, log_into(data / LOG_FILE):
        with Narration(output.narration_console()) as narration:
            try:
                report = asyncio.run(_run(scenario, data, narration))
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
        if keep:
            narration.say(
                f"Data and logs are in {keep}. To look at any task, bring the servers back: "
                f"headway up --data {keep / SERVERS}"
            )
        elif not report.holds:
            narration.say("Run it again with --keep DIR to look into what the audit found.")
    output.show(report, render, as_json=as_json)
    return 0 if report.holds else 1


async def _run(scenario: Scenario, data: Path, narration: Narration) -> Report:
    stop_in_order_at_sigterm()
    started = time.monotonic()
    desk_data = data / DESK
    desk_data.mkdir()
    write_orders(desk_data / ORDERS_FILE, scenario.orders)
    narration.say("Starting PostgreSQL, NATS and a coordinator.")
    async with (
        Embedded(data / SERVERS) as embedded,
        await Client.connect(embedded.nats_url, timeout=ANSWER_WITHIN_S) as client,
    ):
        desk = Desk(client, narration)
        await desk.open()
        narration.say("Starting the downstream service and four agents.")
        async with crew(desk_data, scenario.seed, embedded.agents_nats_url, client) as agents:
            kills = await _rush(scenario, desk, _finder(embedded, agents), narration)
        narration.say("Asking for the status and history of each task, and auditing.")
        claims = await desk.claims()
    case = Case(scenario.orders, claims, read_evidence(desk_data / LEDGER_FILE))
    findings = audit(case.orders, case.claims, case.evidence)
    duration_s = time.monotonic() - started
    return compile_report(scenario.seed, case, findings, kills, desk.latencies_s(), duration_s)


async def _rush(scenario: Scenario, desk: Desk, find: Find, narration: Narration) -> list[Killed]:
    """Serve all orders while processes are being killed; return when all is settled."""
    kills: list[Killed] = []

    def tell(happened: Killed | Returned) -> None:
        if isinstance(happened, Killed):
            kills.append(happened)
        narration.tell(happened)

    narration.say(
        f"Open: {len(scenario.orders)} orders and {scenario.kills} kills "
        f"within {scenario.span_s:.0f} s, by seed {scenario.seed}."
    )
    narration.begin(len(scenario.orders))
    kills_to_come = plan(scenario.seed, scenario.kills, scenario.span_s)
    await together(
        [carry_out(kills_to_come, find, tell), desk.serve(scenario.orders, scenario.span_s)]
    )
    return kills


def _finder(embedded: Embedded, agents: dict[str, Supervised]) -> Find:
    roles = {
        **agents,
        COORDINATOR: embedded.processes["coordinator-1"],
        NATS: embedded.processes["nats"],
    }

    def find(role: str) -> int | None:
        return roles[role].pid if roles[role].running else None

    return find


def stop_in_order_at_sigterm() -> None:
    """Have SIGTERM cancel the current task, as SIGINT does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
