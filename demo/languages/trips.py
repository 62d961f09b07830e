"""The saga of the travel demo, whose steps are served in three languages, and its trips.

flight (TypeScript)  →  hotel (bare nats-py)  →  letter (the SDK; the point of no return)
"""

from __future__ import annotations

import random

from headway.sagas.builder import Saga
from headway.sagas.retry import Retry
from pydantic import BaseModel

SAGA = "trip"
KINDS = {"flight": "flights", "hotel": "hotels", "letter": "letters"}
"""By step: the agent that serves it. A step books what it is named after."""

PIVOT = "letter"

PLACES = ("Lisbon", "Oslo", "Kyoto", "Quito")
NO_FLIGHT, NO_HOTEL = "the moon", "Atlantis"

_BRISK = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=6)
_DOGGED = Retry(initial_interval=0.1, maximum_interval=0.5, maximum_attempts=0)


class Trip(BaseModel):
    """What a traveller wants."""

    traveller: str
    mail: str
    to: str

    @property
    def goes_well(self) -> bool:
        """Whether it can be booked; if not, all that was booked for it is cancelled."""
        return self.to in PLACES and "@" in self.mail


def saga() -> Saga:
    """Book a flight and a room, and confirm them."""
    made = Saga(SAGA, version=1, input=Trip)
    for name in ("flight", "hotel"):
        made.step(
            name,
            f"{KINDS[name]}.book",
            compensate=f"{KINDS[name]}.cancel",
            after=() if name == "flight" else "flight",
            retry=_BRISK,
            compensation_retry=_DOGGED,
        )
    made.step(PIVOT, "letters.confirm", after="hotel", pivot=True, retry=_BRISK)
    return made


def trips(count: int, seed: int) -> list[Trip]:
    """As many trips; of four, one cannot be booked."""
    chance = random.Random(f"trips/{seed}")  # noqa: S311 - reproducible, not secret
    made = []
    for number in range(count):
        trip = Trip(
            traveller=f"traveller {number}",
            mail=f"traveller-{number}@mail.example",
            to=chance.choice(PLACES),
        )
        trouble: list[dict[str, str]] = [{"to": NO_FLIGHT}, {"to": NO_HOTEL}, {"mail": "at home"}]
        wrong = trouble[number // 4 % 3] if number % 4 == 3 else {}
        made.append(trip.model_copy(update=wrong))
    return made
