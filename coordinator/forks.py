"""Forking: a new task that keeps what another one finished, up to a step. See `sagas.fork`.

Always holds: a fork is noted before it is submitted, so that none goes unnoticed. A new id that was
used for the same fork before gives the same task again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.agents.codec import is_sealed_body
from headway.agents.fork_views import ForkReceipt, ForkRequest
from headway.agents.identity import new_task_id
from headway.coordinator.asking import Ask, accepted
from headway.coordinator.errors import Refusal
from headway.coordinator.records import Loaded, NewTask
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.sagas import inputs as i
from headway.sagas.circumstances import Fork
from headway.sagas.errors import ForkRefused
from headway.sagas.fork import kept

Read = Callable[[UUID], Awaitable[Loaded]]

SEALED = (
    "the task's payloads are encrypted for its own id, and no other task can read them; submit it "
    "anew instead"
)
OVERDUE = "the deadline of the task's manifest has passed; submit it anew with a later one"


class Forks:
    def __init__(self, store: Store, ask: Ask, read: Read, clock: Callable[[], int]) -> None:
        """`ask` puts a submission before the engine; `read` gives a task as it is."""
        self._store = store
        self._ask = ask
        self._read = read
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {"fork": typed(ForkRequest, ForkReceipt, self.fork)}

    async def fork(self, request: ForkRequest) -> ForkReceipt:
        """The new task, once it is accepted; Refusal (409) says why there can be none."""
        origin = await self._read(request.task)
        new = fork_of(origin, request)
        found = (await self._store.read([new.id])).get(new.id)
        if found is not None and found.input_digest != new.input_digest:
            raise Refusal(f"task {new.id} exists with another body; take a new id", 409)
        if found is not None:
            return _receipt(found, request, created=False)
        at = self._clock()
        fork = _checked(origin, request, at)
        await self._store.fetch(
            "note_fork", new.id, origin.id, request.step, at, request.by, request.reason
        )
        answer = await self._ask(new.id, i.Submit(at, fork=fork), new=new)
        return _receipt(accepted(answer), request, created=answer.changed)


def fork_of(origin: Loaded, request: ForkRequest) -> NewTask:
    """The task that is submitted. It belongs to whom the original belongs to."""
    told_apart = f"\0fork {origin.id} {request.step}".encode()
    return NewTask(
        request.new_task or new_task_id(),
        origin.definition.name,
        origin.input,
        hashlib.sha256(origin.input_digest + told_apart).digest(),
        origin.definition.version,
        origin.attributes,
        origin.manifest,
        owner=origin.owner,
        priority=origin.priority,
    )


def _checked(origin: Loaded, request: ForkRequest, at: int) -> Fork:
    """What the new task keeps; Refusal if it cannot be."""
    if is_sealed_body(origin.input):
        raise Refusal(SEALED, 409)
    if origin.manifest is not None and 0 < origin.manifest.deadline_ms <= at:
        raise Refusal(OVERDUE, 409)
    try:
        results = kept(origin.definition, origin.task, request.step)
    except ForkRefused as refused:
        raise Refusal(str(refused), 409) from refused
    return Fork(str(origin.id), request.step, results, request.by, request.reason)


def _receipt(loaded: Loaded, request: ForkRequest, *, created: bool) -> ForkReceipt:
    steps = loaded.task.steps
    return ForkReceipt(
        task=loaded.id,
        saga=loaded.definition.name,
        version=loaded.definition.version,
        created=created,
        forked_from=request.task,
        kept=[name for name, state in steps.items() if state.kept],
        anew=[name for name, state in steps.items() if not state.kept],
    )
