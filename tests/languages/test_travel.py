"""The travel demo: its bookings, its audit, and the whole run under kills."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import nats
import nats.errors
import pytest
from headway.agents import Client
from headway.agents.identity import new_task_id, operation_id
from headway.agents.views import StepView, TaskView
from headway.demo.languages.audit import Case, Finding, audit
from headway.demo.languages.bare import BareAgent
from headway.demo.languages.bare_wire import BareWire
from headway.demo.languages.bookings import Book, Booking, bookings_in
from headway.demo.languages.report import Report
from headway.demo.languages.run import VICTIMS, say_what_became_of_the_letter
from headway.demo.languages.trips import KINDS, PIVOT, SAGA, Trip, saga, trips

HEADWAY = (sys.executable, "-P", "-m", "headway.cli.main")
SEED = 3
ENDS_WITHIN_S = 200.0
GOOD = Trip(traveller="Ada", mail="ada@mail.example", to="Oslo")
BAD = GOOD.model_copy(update={"to": "Atlantis"})
NUMBERS = {"flight": 1, "hotel": 2, "letter": 3}
RESULTS = {"flight": {"flight": 1}, "hotel": {"room": 2}, "letter": {"letter": 3}}


def test_a_trip_is_booked_by_three_agents_while_everyone_is_killed_once(tmp_path: Path) -> None:
    command = [*HEADWAY, "demo", "languages", "--count", "24", "--seed", str(SEED)]
    command += ["--kills", str(len(VICTIMS)), "--json", "--keep", "kept"]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, timeout=ENDS_WITHIN_S, check=False
    )
    print(f"seed {SEED}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    report = Report.model_validate_json(ran.stdout)
    assert (report.holds, report.findings) == (True, [])
    assert report.kills == dict.fromkeys(sorted(VICTIMS), 1)
    assert report.trips == {"compensated": 6, "succeeded": 18}
    assert [(each.steps, each.undone) for each in report.agents] == [(18, 4), (18, 2), (18, 0)]
    assert ran.stderr.count(b"SIGKILL") == len(VICTIMS)


def test_trips_are_decided_by_the_seed() -> None:
    assert trips(24, 1) == trips(24, 1) != trips(24, 2)
    assert [trip.goes_well for trip in trips(8, 1)] == [True, True, True, False] * 2
    assert {*saga().define().agents()} == {*KINDS.values()}


async def test_a_bare_agent_whose_connection_is_closed_for_good_ends(nats_url: str) -> None:
    nc = await nats.connect(nats_url)
    agent = BareAgent(BareWire(nc, "hotels", "one"), {})
    working = asyncio.create_task(agent.run(asyncio.Event()))
    await asyncio.sleep(0)
    await nc.close()
    with pytest.raises(nats.errors.ConnectionClosedError):
        await asyncio.wait_for(working, 10)


def test_a_booking_is_made_once_and_what_is_cancelled_first_is_barred(tmp_path: Path) -> None:
    path = tmp_path / "book.sqlite3"
    book = Book(path)
    assert book.book("a", "flight", "t") == book.book("a", "flight", "t") == (200, {"number": 1})
    assert book.cancel("a") == book.cancel("a") == (200, {"cancelled": True})
    assert book.book("a", "flight", "t") == (409, {"state": "cancelled"})
    assert book.cancel("b") == (200, {"cancelled": False})
    assert book.book("b", "flight", "t") == (409, {"state": "barred"})
    book.close()
    kept = [
        (each.operation, each.state, each.calls) for each in bookings_in(tmp_path / "book.sqlite3")
    ]
    assert kept == [("a", "cancelled", 5), ("b", "barred", 2)]


@pytest.mark.parametrize("sent", [True, False])
async def test_of_a_trip_that_is_parked_it_is_said_what_became_of_its_letter(
    tmp_path: Path, sent: bool
) -> None:
    task, said = new_task_id(), []

    class Person:
        async def settle(self, *told: Any, **_why: str) -> None:
            said.append(told)

    book = Book(tmp_path / "book.sqlite3")
    book.book(str(uuid4()), "letter", "another's")
    if sent:
        book.book(str(operation_id(task, PIVOT, "action")), "letter", str(task))
    await say_what_became_of_the_letter(cast(Client, Person()), task, tmp_path / "book.sqlite3")
    book.close()
    ended = ("happened", {"letter": 2}) if sent else ("did_not_happen", None)
    assert said == [(task, "letter", *ended)]


def _view(task: UUID, status: Any, steps: Any, results: dict[str, Any] = RESULTS) -> TaskView:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    return TaskView(
        task=task,
        saga=SAGA,
        saga_version=1,
        status=status,
        version=1,
        created_at=now,
        updated_at=now,
        steps=[
            StepView(
                name=name,
                action="a.b",
                status=steps,
                attempt=1,
                phase="action",
                result=results[name] if steps == "completed" else None,
            )
            for name in KINDS
        ],
    )


def _bookings(task: UUID, *kinds: str) -> list[Booking]:
    return [
        Booking(
            NUMBERS[kind], str(operation_id(task, kind, "action")), kind, str(task), "booked", 1
        )
        for kind in kinds
    ]


def _audited(task: UUID, trip: Trip, view: TaskView | None, booked: list[Booking]) -> list[str]:
    case = Case({task: trip}, [] if view is None else [view], booked)
    findings: list[Finding] = audit(case)
    return [f"{each.clause}: {each.detail}" for each in findings]


def test_a_trip_that_was_booked_or_undone_as_it_had_to_has_no_findings() -> None:
    task = new_task_id()
    assert (
        _audited(task, GOOD, _view(task, "succeeded", "completed"), _bookings(task, *KINDS)) == []
    )
    assert _audited(task, BAD, _view(task, "compensated", "compensated"), []) == []


def test_what_does_not_agree_is_found() -> None:
    task = new_task_id()
    done, undone = _view(task, "succeeded", "completed"), _view(task, "compensated", "compensated")
    assert _audited(task, GOOD, None, []) == ["lost: the task itself"]
    assert _audited(task, GOOD, done, _bookings(task, "flight", "letter")) == [
        "lost: hotel: booking 2 is not there"
    ]
    assert _audited(task, BAD, undone, _bookings(task, "flight")) == [
        "left over: flight is compensated, and still booked"
    ]
    assert _audited(task, GOOD, undone, []) == ["ended: compensated, not succeeded: "]
    twice = Booking(4, str(uuid4()), "hotel", str(task), "booked", 1)
    assert _audited(task, GOOD, done, [*_bookings(task, *KINDS), twice]) == [
        "twice: 2 bookings of a hotel"
    ]
