"""When an agent is given nothing more for a while. Pure: decisions over outcomes and moments.

A circuit breaker for each agent: *closed*, it gets all its commands; *open*, none until a pause is
over; *probing*, one at a time, until one succeeds (closed again) or fails (open for twice as long);
*paused* by a person, none until a person says so.

What counts against an agent is what trying again may mend: a failure that may be retried, an
attempt that ran out of time. A rejection (`Reject`), a guard's refusal and a cancellation are
answers, not faults; so is a command that nobody began in time. To a probe, any answer is a success.

Always holds: it opens only when at least FAILURES_MIN attempts failed within WINDOW_MS, and those
are at least half of all; pauses grow up to PAUSE_MAX_MS, and differ by chance, so that several do
not probe together; a person's pause ends by a person's word only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple

from headway.coordinator.commands import agent_of
from headway.coordinator.decisions import Decision
from headway.coordinator.intake import Item
from headway.sagas import events as e
from headway.sagas import inputs as i

State = Literal["closed", "open", "probing", "paused"]

FAILURES_MIN = 20
FAILURES_SHARE = 0.5
WINDOW_MS = 10_000
SLOT_MS = 100
PAUSE_FIRST_MS = 1_000
PAUSE_MAX_MS = 60_000
PAUSE_JITTER = 0.2
CALM_MS = 60_000  # closed for so long, the next pause is a first one again

_IN_ITS_HANDS = frozenset({"start_to_close", "heartbeat"})


class Breaker(NamedTuple):
    """How it stands. `version` counts its changes, `trips` how often in a row it opened. `since_ms`
    and `until_ms` are by PostgreSQL's clock, for people; what is decided here goes by `begun_at`
    and, of an open one, `probe_at`, in ms of a clock that never jumps."""

    agent: str
    state: State = "closed"
    version: int = 0
    since_ms: int = 0
    until_ms: int | None = None
    trips: int = 0
    reason: str = ""
    by: str = ""
    begun_at: int = 0
    probe_at: int = 0

    @property
    def delivers(self) -> bool:
        """Whether the agent is given anything."""
        return self.state in ("closed", "probing")


class Turned(NamedTuple):
    """What it turns into; `open_ms` is how long it is to be open."""

    state: State
    open_ms: int | None = None
    trips: int = 0
    reason: str = ""


class Outcomes:
    """The outcomes of one agent's attempts within WINDOW_MS, counted by SLOT_MS."""

    __slots__ = ("_slots",)

    def __init__(self) -> None:
        self._slots: deque[list[int]] = deque(maxlen=WINDOW_MS // SLOT_MS)  # when, all, failed

    def add(self, at_ms: int, *, failed: bool) -> None:
        slots, slot = self._slots, at_ms // SLOT_MS
        if not slots or slots[-1][0] < slot:
            slots.append([slot, 0, 0])
        slots[-1][1] += 1
        slots[-1][2] += failed

    def since(self, at_ms: int) -> tuple[int, int]:
        """How many there were since then, and how many of them failed."""
        seen = [each for each in self._slots if each[0] >= at_ms // SLOT_MS]
        return sum(each[1] for each in seen), sum(each[2] for each in seen)


def turn(breaker: Breaker, outcomes: Outcomes, now: int, jitter: float) -> Turned | None:
    """What becomes of a breaker `now`, by the clock of `begun_at`; None: it stays as it is.
    `jitter` is from -1 to 1."""
    match breaker.state:
        case "closed":
            count, failed = outcomes.since(max(now - WINDOW_MS, breaker.begun_at))
            if failed < FAILURES_MIN or failed < FAILURES_SHARE * count:
                return None
            calm = now - breaker.begun_at > CALM_MS
            reason = f"{failed} of {count} attempts failed within {WINDOW_MS // 1000} s"
            return _open(0 if calm else breaker.trips, reason, jitter)
        case "open" if now >= breaker.probe_at:
            return Turned("probing", None, breaker.trips, breaker.reason)
        case "probing":
            count, failed = outcomes.since(breaker.begun_at)
            if failed:
                return _open(breaker.trips, breaker.reason, jitter)
            return Turned("closed", None, breaker.trips) if count else None
        case _:
            return None


def _open(trips: int, reason: str, jitter: float) -> Turned:
    pause_ms = min(PAUSE_FIRST_MS * 2 ** min(trips, 16), PAUSE_MAX_MS)
    return Turned("open", round(pause_ms * (1 + PAUSE_JITTER * jitter)), trips + 1, reason)


def outcome_of(item: Item, *, probed: bool = False) -> bool | None:
    """Whether an agent's attempt failed; None if what it says is no outcome that counts, for an
    agent that is `probed` or not."""
    happened = item.happened
    kind = type(happened)
    if kind is i.Succeeded:
        return False
    if kind is i.Failed:
        assert isinstance(happened, i.Failed)
        if happened.retryable and not happened.hold:
            return True
        return False if probed else None
    return True if kind is i.TimedOut else None


def overdue(decision: Decision) -> Iterator[str]:
    """The agents whose attempts the machine itself found out of time."""
    if decision.change is None or decision.definition is None:
        return
    for event in decision.change.events:
        if isinstance(event, e.AttemptTimedOut) and event.timeout in _IN_ITS_HANDS:
            yield agent_of(decision.definition.steps[event.step], event.phase)
