"""The same random statements on PostgreSQL and on the simulated store: the same answers."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import UUID

import pytest
from conformance.truths import PostgresTruth, SimulatedTruth
from conformance.walks import AT, SAGA, Walk
from headway.coordinator.errors import StoreRefused
from headway.coordinator.queries import QUERIES
from headway.coordinator.store import Store
from simulation.store_tables import STATEMENTS

STEPS = 1_000
ORDERED = {
    *("history", "list_tasks", "list_open_tasks", "list_waiting_tasks", "open_tasks", "list_sagas"),
    *("journal_page", "journal_key", "waiting_gates", "list_documents", "document_history"),
    *("changes_of_collection", "audit", "audit_of_task", "tokens"),
}
NUMBERED = {"await_approval", "issue_token"}  # answer with an id of which only the order counts
NOT_SIMULATED = (
    dict.fromkeys(
        ("grants", "grant_key", "revoke_keys"),
        "users of nats-server: the simulated one lets all in",
    )
    | dict.fromkeys(
        (
            "adopt_spans",
            "claim_spans",
            "span_tasks",
            "span_histories",
            "span_journals",
            "spans_sent",
            "drop_spans",
        ),
        "no simulated coordinator sends telemetry",
    )
    | dict.fromkeys(
        ("webhooks", "make_webhook", "rotate_webhook", "remove_webhook", "take_delivery"),
        "nothing is sent to simulated coordinators by HTTP",
    )
    | dict.fromkeys(
        ("fates_of_letters", "deal_with_letter", "letter_is_replayed"),
        "no simulated person looks at dead letters",
    )
    | dict.fromkeys(
        ("tallies_since", "count_by_status", "count_waiting", "backlog"),
        "no simulated person looks at the overview",
    )
    | dict.fromkeys(
        ("note_fork", "forks_of_task", "journals_of_task"),
        "no simulated person forks a task, or takes its record away",
    )
)
"""Statements that no simulated process runs, each with the reason."""


def test_every_statement_is_simulated_or_known_not_to_be():
    assert set(QUERIES) == STATEMENTS.keys() | NOT_SIMULATED.keys()


@pytest.mark.parametrize("seed", [1, 2, None], ids=["1", "2", "fresh"])
async def test_random_statements_are_answered_alike(seed, shared_postgres, template):
    seed = random.randrange(2**32) if seed is None else seed
    print(f"seed {seed}")
    walk = Walk(random.Random(seed))
    real = await PostgresTruth.made(shared_postgres, template)
    stores = real.store(), SimulatedTruth().store()
    for store in stores:
        await store.sagas.register(SAGA, AT)
    for step in range(STEPS):
        if walk.rng.random() < 0.3:
            await commit_alike(walk, stores, step)
        else:
            name, arguments = walk.draw()
            answers = [await answer(store, name, arguments) for store in stores]
            assert answers[0] == answers[1], (step, name, arguments)
    await real.drop()


async def commit_alike(walk: Walk, stores: tuple[Store, Store], step: int) -> None:
    """Commit some changes, and learn what there is then."""
    drawn = [walk.change() for _ in range(walk.rng.choice((1, 1, 2, 3)))]
    changes = list({each.id: each for each in drawn if each is not None}.values())
    lost = [await outcome(store.commit(changes)) for store in stores]
    assert lost[0] == lost[1], (step, changes)
    loaded = [await store.load(walk.tasks) for store in stores]
    assert loaded[0] == loaded[1], (step, changes)
    walk.seen += loaded[0].values()
    for place in {walk.place(): None for _ in range(6)}:
        rows = await stores[0].fetch("load_journals", *([each] for each in place))
        for row in rows:
            if row["epoch"] is not None:
                walk.heads.setdefault(place, []).append((row["epoch"], row["seq"], row["undoing"]))


async def outcome(asked: Any) -> Any:
    try:
        return await asked
    except StoreRefused:
        return "refused"


async def answer(store: Store, name: str, arguments: tuple[Any, ...]) -> Any:
    """What a statement answers, in one form."""
    rows = await outcome(store.fetch(name, *arguments))
    if rows == "refused":
        return rows
    found = [{column: plain(name, column, value) for column, value in row.items()} for row in rows]
    return found if name in ORDERED else sorted(found, key=repr)


def plain(name: str, column: str, value: Any) -> Any:
    """A value where it may differ in form: jsonb's order, sums of floats, numbers of rows."""
    if (name, column) in {
        ("load_tasks", "attributes"),
        ("audit", "data"),
        ("audit_of_task", "data"),
    }:
        return json.loads(value)
    if column == "cost_usd":
        return round(value, 6)
    if column == "id" and (name in NUMBERED or str(value).startswith(("gate/", "act/"))):
        return "a number"
    return UUID(int=value.int) if isinstance(value, UUID) else value
