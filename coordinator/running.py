"""Submitting a task and waiting for what comes of it, in one request.

What is not settled in time is shown as it is; asked again, with the same id, it is waited for
again. A task that is there already and is not the caller's is a conflict, as for `submit`.
"""

from __future__ import annotations

from functools import partial

from headway.agents import views
from headway.coordinator.asking import accepted
from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal
from headway.coordinator.lookups import Lookups
from headway.coordinator.operations import TaskOperations
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed_by
from headway.coordinator.settled import Settled


class Running:
    def __init__(self, tasks: TaskOperations, lookups: Lookups, settled: Settled) -> None:
        self._tasks = tasks
        self._lookups = lookups
        self._settled = settled

    def operations(self) -> dict[str, Serve]:
        return {"run": typed_by(views.RunRequest, views.TaskView, self.run)}

    async def run(self, request: views.RunRequest, caller: Caller) -> views.TaskView:
        new = await self._tasks.new_task(request, caller)

        async def begin() -> Loaded:
            return accepted(await self._tasks.handed_in(new))

        look = partial(self._lookups.look, new.id)
        loaded = await self._settled.once(new.id, begin, look, request.wait_s)
        if loaded is None:
            raise Refusal(f"there is no task {new.id} any more", 404)
        return await self._lookups.show(loaded)
