"""The demo from beginning to end: an order desk whose processes are being killed, then an audit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from headway.agents.client import Client
from headway.cli import output
from headway.coordinator.embedded import Embedded
from headway.demo.audit import Case, audit
from headway.demo.crew import crew
from headway.demo.desk import Desk
from headway.demo.downstream import LEDGER_FILE, ORDERS_FILE
from headway.demo.evidence import read_evidence
from headway.demo.killer import Find, Killed, Returned, carry_out, plan
from headway.demo.narration import Narration
from headway.demo.orders import ORDERS_DEFAULT, Order, generate, read_orders, write_orders
from headway.demo.report import Report, compile_report, render
from headway.demo.stage import (
    ANSWER_WITHIN_S,
    SERVERS,
    finder,
    perform,
    stop_in_order_at_sigterm,
)
from headway.demo.together import together

KILLS_DEFAULT = 12
ORDERS_PER_S = 12.0
S_PER_KILL = 1.5  # orders keep coming at least so long for each kill

DESK = "desk"


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
    hint = ""
    if keep:
        hint = f" To look at any task, bring the servers back: headway up --data {keep / SERVERS}"
    show = partial(output.show, render=render, as_json=as_json)
    return perform(partial(_run, scenario), show, what="orders", keep=keep, hint=hint)


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
            kills = await _rush(scenario, desk, finder(embedded, agents), narration)
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
