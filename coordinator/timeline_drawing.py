"""The picture of a task in time: bars, made from its history event by event. Pure.

Always holds: each attempt that was dispatched has one bar, however often it was taken over or
published again; what is over has an end. Times are ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from headway.agents.timeline_views import BarKind, MarkKind, Outcome, TakeOverKind
from headway.agents.timeline_views import Phase as PhaseName
from headway.coordinator.commands import agent_of
from headway.coordinator.family import child_id
from headway.coordinator.timeline_marks import SETTLING
from headway.sagas import events as e
from headway.sagas.definition import Definition
from headway.sagas.task import Phase

_UNSETTLING = (e.TaskResumed, e.StepSettled, e.RecoveryStarted)


class TakeOver(NamedTuple):
    """An attempt went on elsewhere; see `TakeOverView`."""

    at: int
    kind: TakeOverKind
    worker: str = ""
    epoch: int = 0


@dataclass(slots=True)
class Bar:
    """A stretch of time in which one thing went on; see `BarView`."""

    kind: BarKind
    began_at: int
    phase: PhaseName = "action"
    attempt: int = 0
    agent: str = ""
    worker: str = ""
    child: UUID | None = None
    started_at: int | None = None
    due_at: int | None = None
    ended_at: int | None = None
    outcome: Outcome = "running"
    error: str = ""
    late: bool = False
    reason: str = ""
    take_overs: list[TakeOver] = field(default_factory=list)


def drawn(task: UUID, plan: Definition, history: Iterable[e.Event]) -> Drawing:
    """The picture of a history, whole from its submission on; `plan` is the definition that its
    task runs now, with what was appended."""
    drawing = Drawing(task, plan)
    for event in history:
        drawing.draw(event)
    return drawing


class Drawing:
    """The picture while the history goes over it, one event after another."""

    def __init__(self, task: UUID, plan: Definition) -> None:
        self.bars: dict[str, list[Bar]] = {name: [] for name in plan.steps}
        self.holds: list[Bar] = []
        self.settled_at: int | None = None
        self.settled_as: MarkKind | None = None
        self._task = task
        self._steps = plan.steps
        self.undone: list[str] = []  # steps, in the order in which their compensations began
        self._children: dict[str, int] = {}  # by step: number of its latest child

    def draw(self, event: e.Event) -> None:
        match event:
            case e.AttemptDispatched():
                self._dispatched(event)
            case e.AttemptStarted():
                self._open(event.step, "attempt").started_at = event.at
            case e.AttemptClaimed() | e.AttemptRepublished() | e.AttemptHandedBack():
                self._taken_over(event)
            case e.AttemptFailed() | e.AttemptTimedOut():
                self._unsuccessful(event)
            case e.StepCompleted():
                self._successful(event.at, event.step, Phase.ACTION, event.attempt, "completed")
            case e.StepCompensated():
                outcome: Outcome = "empty" if event.empty else "completed"
                where = (event.at, event.step, Phase.COMPENSATION, event.attempt)
                self._successful(*where, outcome)
            case e.LateSuccess():
                self._late(event)
            case e.EmptyDoubted():
                self._end(event.at, event.step, "doubted")
                self._pause(event.at, event.step, Phase.COMPENSATION, event.at)
            case e.AttemptHeartbeat():
                pass
            case _:
                self._by_the_way(event)
        if type(event) in SETTLING:
            self.settled_at, self.settled_as = event.at, SETTLING[type(event)]
        elif isinstance(event, _UNSETTLING):
            self.settled_at, self.settled_as = None, None

    def _by_the_way(self, event: e.Event) -> None:
        """What is no attempt's."""
        match event:
            case e.SignalTaken():
                self._end(event.at, event.step, "completed")
            case e.StepApproved() | e.StepRejected():
                approved = isinstance(event, e.StepApproved)
                self._end(event.at, event.step, "approved" if approved else "rejected")
            case e.TaskHeld():
                held = Bar(kind="hold", began_at=event.at, reason=event.reason)
                (self.bars[event.step] if event.step else self.holds).append(held)
            case e.TaskResumed():
                self._release(event.at, event.step)
                for name in event.steps:
                    self._pause(event.at, name, self._phase(name), event.at)
            case e.RecoveryStarted():
                self._release(event.at)
                for name in event.closing:
                    self._end(event.at, name, "cancelled")
            case e.StepSettled():
                self._release(event.at, event.step)
                self._end(event.at, event.step, "settled")
            case e.OutputRejected():
                for name in event.steps:
                    self._pause(event.at, name, Phase.ACTION, event.at)

    def _dispatched(self, event: e.AttemptDispatched) -> None:
        self._end(event.at, event.step, "over")
        step, phase = self._steps[event.step], event.phase
        if phase is Phase.COMPENSATION and event.step not in self.undone:
            self.undone.append(event.step)
        bar = Bar(
            kind="attempt",
            phase=phase.value,
            attempt=event.attempt,
            began_at=event.at,
        )
        match step.kind:
            case "action":
                bar.agent = agent_of(step, phase)
            case "child":
                if phase is Phase.ACTION:
                    self._children[event.step] = event.attempt
                number = self._children.get(event.step, event.attempt)
                bar.child = child_id(self._task, event.step, number)
            case _:
                bar.kind = "wait"
                if step.kind == "sleep":
                    bar.due_at = event.at + max(1, round(step.seconds * 1000))
        self.bars[event.step].append(bar)

    def _taken_over(
        self, event: e.AttemptClaimed | e.AttemptRepublished | e.AttemptHandedBack
    ) -> None:
        bar, at = self._open(event.step, "attempt"), event.at
        match event:
            case e.AttemptClaimed():
                bar.worker, bar.started_at = event.worker, bar.started_at or at
                over = TakeOver(at=at, kind="claimed", worker=event.worker, epoch=event.epoch)
            case e.AttemptRepublished():
                bar.worker = ""
                over = TakeOver(at=at, kind="republished", epoch=event.epoch)
            case _:
                over = TakeOver(at=at, kind="handed_back", worker=bar.worker)
        bar.take_overs.append(over)

    def _unsuccessful(self, event: e.AttemptFailed | e.AttemptTimedOut) -> None:
        if isinstance(event, e.AttemptFailed):
            self._end(event.at, event.step, "failed", event.error.type)
        else:
            self._end(event.at, event.step, "timed_out", f"Timeout.{event.timeout}")
        if event.retry_at:
            self._pause(event.at, event.step, event.phase, event.retry_at)

    def _successful(self, at: int, step: str, phase: Phase, attempt: int, outcome: Outcome) -> None:
        """The first success of any attempt wins: what goes on beside it is in vain."""
        succeeded = self._attempt(step, phase, attempt)
        if succeeded is not None and succeeded.ended_at is not None:
            _close(succeeded, at, outcome)
            succeeded.late, succeeded.error = True, ""
        elif succeeded is not None:
            _close(succeeded, at, outcome)
        for bar in self.bars[step]:
            if bar.ended_at is None and bar.kind != "hold":
                _close(bar, at, "superseded" if bar.kind == "attempt" else "over")

    def _late(self, event: e.LateSuccess) -> None:
        bar = self._attempt(event.step, Phase.ACTION, event.attempt)
        if bar is not None:
            _close(bar, event.at, "completed")
            bar.late, bar.error = True, ""
        if event.again:
            self._end(event.at, event.step, "superseded")
            self._pause(event.at, event.step, Phase.COMPENSATION, event.at)

    def _pause(self, at: int, step: str, phase: Phase, until: int) -> None:
        """Until the next attempt; one that follows at once leaves no trace."""
        self._end(at, step, "over")
        self.bars[step].append(
            Bar(
                kind="retry_wait",
                phase=phase.value,
                began_at=at,
                due_at=until,
            )
        )

    def _end(self, at: int, step: str, outcome: Outcome, error: str = "") -> None:
        """What went on of a step is over, but for a hold; a pause that took no time is left out."""
        bars = self.bars[step]
        if bars and bars[-1].kind == "retry_wait" and bars[-1].began_at == at:
            del bars[-1]
        for bar in bars:
            if bar.ended_at is None and bar.kind != "hold":
                _close(bar, at, outcome)
                bar.error = error

    def _release(self, at: int, step: str = "") -> None:
        """What the task, or only this step, was held for has been looked at."""
        whose = [self.bars[step]] if step else [self.holds, *self.bars.values()]
        for bar in (bar for bars in whose for bar in bars):
            if bar.kind == "hold" and bar.ended_at is None:
                _close(bar, at, "over")

    def _open(self, step: str, kind: str) -> Bar:
        """The bar that goes on, which an event is about."""
        return next(bar for bar in reversed(self.bars[step]) if bar.kind == kind)

    def _attempt(self, step: str, phase: Phase, attempt: int) -> Bar | None:
        for bar in reversed(self.bars[step]):
            if bar.kind in ("attempt", "wait") and (bar.phase, bar.attempt) == (phase, attempt):
                return bar
        return None

    def _phase(self, step: str) -> Phase:
        """The phase that a step is in, by what was begun last of it."""
        bars = [bar for bar in self.bars[step] if bar.kind == "attempt"]
        return Phase(bars[-1].phase) if bars else Phase.ACTION


def _close(bar: Bar, at: int, outcome: Outcome) -> None:
    bar.ended_at, bar.outcome = at, outcome
