"""The travel demo from beginning to end: one saga, three languages, kills, and an audit."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

from headway.agents.client import Client
from headway.agents.errors import Conflict, Unavailable
from headway.agents.identity import ACTION, new_task_id, operation_id
from headway.agents.views import TaskView
from headway.cli import output
from headway.coordinator.embedded import Embedded
from headway.demo.killer import COORDINATOR, NATS, Find, Killed, Returned, carry_out, plan
from headway.demo.languages.audit import Case
from headway.demo.languages.bookings import FILE, bookings_in
from headway.demo.languages.crew import LANGUAGES, commands, crew
from headway.demo.languages.report import Report, compile_report, render
from headway.demo.languages.trips import PIVOT, SAGA, Trip, saga, trips
from headway.demo.narration import Narration
from headway.demo.stage import (
    ANSWER_WITHIN_S,
    SERVERS,
    finder,
    perform,
    stop_in_order_at_sigterm,
)
from headway.demo.together import together

TRIPS_DEFAULT = 60
KILLS_DEFAULT = 10
TRIPS_PER_S = 8.0
S_PER_KILL = 1.5
SETTLE_WITHIN_S = 120.0
AGENCY = "agency"
VICTIMS = (*LANGUAGES, COORDINATOR, NATS)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run is made of; the same scenario brings the same trips and kills."""

    count: int
    seed: int
    kills: int

    @property
    def span_s(self) -> float:
        """Seconds over which trips come in and processes are killed."""
        return max(self.count / TRIPS_PER_S, self.kills * S_PER_KILL)


def run_languages(
    *, count: int, seed: int, kills: int, as_json: bool = False, keep: Path | None = None
) -> int:
    """Run it all and write the report to standard output; the exit status, 0 only if the audit
    holds. Data and logs stay in `keep`, or are removed. MissingExtra: Node.js is not there."""
    scenario = Scenario(count, seed, kills)

    def begin(data: Path, narration: Narration) -> Coroutine[Any, Any, Report]:
        narration.say("Making the agent in TypeScript: once it is made, that takes no time.")
        return _run(scenario, data, commands(data), narration)

    show = partial(output.show, render=render, as_json=as_json)
    return perform(begin, show, what="trips", keep=keep)


async def _run(
    scenario: Scenario, data: Path, starts: Mapping[str, tuple[str, ...]], narration: Narration
) -> Report:
    stop_in_order_at_sigterm()
    started = time.monotonic()
    agency = data / AGENCY
    agency.mkdir()
    narration.say("Starting PostgreSQL, NATS and a coordinator.")
    async with (
        Embedded(data / SERVERS) as embedded,
        await Client.connect(embedded.nats_url, timeout=ANSWER_WITHIN_S) as client,
    ):
        await client.register(saga().define())
        narration.say("Starting the bookings, and three agents with keys of their own.")
        async with crew(agency, embedded, client, starts) as agents:
            find = finder(embedded, agents)
            kills, asked = await _rush(scenario, client, find, agency / FILE, narration)
        narration.say("Asking for the status and history of each trip, and auditing.")
        views = [await client.status(task) for task in asked]
        taken_over = await _taken_over(client, views)
    case = Case(asked, views, bookings_in(agency / FILE))
    duration_s = time.monotonic() - started
    return compile_report(scenario.seed, case, kills, taken_over, duration_s)


async def _rush(
    scenario: Scenario, client: Client, find: Find, book: Path, narration: Narration
) -> tuple[list[str], dict[UUID, Trip]]:
    """See all trips through while processes are being killed; who was killed, and the tasks."""
    kills: list[str] = []
    asked: dict[UUID, Trip] = {}

    def tell(happened: Killed | Returned) -> None:
        if isinstance(happened, Killed):
            kills.append(happened.victim)
        narration.tell(happened)

    async def see_through(trip: Trip, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        narration.task_filed()
        task = new_task_id()
        asked[task] = trip
        await client.submit(SAGA, trip, task=task)
        view = await client.result(task, timeout=SETTLE_WITHIN_S)
        while view.status == "parked":
            with suppress(Unavailable, Conflict):  # it may have been heard, or is said again
                await say_what_became_of_the_letter(client, task, book)
            view = await client.result(task, timeout=SETTLE_WITHIN_S)
        narration.task_settled(view.status)
        narration.one_done()

    narration.say(
        f"{scenario.count} trips and {scenario.kills} kills within {scenario.span_s:.0f} s, by "
        f"seed {scenario.seed}."
    )
    narration.begin(scenario.count)
    pause_s = scenario.span_s / scenario.count
    await together(
        [
            carry_out(plan(scenario.seed, scenario.kills, scenario.span_s, VICTIMS), find, tell),
            *(
                see_through(trip, number * pause_s)
                for number, trip in enumerate(trips(scenario.count, scenario.seed))
            ),
        ]
    )
    return kills, asked


async def say_what_became_of_the_letter(client: Client, task: UUID, book: Path) -> None:
    """As a person does, who looks into the bookings. It is asked for past the point of no return,
    when an agent was killed over the letter and the next one rejected it."""
    operation = str(operation_id(task, PIVOT, ACTION))
    sent = [each.number for each in bookings_in(book) if each.operation == operation]
    result = {PIVOT: sent[0]} if sent else None
    outcome: Literal["happened", "did_not_happen"] = "happened" if sent else "did_not_happen"
    await client.settle(task, PIVOT, outcome, result, reason="looked into the bookings", by="demo")


async def _taken_over(client: Client, views: Sequence[TaskView]) -> Counter[str]:
    """How many attempts another process took over, or were published again, by step."""
    found: Counter[str] = Counter()
    for view in views:
        for entry in await client.history(view.task):
            if entry.type in ("AttemptClaimed", "AttemptRepublished"):
                found[entry.data["step"]] += 1
    return found
