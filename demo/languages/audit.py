"""The audit of the travel demo: what the tasks claim, against the bookings. Pure.

ended       each trip succeeded or was compensated, as it had to
lost        each completed step has its booking, of the number that its result says
left over   nothing that is booked belongs to a trip that was undone
twice       no trip has two bookings of a kind
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from headway.agents.identity import ACTION, operation_id
from headway.agents.views import TaskView
from headway.demo.languages.bookings import Booking
from headway.demo.languages.trips import KINDS, Trip
from pydantic import BaseModel

Clause = Literal["ended", "lost", "left over", "twice"]
NUMBERS = {"flight": "flight", "hotel": "room", "letter": "letter"}
"""By step: the member of its result that is the number of the booking."""


class Finding(BaseModel):
    """Something that does not agree."""

    clause: Clause
    task: UUID
    detail: str


@dataclass(frozen=True, slots=True)
class Case:
    """The trips by task, the tasks as coordinators tell them, and the bookings."""

    trips: Mapping[UUID, Trip]
    views: Sequence[TaskView]
    bookings: Sequence[Booking]


def audit(case: Case) -> list[Finding]:
    """All that does not agree."""
    standing = {each.operation: each for each in case.bookings if each.state == "booked"}
    views = {view.task: view for view in case.views}
    found: list[Finding] = []
    for task, trip in case.trips.items():
        view = views.get(task)
        if view is None:
            found.append(Finding(clause="lost", task=task, detail="the task itself"))
            continue
        found += _of_trip(trip, view, standing)
    kinds = Counter((each.trip, each.kind) for each in standing.values())
    for (booked_for, kind), count in kinds.items():
        if count > 1:
            detail = f"{count} bookings of a {kind}"
            found.append(Finding(clause="twice", task=UUID(booked_for), detail=detail))
    return found


def _of_trip(trip: Trip, view: TaskView, standing: Mapping[str, Booking]) -> Iterator[Finding]:
    wanted = "succeeded" if trip.goes_well else "compensated"
    if view.status != wanted:
        detail = f"{view.status}, not {wanted}: {view.reason}"
        yield Finding(clause="ended", task=view.task, detail=detail)
    for step in view.steps:
        booking = standing.get(str(operation_id(view.task, step.name, ACTION)))
        if step.status == "completed":
            number = step.result[NUMBERS[step.name]]
            if booking is None or booking.number != number:
                detail = f"{step.name}: booking {number} is not there"
                yield Finding(clause="lost", task=view.task, detail=detail)
        elif booking is not None and step.name in KINDS:
            detail = f"{step.name} is {step.status}, and still booked"
            yield Finding(clause="left over", task=view.task, detail=detail)
