"""Statements of limits, admissions, turns and breakers. Moments are in microseconds, as there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
from headway.coordinator.errors import StoreRefused
from simulation import store_values as v
from simulation.store_tables import (
    ActRow,
    AdmissionRow,
    BreakerRow,
    LimitRow,
    Tables,
    reads,
    rows_of,
    writes,
)
from simulation.store_values import Row, moment

_SCOPES = ("agent", "saga", "key")
_STATES = ("closed", "open", "probing", "paused")


@reads
def limits(tables: Tables) -> list[Row]:
    return [_limit(*each) for each in sorted(tables.limits.items())]


@writes
def set_limit(
    tables: Tables,
    scope: str,
    name: str,
    rate: float | None,
    burst: int,
    concurrency: int | None,
    by: str,
) -> list[Row]:
    v.text(scope, name, by)
    v.integer(burst, concurrency)
    counts = [each for each in (rate, burst, concurrency) if each is not None]
    if scope not in _SCOPES or min(counts) <= 0 or rate is concurrency is None:
        raise StoreRefused("CheckViolationError: a limit violates a check constraint")
    row = LimitRow(rate, burst, concurrency, by, tables.clock())
    tables.limits[scope, name] = row
    declared = orjson.dumps({"rate": rate, "burst": burst, "concurrency": concurrency})
    act = ActRow(row.set_at, "limit-set", by, f"{scope} {name}", data=declared)
    tables.acts.append(act)
    return [_limit((scope, name), row)]


@writes
def remove_limit(tables: Tables, scope: str, name: str, by: str) -> list[Row]:
    v.text(scope, name, by)
    if tables.limits.pop((scope, name), None) is None:
        return []
    what = f"{scope} {name}"
    tables.acts.append(ActRow(tables.clock(), "limit-removed", by, what))
    return [Row(what=what)]


@reads
def admissions_exist(tables: Tables) -> list[Row]:
    return [Row(exist=bool(tables.admissions))]


@writes
def queue_commands(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    for task, step, phase, attempt, epoch, agent, subject, places, priority in rows_of(*columns):
        before = tables.admissions.get((task, step))
        named = (phase, attempt, epoch)
        if before is not None and before.named >= named:
            continue
        waits = before is not None and before.state == "waiting"
        tables.admissions[task, step] = AdmissionRow(
            *named,
            agent,
            subject,
            orjson.loads(places),
            priority,
            attempt > 1 or epoch > 0,
            "waiting",
            before.since if waits and before is not None else _now(tables),
        )
    return []


@writes
def unqueue_commands(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    named = rows_of(*columns)
    upto = {(task, step): attempt for task, step, _, attempt in named}
    waiting = _named_waiting(tables, [each[:3] for each in named])
    found = [(place, row) for place, row in waiting if row.attempt <= upto[place]]
    for place, _ in found:
        del tables.admissions[place]
    return [Row(subject=row.subject, epoch=row.epoch) for _, row in found]


@reads
def waiting_commands(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    return [Row(subject=row.subject) for _, row in _named_waiting(tables, rows_of(*columns))]


@writes
def release_admissions(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    for task, step, phase, attempt in rows_of(*columns):
        row = tables.admissions.get((task, step))
        if row is not None and row.phase == phase and row.attempt <= attempt:
            del tables.admissions[task, step]
    return []


@writes
def take_admission_turn(tables: Tables, coordinator: UUID, lease_ms: int) -> list[Row]:
    holder, until = tables.admission_turn
    if holder != coordinator and _now(tables) <= until <= _now(tables) + 2_000 * lease_ms:
        return []
    tables.admission_turn = coordinator, _now(tables) + lease_ms * 1_000
    return [Row(now_us=_now(tables))]


@reads
def admission_usage(tables: Tables) -> list[Row]:
    use: dict[str, list[int]] = {}
    for row in tables.admissions.values():
        for place in row.places if row.state != "waiting" else ():
            counts = use.setdefault(place, [0, 0])
            counts[0] += 1
            counts[1] += row.state == "admitted"
    return [Row(place=place, open=counts[0], ready=counts[1]) for place, counts in use.items()]


@reads
def admission_candidates(
    tables: Tables, agents: Sequence[str], full: Sequence[str], limit: int, new_ms: int
) -> list[Row]:
    found = []
    for agent in agents:
        line = [
            (place, row)
            for place, row in tables.admissions.items()
            if row.agent == agent and row.state == "waiting" and not {*row.places} & {*full}
        ]
        newest = _now(tables) - new_ms * 1_000
        new = [each for each in line if not each[1].again and each[1].since > newest]
        line.sort(key=lambda each: (*_rank(each[1]), each[1].since))
        new.sort(key=lambda each: (*_rank(each[1]), -each[1].since))
        found += [_candidate(*each, fresh=False) for each in line[:limit]]
        found += [_candidate(*each, fresh=True) for each in new[:limit]]
    return found


@writes
def bucket_levels(tables: Tables, places: Sequence[str]) -> list[Row]:
    v.text(*places)
    found = []
    for place in dict.fromkeys(places):
        now = _now(tables)
        full, said = tables.buckets.setdefault(place, (0, 0))
        level = full - max(said - now, 0)
        found.append(Row(place=place, full_us=full, level_us=level, now_us=now))
    return found


@writes
def admit(tables: Tables, coordinator: UUID, *columns: Sequence[Any]) -> list[Row]:
    holder, until = tables.admission_turn
    if holder != coordinator or until <= _now(tables):
        return []
    found = []
    for task, step, *named in rows_of(*columns):
        row = tables.admissions.get((task, step))
        if row is not None and row.named == tuple(named) and row.state == "waiting":
            tables.admissions[task, step] = replace(row, state="admitted", since=_now(tables))
            found.append(Row(task_id=task, step=step))
    return found


@writes
def drop_admissions(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    for task, step, *named in rows_of(*columns):
        row = tables.admissions.get((task, step))
        if row is not None and row.named == tuple(named):
            del tables.admissions[task, step]
    return []


@writes
def requeue_admissions(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    for task, step, attempt, epoch in rows_of(*columns):
        row = tables.admissions.get((task, step))
        if row is not None and row.named[1:] == (attempt, epoch) and row.state == "admitted":
            tables.admissions[task, step] = replace(row, state="waiting")
    return []


@reads
def admissions_after(tables: Tables, after: UUID, limit: int, age_ms: int) -> list[Row]:
    oldest = _now(tables) - age_ms * 1_000
    rows = sorted(tables.admissions.items(), key=lambda each: each[0])
    old = [each for each in rows if each[0][0] > after and each[1].since < oldest]
    return [
        Row(task_id=task, step=step, phase=row.phase, attempt=row.attempt, epoch=row.epoch)
        for (task, step), row in old[:limit]
    ]


@writes
def ease_bucket(tables: Tables, place: str, empty_us: int) -> list[Row]:
    v.text(place)
    latest = _now(tables) + empty_us
    for each, bucket in tables.buckets.items():
        if (each == place or each.startswith(f"{place}/")) and bucket[0] > latest:
            tables.buckets[each] = (latest, *bucket[1:])
    return []


@writes
def prune_buckets(tables: Tables, kept_ms: int) -> list[Row]:
    oldest = _now(tables) - kept_ms * 1_000
    tables.buckets = {
        place: bucket for place, bucket in tables.buckets.items() if bucket[0] >= oldest
    }
    return []


@reads
def standings(tables: Tables, tasks: Sequence[UUID], steps: Sequence[str]) -> list[Row]:
    found = []
    for task, step in rows_of(tasks, steps):
        known = tables.tasks.get(task)
        if known is None:
            continue
        row = tables.admissions.get((task, step))
        names = ("phase", "attempt", "epoch", "state", "asked", "turn_us", "agent")
        found.append(
            Row(
                task_id=task,
                step=step,
                saga=known.saga,
                attributes=orjson.dumps(known.attributes).decode(),
                priority=known.priority,
                **{name: None if row is None else getattr(row, name) for name in names},
            )
        )
    return found


@writes
def give_turns(tables: Tables, *columns: Sequence[Any]) -> list[Row]:
    buckets, given = rows_of(*columns[:3]), rows_of(*columns[3:])
    if any(tables.buckets.get(place, (None,))[0] != read for place, read, _ in buckets):
        return [Row(fits=False)]
    tables.buckets |= {place: (level, _now(tables)) for place, _, level in buckets}
    for task, step, phase, attempt, epoch, agent, places, priority, asked, turn_us in given:
        before = tables.admissions.get((task, step))
        if before is not None and before.named > (phase, attempt, epoch):
            continue
        tables.admissions[task, step] = AdmissionRow(
            phase,
            attempt,
            epoch,
            agent,
            "" if before is None else before.subject,
            orjson.loads(places),
            priority if before is None else before.priority,
            attempt > 1 or epoch > 0,
            "begun",
            _now(tables),
            asked,
            turn_us,
        )
    return [Row(fits=True)]


@reads
def admissions_of_task(tables: Tables, task: UUID) -> list[Row]:
    line = [row for row in tables.admissions.values() if row.state == "waiting"]
    return [
        Row(
            step=step,
            state=row.state,
            agent=row.agent,
            places=row.places,
            before=sum(
                row.state == "waiting"
                and other.agent == row.agent
                and (*_rank(other), other.since) < (*_rank(row), row.since)
                for other in line
            ),
        )
        for (its, step), row in tables.admissions.items()
        if its == task
    ]


@reads
def waiting_by_agent(tables: Tables) -> list[Row]:
    waiting: dict[str, int] = {}
    for row in tables.admissions.values():
        if row.state == "waiting":
            waiting[row.agent] = waiting.get(row.agent, 0) + 1
    return [Row(agent=agent, waiting=count) for agent, count in waiting.items()]


@reads
def use_by_place(tables: Tables) -> list[Row]:
    use: dict[str, list[int]] = {}
    for row in tables.admissions.values():
        for place in row.places:
            use.setdefault(place, [0, 0])[row.state != "waiting"] += 1
    return [Row(place=place, waiting=both[0], open=both[1]) for place, both in use.items()]


@reads
def breakers(tables: Tables) -> list[Row]:
    return [_breaker(tables, *each) for each in sorted(tables.breakers.items())]


@writes
def turn_breaker(
    tables: Tables,
    agent: str,
    version: int,
    state: str,
    open_ms: int | None,
    trips: int,
    reason: str,
    by: str,
    act: str,
) -> list[Row]:
    v.text(agent, state, reason, by, act)
    v.integer(version, trips)
    v.bigint(open_ms)
    if state not in _STATES or (open_ms is not None) != (state == "open"):
        raise StoreRefused("CheckViolationError: a breaker violates a check constraint")
    before = tables.breakers.get(agent)
    if before is not None and before.version != version:
        return []
    now = tables.clock()
    until = None if open_ms is None else now + open_ms
    tables.breakers[agent] = BreakerRow(state, version + 1, now, until, trips, reason, by)
    if act:
        tables.acts.append(ActRow(now, act, by, f"agent {agent}", reason))
    return [_breaker(tables, agent, tables.breakers[agent])]


def _now(tables: Tables) -> int:
    return tables.clock() * 1_000


def _limit(place: tuple[str, str], row: LimitRow) -> Row:
    scope, name = place
    return Row(
        scope=scope,
        name=name,
        rate=row.rate,
        burst=row.burst,
        concurrency=row.concurrency,
        set_by=row.set_by,
        set_at=moment(row.set_at),
    )


def _named_waiting(
    tables: Tables, named: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[tuple[UUID, str], AdmissionRow]]:
    for task, step, subject in named:
        row = tables.admissions.get((task, step))
        if row is not None and row.subject == subject and row.state == "waiting":
            yield (task, step), row


def _rank(row: AdmissionRow) -> tuple[bool, int]:
    return row.phase != "compensation", -row.priority


def _candidate(place: tuple[UUID, str], row: AdmissionRow, *, fresh: bool) -> Row:
    task, step = place
    return Row(
        task_id=task,
        step=step,
        phase=row.phase,
        attempt=row.attempt,
        epoch=row.epoch,
        agent=row.agent,
        places=row.places,
        priority=row.priority,
        fresh=fresh,
        since_us=row.since,
    )


def _breaker(tables: Tables, agent: str, row: BreakerRow) -> Row:
    return Row(
        agent=agent,
        state=row.state,
        version=row.version,
        reason=row.reason,
        by=row.by,
        trips=row.trips,
        since=row.since,
        until=row.until,
        now=tables.clock(),
    )
