"""Moving a task to another version of its saga: only if the history that it has fits that version.

Always holds: the history that was looked at is the one that the move is committed on; a task that
went on meanwhile is looked at again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.agents import views
from headway.coordinator.asking import Ask, accepted
from headway.coordinator.errors import Refusal
from headway.coordinator.histories import history_of
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.sagas import inputs as i
from headway.sagas.definition import Definition
from headway.sagas.moving import misfit

LOOKS_MAX = 5  # at a task that goes on while its history is read

Read = Callable[[UUID], Awaitable[Loaded]]
Show = Callable[[Loaded], Awaitable[views.TaskView]]


class Moves:
    def __init__(
        self,
        store: Store,
        ask: Ask,
        read: Read,
        show: Show,
        clock: Callable[[], int],
    ) -> None:
        """`ask` puts a move before the engine; `read` gives a task as it is, `show` its view."""
        self._store = store
        self._ask = ask
        self._read = read
        self._show = show
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {"move": typed(views.MoveRequest, views.TaskView, self.move)}

    async def move(self, request: views.MoveRequest) -> views.TaskView:
        """The task as it is under the version asked for; Refusal (409) says why it cannot be."""
        refused, seen = Refusal("", 409), 0
        for _ in range(LOOKS_MAX):
            loaded = await self._read(request.task)
            origin = loaded.definition.version
            if origin == request.to:
                return await self._show(loaded)
            if loaded.task.version == seen:
                break
            target = await self._definition(loaded.definition.name, request.to)
            await self._check(loaded, target)
            if request.dry_run:
                return await self._show(loaded)
            seen = loaded.task.version
            who, why = request.by, request.reason
            happened = i.Move(self._clock(), who, why, origin, request.to, seen)
            answer = await self._ask(request.task, happened, target=target)
            if answer.refusal is None:
                return await self._show(accepted(answer))
            refused = answer.refusal
        raise refused

    async def _definition(self, saga: str, version: int) -> Definition:
        found = await self._store.sagas.definition(saga, version)
        if found is None:
            raise Refusal(
                f"there is no version {version} of saga {saga!r}; register it first "
                "(headway saga register)",
                404,
            )
        return found

    async def _check(self, loaded: Loaded, target: Definition) -> None:
        own = await self._definition(loaded.definition.name, loaded.definition.version)
        history = await history_of(self._store, loaded)
        reason = misfit(own, target, history)
        if reason:
            raise Refusal(f"the task cannot be moved to version {target.version}: {reason}", 409)
