"""The support demo from beginning to end: kill at every place of a journal, and audit.

`headway demo support` kills the agent at each place in turn. `python -m headway.demo.support.sweep`
also kills the coordinator, and both, and freezes the agent, and does it all to the buyer too.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
from headway.agents.client import Client
from headway.cli import output
from headway.cli.addresses import DATA
from headway.coordinator.coordinator_child import COMMAND, CoordinatorChild
from headway.coordinator.embedded import Embedded
from headway.coordinator.logfile import LogFile
from headway.demo.narration import Narration
from headway.demo.stage import ANSWER_WITHIN_S, SERVERS, perform, stop_in_order_at_sigterm
from headway.demo.support.agent import MODEL_URL_VARIABLE
from headway.demo.support.audit import Case, Run, audit
from headway.demo.support.deaths import Place, places
from headway.demo.support.desk import Desk, Harm, Victim, desk
from headway.demo.support.downstream import SERVICES_FILE
from headway.demo.support.evidence import Evidence, read_evidence
from headway.demo.support.report import Report, compile_report, render
from headway.demo.support.sagas import KINDS, SUPPORT, Kind
from headway.demo.support.staff import Member
from headway.demo.support.stub import STUB_FILE

LANES_DEFAULT = 6
DESK = "desk"
ZOMBIES = 3  # of each kind of task


@dataclass(frozen=True, slots=True)
class Plan:
    """What is harmed: kinds of tasks, and who of those that are killed or frozen.

    `lanes` tasks are harmed at a time.
    """

    kinds: Sequence[Kind] = (SUPPORT,)
    victims: Sequence[Victim] = ("agent",)
    lanes: int = LANES_DEFAULT


EVERYTHING = Plan(KINDS, ("agent", "coordinator", "agent and coordinator", "zombie"))


def run_support(*, lanes: int, interactive: bool, as_json: bool, keep: Path | None) -> int:
    """`headway demo support`; see `run_sweep`. With `interactive`, a single task, which is killed
    while it waits for the person at the terminal."""
    if interactive:
        return _show(with_a_person, Plan(lanes=1), as_json, keep)
    return run_sweep(Plan(lanes=lanes), as_json=as_json, keep=keep)


def run_sweep(plan: Plan, *, as_json: bool = False, keep: Path | None = None) -> int:
    """Harm as planned and write the report to standard output; the exit status.

    The status is 0 only if killing made no difference. Data and logs stay in `keep`, or are
    removed. InvalidInput when `keep` is taken.
    """
    return _show(sweep, plan, as_json, keep)


Work = Callable[[Desk, Plan, Narration], Awaitable[tuple[list[Run], dict[str, int]]]]
"""All runs, the unharmed ones first, and how many places there are for each kind of task."""


async def sweep(opened: Desk, plan: Plan, narration: Narration) -> tuple[list[Run], dict[str, int]]:
    """Harm a task at each place of a journal, for all that is planned."""
    runs: list[Run] = []
    harms: list[Harm] = []
    found: dict[str, int] = {}
    for kind in plan.kinds:
        run, notes = await opened.unharmed(kind)
        runs.append(run)
        there = places(notes)
        found[kind] = len(there)
        narration.say(f"{kind}: done in {run.took_s:.1f} s, with {len(there)} places to be killed.")
        for victim in plan.victims:
            harms += (Harm(kind, place, victim) for place in _chosen(there, victim))

    def tell(run: Run) -> None:
        narration.say(f"{run.took_s:6.1f} s  {run.name}: {run.view.status}")
        narration.one_done()

    narration.begin(len(harms))
    runs += await opened.harmed(harms, tell)
    return runs, found


def _chosen(there: Sequence[Place], victim: Victim) -> Sequence[Place]:
    """All places, or for zombies, who sleep for long, a few in the middle."""
    if victim != "zombie":
        return there
    return [there[len(there) * (2 * number + 1) // (2 * ZOMBIES)] for number in range(ZOMBIES)]


async def with_a_person(
    opened: Desk, _plan: Plan, narration: Narration
) -> tuple[list[Run], dict[str, int]]:
    """One task, whose agent is killed when it begins to wait for the person at the terminal."""
    working = asyncio.create_task(opened.unharmed(SUPPORT))
    waiting = await opened.waits_for_a_person(until=working)
    if waiting is not None:
        details = orjson.dumps(waiting.details).decode()
        narration.say(
            f"{waiting.tool} {details} waits for your word. The agent that asked for it has just "
            "been killed, and another one takes over. In another terminal:"
        )
        narration.say(f"  export {DATA}={opened.data.parent / SERVERS}\n  headway parked")
    run, _ = await working
    return [run], {}


def _show(work: Work, plan: Plan, as_json: bool, keep: Path | None) -> int:
    show = partial(output.show, render=render, as_json=as_json)
    return perform(partial(_run, work, plan), show, what="tasks", keep=keep)


async def _run(work: Work, plan: Plan, data: Path, narration: Narration) -> Report:
    stop_in_order_at_sigterm()
    started = time.monotonic()
    folder = data / DESK
    folder.mkdir()
    narration.say("Starting PostgreSQL, NATS and a coordinator.")
    async with (
        Embedded(data / SERVERS, coordinators=0) as embedded,
        coordinating(embedded.coordinators_nats_url, embedded.postgres_url, folder) as coordinator,
        await Client.connect(embedded.nats_url, timeout=ANSWER_WITHIN_S) as client,
    ):
        narration.say("Starting a model, the shop's services, and the agents.")
        async with desk(
            folder,
            embedded.agents_nats_url,
            client,
            lanes=plan.lanes,
            coordinator=coordinator.pid_file,
            interactive=work is with_a_person,
        ) as opened:
            runs, found = await work(opened, plan, narration)
    case = Case(runs, evidence_in(folder), scripted=not os.environ.get(MODEL_URL_VARIABLE))
    return compile_report(case, audit(case), found, time.monotonic() - started)


@asynccontextmanager
async def coordinating(nats_url: str, postgres_url: str, folder: Path) -> AsyncIterator[Member]:
    """A coordinator that may be killed time and again, until the block ends."""
    name = "coordinator"
    log = LogFile(folder / "logs" / f"{name}.log")
    child = CoordinatorChild(
        name, log, command=COMMAND, nats_url=nats_url, postgres_url=postgres_url
    )
    member = Member(name, child.launch(), folder)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(member.stop)
        await member.start()
        await child.wait_ready()
        yield member


def evidence_in(folder: Path) -> Evidence:
    """What the services and the model's stand-in wrote down there, as far as they ran."""
    files = (folder / name for name in (STUB_FILE, SERVICES_FILE))
    return read_evidence(file for file in files if file.exists())
