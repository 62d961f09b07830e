"""Submitting a task and waiting for what comes of it, in one request.

Always holds: whoever may see only its own tasks is shown no other's, though it knows the id and
the input. What is not settled in time is shown as it is; asked again, it is waited for again.
"""

from __future__ import annotations

from headway.agents import views
from headway.coordinator.asking import accepted
from headway.coordinator.caller import Caller
from headway.coordinator.errors import Refusal
from headway.coordinator.lookups import Lookups
from headway.coordinator.operations import TaskOperations
from headway.coordinator.roles import SUBMIT
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
        async with self._settled.coming(new.id) as news:
            loaded = accepted(await self._tasks.handed_in(new))
            if caller.role == SUBMIT and loaded.owner != caller.name:
                raise Refusal(f"task {new.id} exists, and is not yours", 409)
            return await self._lookups.once_settled(loaded, news, request.wait_s)
