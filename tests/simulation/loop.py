"""Time and turns of a simulated world: one queue of happenings, and a loop for each process.

`Timeline` is the world's time: happenings in order of time, then of being asked for. `Loop` is
what asyncio runs on in one process: no selector, no threads. Always holds: within a process,
ready callbacks run in the order in which they became ready, as any asyncio loop promises; how the
turns of different processes mix is drawn from the seed; a process that died never runs again.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from random import Random
from typing import Any

Happening = Callable[..., None]


class Timeline:
    """The world's clock, in seconds from the beginning of the run, and what is to happen."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happened = 0
        self._queue: list[tuple[float, int, Happening, tuple[Any, ...]]] = []
        self._asked = 0

    def at(self, when: float, happening: Happening, *arguments: Any) -> None:
        """Have something happen; what is asked for the past happens now."""
        self._asked += 1
        heapq.heappush(self._queue, (max(when, self.now), self._asked, happening, arguments))

    def after(self, seconds: float, happening: Happening, *arguments: Any) -> None:
        self.at(self.now + seconds, happening, *arguments)

    def step(self) -> bool:
        """The next happening; false if there is none."""
        if not self._queue:
            return False
        self.now, _, happening, arguments = heapq.heappop(self._queue)
        self.happened += 1
        happening(*arguments)
        return True

    def clear(self) -> None:
        self._queue.clear()


class SimTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on where it lies in memory."""

    def __init__(self, coro: Any, *, loop: Loop, **options: Any) -> None:
        self._number = loop.next_number()
        super().__init__(coro, loop=loop, **options)

    def __hash__(self) -> int:
        return self._number


class SimFuture(asyncio.Future[Any]):
    """As `SimTask`."""

    def __init__(self, *, loop: Loop) -> None:
        self._number = loop.next_number()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._number


class Pace:
    """How soon a process gets on: pauses between its turns, in seconds."""

    def __init__(self, rng: Random, *, slowness: float = 0.0, permute: bool = False) -> None:
        """`permute`: also the ready callbacks of one turn run in any order, which a real loop
        never does; for code that says that it does not depend on it."""
        self._rng = rng
        self.slowness = slowness
        self.permute = permute

    def before_turn(self) -> float:
        """Until a process that was idle runs."""
        quick = self._rng.random() * 0.0004
        return quick + self._rng.random() * self.slowness if self.slowness else quick

    def between_turns(self) -> float:
        """Until one that has more to do goes on."""
        chance = self._rng.random()
        if chance > 0.25:
            return 0.0
        return (chance * 4) ** 4 * (0.002 + self.slowness)

    def order(self, ready: list[asyncio.Handle]) -> None:
        if self.permute:
            self._rng.shuffle(ready)


class Loop(asyncio.AbstractEventLoop):
    """One process's loop. `clock` turns the world's time into the process's own monotonic time."""

    def __init__(
        self,
        timeline: Timeline,
        pace: Pace,
        clock: Callable[[], float],
        until: Callable[[float], float],
        enter: Callable[[Loop], None],
        failed: Callable[[dict[str, Any]], None],
    ) -> None:
        """`until` says when, in the world's time, the process's clock shows a time; `enter` is told
        whose turn it is; `failed` is told what asyncio's exception handler would be."""
        self.dead = False
        self.frozen_until = 0.0
        self.dies_after: int | None = None  # callbacks, from now
        self.freezes_after: tuple[int, float] | None = None  # callbacks, from now; for how long
        self.on_death: Callable[[], None] = _nothing
        self.steps = 0
        self.process: Any = None  # whose it is
        self._timeline = timeline
        self._pace = pace
        self._clock = clock
        self._until = until
        self._enter = enter
        self._failed = failed
        self._ready: deque[asyncio.Handle] = deque()
        self._turn_is_due = False
        self._number = 0
        self.kept: list[Any] = []  # tasks: a dead process's must not be collected, and so be closed

    def next_number(self) -> int:
        self._number += 1
        return self._number

    # What asyncio asks of a loop

    def time(self) -> float:
        return self._clock()

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return not self.dead

    def is_closed(self) -> bool:
        return False

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._make_ready(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._clock() + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self.dead:
            self._timeline.at(self._until(when), self._timer, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Asyncio tells; the timeline skips cancelled ones."""

    def create_future(self) -> SimFuture:
        return SimFuture(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> SimTask:
        name = name or "task"
        task = SimTask(coro, loop=self, name=name, context=context)
        self.kept.append(task)
        if len(self.kept) > 2_000:
            self.kept = [each for each in self.kept if not each.done()]
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if not self.dead:
            self._failed(context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        self.call_exception_handler(context)

    # What the world does with it

    def kill(self) -> None:
        """Never run anything of it again."""
        self.dead = True
        self._ready.clear()

    def freeze(self, seconds: float) -> None:
        """As by SIGSTOP: its callbacks wait, its timers go off late."""
        self.frozen_until = max(self.frozen_until, self._timeline.now + seconds)

    def thaw(self) -> None:
        self.frozen_until = 0.0
        if self._ready:
            self._ask_for_turn(0.0)

    def _make_ready(self, handle: asyncio.Handle) -> None:
        if self.dead:
            return
        self._ready.append(handle)
        if not self._turn_is_due:
            self._ask_for_turn(self._pace.before_turn())

    def _ask_for_turn(self, seconds: float) -> None:
        self._turn_is_due = True
        self._timeline.after(seconds, self._turn)

    def _timer(self, handle: asyncio.TimerHandle) -> None:
        if not handle._cancelled:
            self._make_ready(handle)

    def _turn(self) -> None:
        if self.dead:
            return
        if self._timeline.now < self.frozen_until:
            self._timeline.at(self.frozen_until, self._turn)
            return
        self._enter(self)
        events._set_running_loop(self)
        try:
            pause = 0.0
            while self._ready and not pause and self._timeline.now >= self.frozen_until:
                self._iterate()
                pause = self._pace.between_turns()
        finally:
            events._set_running_loop(None)
        self._turn_is_due = False
        if self._ready:
            self._ask_for_turn(pause)

    def _iterate(self) -> None:
        """All that is ready now, as one iteration of a real loop."""
        if self._pace.permute:
            ready = list(self._ready)
            self._pace.order(ready)
            self._ready = deque(ready)
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if handle._cancelled:
                continue
            if self.dies_after is not None:
                self.dies_after -= 1
                if self.dies_after < 0:
                    self.on_death()
                    return
            if self.freezes_after is not None and self._is_frozen_before(handle):
                return
            self.steps += 1
            handle._run()
            if self.dead:
                return

    def _is_frozen_before(self, handle: asyncio.Handle) -> bool:
        """Whether it freezes at this callback, which waits then, before all others."""
        assert self.freezes_after is not None
        callbacks, seconds = self.freezes_after
        if callbacks:
            self.freezes_after = callbacks - 1, seconds
            return False
        self.freezes_after = None
        self._ready.appendleft(handle)
        self.freeze(seconds)
        return True


def _nothing() -> None:
    return
