"""What a step waits for, in words, where that is not its agent's answer."""

from __future__ import annotations

from datetime import UTC, datetime

import asyncpg
from headway.agents.views import ABSENT
from headway.coordinator.admission_limits import Declared
from headway.coordinator.breaker import Breaker
from headway.coordinator.breakers import Breakers
from headway.coordinator.commands import agent_of
from headway.coordinator.limits import Limits
from headway.coordinator.presence import Roll
from headway.coordinator.records import Loaded
from headway.coordinator.store import Store


class Explanations:
    def __init__(self, store: Store, declared: Declared, breakers: Breakers, roll: Roll) -> None:
        self._store = store
        self._declared = declared
        self._breakers = breakers
        self._roll = roll

    async def __call__(self, loaded: Loaded) -> dict[str, str]:
        """By step: a slot, if a limit keeps it waiting; its agent, if that is given nothing. That
        no instance of the agent is connected is told with either."""
        agents = {
            name: agent_of(loaded.definition.steps[name], state.phase)
            for name, state in loaded.task.steps.items()
            if state.outstanding and loaded.definition.steps[name].kind == "action"
        }
        present = self._roll.instances()
        found = {
            step: of_breaker(breaker, breaker.agent in present)
            for step, agent in agents.items()
            if (breaker := self._breakers.of(agent)).state != "closed"
        }
        if agents and self._declared.active:
            for row in await self._store.fetch("admissions_of_task", loaded.id):
                if row["state"] == "waiting" and row["step"] not in found:
                    found[row["step"]] = of_row(row, self._declared.limits, row["agent"] in present)
        return found


def of_row(row: asyncpg.Record, limits: Limits, present: bool) -> str:
    """What a command in the line waits for; `present`: its agent is."""
    held = limits.limiting(row["places"]).values()
    slots = "; ".join(f"{limit.scope} {limit.name}: {limit}" for limit in held)
    before = row["before"]
    queue = "it is the next" if not before else f"{before} before it"
    first = "" if present else f"agent {row['agent']!r} ({ABSENT}), then "
    return f"{first}a slot of {slots or row['agent']}, {queue}"


def of_breaker(breaker: Breaker, present: bool) -> str:
    """What an agent's command waits for while that agent is given none, or one at a time;
    `present`: an instance of it is connected."""
    match breaker.state:
        case "paused":
            how = f"paused by {breaker.by or 'a person'} since {_moment(breaker.since_ms)}"
        case "probing":
            how = f"probed with one command at a time since {_moment(breaker.since_ms)}"
        case _:
            since = _moment(breaker.since_ms)
            how = f"given none since {since}, next probe {_moment(breaker.until_ms or 0)}"
    reason = f": {breaker.reason}" if breaker.reason else ""
    absent = "" if present else f"{ABSENT}; "
    return f"agent {breaker.agent!r} ({absent}{how}{reason})"


def _moment(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms / 1_000, UTC):%Y-%m-%d %H:%M:%SZ}"
