"""The operations `timeline` and `step`: a history, drawn, and one step whole. Change nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from headway.agents.step_views import StepDetail, StepLook
from headway.agents.timeline_views import TimelineRequest, TimelineView
from headway.coordinator.errors import Refusal
from headway.coordinator.histories import history_of
from headway.coordinator.portraits import step_detail
from headway.coordinator.records import Loaded
from headway.coordinator.serving import Serve, typed
from headway.coordinator.store import Store
from headway.coordinator.timeline import timeline
from headway.sagas.task import Phase

Read = Callable[[UUID], Awaitable[Loaded]]


class Timelines:
    def __init__(self, store: Store, read: Read, clock: Callable[[], int]) -> None:
        """`read` gives a task as it is; `clock` ms since 1970."""
        self._store = store
        self._read = read
        self._clock = clock

    def operations(self) -> dict[str, Serve]:
        return {
            "timeline": typed(TimelineRequest, TimelineView, self.draw),
            "step": typed(StepLook, StepDetail, self.look),
        }

    async def draw(self, request: TimelineRequest) -> TimelineView:
        loaded = await self._read(request.task)
        events = await history_of(self._store, loaded)
        return timeline(loaded.id, loaded.definition, events, self._clock())

    async def look(self, request: StepLook) -> StepDetail:
        loaded = await self._read(request.task)
        step, state = loaded.definition.steps.get(request.step), loaded.task.steps.get(request.step)
        if step is None or state is None:
            known = ", ".join(loaded.definition.steps)
            raise Refusal(f"there is no step {request.step!r} in this task; there are {known}", 404)
        drawn = timeline(
            loaded.id, loaded.definition, await history_of(self._store, loaded), self._clock()
        )
        [bars] = [line.bars for line in drawn.steps if line.name == step.name]
        phase = Phase(request.phase) if request.phase else state.phase
        return step_detail(loaded, step.name, phase, bars)
