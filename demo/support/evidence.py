"""What the stub and the services wrote down, read for the audit without asking them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """One call that a service got; see `callbook.Outcome`."""

    service: str
    invocation: str
    outcome: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What took effect: on whom, and what."""

    service: str
    invocation: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """All calls and effects, in the order in which they came."""

    calls: tuple[LoggedCall, ...]
    effects: tuple[Effect, ...]


def read_evidence(paths: Iterable[Path]) -> Evidence:
    """Read the files of call books; sqlite3.Error when one is not that."""
    calls: list[LoggedCall] = []
    effects: list[Effect] = []
    for path in paths:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            calls += (
                LoggedCall(*row)
                for row in db.execute(
                    "select service, invocation, outcome, tokens from calls order by seq"
                )
            )
            effects += (
                Effect(*row)
                for row in db.execute(
                    "select service, invocation, subject, detail from effects order by seq"
                )
            )
    return Evidence(tuple(calls), tuple(effects))
