"""What a coordinator makes of a fork, and what it refuses; what a timeline tells of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from headway.agents.codec import Keyring, Sealing
from headway.agents.fork_views import ForkRequest
from headway.agents.identity import new_task_id
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal
from headway.coordinator.forks import OVERDUE, SEALED, Forks, fork_of
from headway.coordinator.records import Loaded
from headway.coordinator.timeline import timeline
from headway.sagas import Phase, Saga, Task, transition
from headway.sagas import inputs as i
from headway.sagas.circumstances import Fork

NOW = 1_800_000_000_000
AT = datetime.fromtimestamp(NOW / 1000, UTC)
ORIGIN = new_task_id()

DEFINITION = (
    Saga("shop", version=3)
    .step("charge", "pay.charge", compensate="pay.refund")
    .step("ship", "post.ship", after="charge", pivot=True)
    .define()
)


def shipped() -> Task:
    task = transition(DEFINITION, None, i.Submit(NOW)).task
    for step in ("charge", "ship"):
        done = i.Succeeded(NOW, step, Phase.ACTION, 1, f"{step} done")
        task = transition(DEFINITION, task, done).task
    return task


def origin(input: bytes = b'"o-1"', manifest: Manifest | None = None) -> Loaded:
    return Loaded(
        ORIGIN,
        DEFINITION,
        shipped(),
        input,
        b"digest",
        AT,
        AT,
        None,
        {"customer": "ada"},
        manifest,
        owner="ada",
        priority=7,
    )


class Noting:
    """A store with these tasks, which notes what is written to it."""

    def __init__(self, tasks: dict[UUID, Loaded]) -> None:
        self._tasks = tasks
        self.noted: list[tuple[Any, ...]] = []

    async def read(self, tasks: list[UUID]) -> dict[UUID, Loaded]:
        return {task: self._tasks[task] for task in tasks if task in self._tasks}

    async def fetch(self, *arguments: Any) -> list[Any]:
        self.noted.append(arguments)
        return []


async def refusal(loaded: Loaded, step: str = "ship", new_task: UUID | None = None) -> str:
    async def read(_task: UUID) -> Loaded:
        return loaded

    def ask(*_: Any, **__: Any) -> Any:
        raise AssertionError("it is not submitted")

    store: Any = Noting({ORIGIN: loaded})
    forks = Forks(store, ask, read, lambda: NOW)
    with pytest.raises(Refusal) as refused:
        await forks.fork(ForkRequest(task=ORIGIN, step=step, new_task=new_task))
    assert refused.value.code == 409
    assert store.noted == []
    return refused.value.reason


async def test_an_encrypted_task_is_not_forked() -> None:
    keyring = Keyring({"k": bytes(32)})
    sealed = Sealing(keyring, str(ORIGIN)).body(b'"o-1"')
    assert await refusal(origin(sealed)) == SEALED
    assert SEALED == (
        "the task's payloads are encrypted for its own id, and no other task can read them; submit "
        "it anew instead"
    )


async def test_a_task_whose_deadline_has_passed_is_not_forked() -> None:
    late = Manifest(deadline=AT - timedelta(seconds=1))
    assert await refusal(origin(manifest=late)) == OVERDUE
    assert OVERDUE == (
        "the deadline of the task's manifest has passed; submit it anew with a later one"
    )


async def test_what_the_machine_refuses_is_refused_in_its_words() -> None:
    assert await refusal(origin(), "pack") == (
        "there is no step 'pack' in this task; its steps are charge, ship"
    )


async def test_no_task_becomes_a_fork_by_being_named_as_one() -> None:
    assert await refusal(origin(), new_task=ORIGIN) == (
        f"task {ORIGIN} exists with another body; take a new id"
    )


def test_a_fork_is_of_the_same_version_for_the_same_customer() -> None:
    new = fork_of(origin(), ForkRequest(task=ORIGIN, step="ship"))
    assert (new.saga, new.version, new.input) == ("shop", 3, b'"o-1"')
    assert (new.owner, new.priority, new.attributes) == ("ada", 7, {"customer": "ada"})
    assert new.id != ORIGIN


def test_two_forks_are_the_same_if_task_and_step_are() -> None:
    digests = {
        step: fork_of(origin(), ForkRequest(task=ORIGIN, step=step)).input_digest
        for step in ("charge", "ship")
    }
    again = fork_of(origin(), ForkRequest(task=ORIGIN, step="ship")).input_digest
    assert again == digests["ship"]
    assert len({*digests.values(), b"digest"}) == 3


def test_a_timeline_tells_what_is_kept_and_from_where() -> None:
    fork = Fork(str(ORIGIN), "ship", {"charge": "r-1"}, "ada", "the carrier is back")
    begun = transition(DEFINITION, None, i.Submit(NOW, fork=fork))
    view = timeline(new_task_id(), DEFINITION, begun.events, NOW)
    assert {line.name: line.kept_from for line in view.steps} == {"charge": ORIGIN, "ship": None}
    assert [line.status for line in view.steps] == ["completed", "scheduled"]
    [mark] = [mark for mark in view.marks if mark.kind == "fork"]
    assert (mark.step, mark.name, mark.by, mark.reason) == (
        "ship",
        str(ORIGIN),
        "ada",
        "the carrier is back",
    )
    assert orjson.loads(view.model_dump_json())["compensations"] == []
