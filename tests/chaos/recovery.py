"""How soon work goes on after a fault: pure, read from the service's log afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from chaos.downstream import Entry


@dataclass(frozen=True)
class Struck:
    """A fault that was caused. `at`, seconds since 1970, is when recovery could begin: the kill, or
    the fault's end. `pids` are the agents' processes that were killed, if any."""

    at: float
    pids: tuple[int, ...] = ()


class Sign(NamedTuple):
    """That a task, or an operation, went on, so many seconds after recovery could begin."""

    seconds: float
    subject: str


def of_killed_agents(log: list[Entry], struck: Struck) -> list[Sign]:
    """For each call that the killed had begun and not seen answered: seconds until another process
    goes on with its operation."""
    open_calls: dict[tuple[str, str, int], str] = {}
    for entry in log:
        if entry.at > struck.at or entry.pid not in struck.pids:
            continue
        call = (entry.what, entry.id, entry.attempt)
        if entry.outcome:
            open_calls.pop(call, None)
        else:
            open_calls[call] = entry.of
    return _first_signs(
        ((entry.of, entry.at) for entry in log if entry.pid not in struck.pids),
        set(open_calls.values()),
        struck.at,
    )


def of_open_tasks(
    log: list[Entry], began: Mapping[str, float], ended: Mapping[str, float], struck: Struck
) -> list[Sign]:
    """For each task that was under way: seconds until the next sign of it, or its end."""
    under_way = {
        task
        for task, at in began.items()
        if at <= struck.at and ended.get(task, struck.at + 1) > struck.at
    }
    signs = [(entry.task, entry.at) for entry in log] + list(ended.items())
    return _first_signs(signs, under_way, struck.at)


def _first_signs(signs: Iterable[tuple[str, float]], awaited: set[str], after: float) -> list[Sign]:
    first: dict[str, float] = {}
    for subject, at in signs:
        if subject in awaited and at >= after:
            first[subject] = min(at, first.get(subject, at))
    return [Sign(at - after, subject) for subject, at in first.items()]
