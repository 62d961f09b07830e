"""Tell what happens to one task, a line each, and look at what the machine makes of it."""

from __future__ import annotations

from typing import Any

from headway.sagas import (
    Action,
    Definition,
    Dispatch,
    Phase,
    Step,
    StepState,
    Task,
    Transition,
    due,
    planned,
    transition,
)
from headway.sagas import events as e
from headway.sagas import inputs as i
from headway.sagas.checks import UNCHECKED, Checks
from headway.sagas.circumstances import Bounds, Fork
from headway.sagas.task import Claim, Failure

START = 1_800_000_000_000
ACTION = Phase.ACTION
COMPENSATION = Phase.COMPENSATION


class Story:
    """One task from its submission on. `now` moves only by `wait` and `wait_until_due`."""

    def __init__(
        self,
        definition: Definition,
        *,
        bounds: Bounds | None = None,
        child: bool = False,
        checks: Checks = UNCHECKED,
        fork: Fork | None = None,
    ) -> None:
        self.definition = definition
        self.checks = checks
        self.now = START
        self.task: Task | None = None
        self.history: list[e.Event] = []
        self.inputs: list[i.Input] = []
        self.sent: list[Dispatch] = []
        self.last = self.tell(i.Submit(self.now, bounds, child, fork))

    def tell(self, happened: i.Input) -> Transition:
        """Let this happen; what came of it is also kept in `last`."""
        self.last = transition(self.definition, self.task, happened, self.checks)
        self.task = self.last.task
        self.definition = planned(self.definition, self.task.beside.plan)
        self.inputs.append(happened)
        self.history.extend(self.last.events)
        self.sent.extend(action for action in self.last.actions if isinstance(action, Dispatch))
        return self.last

    @property
    def state(self) -> Task:
        assert self.task is not None
        return self.task

    @property
    def status(self) -> str:
        return self.state.status.value

    def step(self, name: str) -> StepState:
        return self.state.steps[name]

    def statuses(self) -> dict[str, str]:
        return {name: state.status.value for name, state in self.state.steps.items()}

    @property
    def actions(self) -> tuple[Action, ...]:
        return self.last.actions

    def wait(self, ms: int) -> None:
        self.now += ms

    def wait_until_due(self) -> Transition:
        """Let the task's timer go off."""
        timer = due(self.definition, self.state)
        assert timer is not None, "this task waits for nothing in time"
        self.now = max(self.now, timer)
        return self.tick()

    def tick(self) -> Transition:
        return self.tell(i.Tick(self.now))

    def done(
        self, step: str, attempt: int = 1, result: Any = None, handoff: tuple[Step, ...] = ()
    ) -> Transition:
        return self.tell(i.Succeeded(self.now, step, ACTION, attempt, result, False, handoff))

    def undone(self, step: str, attempt: int = 1, *, empty: bool = False) -> Transition:
        return self.tell(i.Succeeded(self.now, step, COMPENSATION, attempt, empty=empty))

    def rejected(self, step: str, attempt: int = 1, epoch: int = 0) -> Transition:
        """The agent raised Reject: a business failure that left nothing behind."""
        error = Failure("Rejected", "out of stock")
        return self.tell(i.Failed(self.now, step, ACTION, attempt, epoch, error, False, True))

    def faulted(
        self,
        step: str,
        attempt: int = 1,
        epoch: int = 0,
        *,
        phase: Phase = ACTION,
        retryable: bool = True,
        no_effect: bool = False,
        retry_after_ms: int | None = None,
        jitter: float = 0.0,
        type: str = "Fault",
        hold: bool = False,
    ) -> Transition:
        """A handler raised something; whether it left an effect is not known by default."""
        return self.tell(
            i.Failed(
                self.now,
                step,
                phase,
                attempt,
                epoch,
                Failure(type, "broken"),
                retryable,
                no_effect,
                retry_after_ms,
                jitter,
                hold,
            )
        )

    def timed_out(
        self, step: str, attempt: int = 1, epoch: int = 0, *, phase: Phase = ACTION
    ) -> Transition:
        return self.tell(i.TimedOut(self.now, step, phase, attempt, epoch))

    def started(
        self, step: str, attempt: int = 1, epoch: int = 0, *, phase: Phase = ACTION
    ) -> Transition:
        return self.tell(i.Started(self.now, step, phase, attempt, epoch))

    def heartbeat(
        self, step: str, attempt: int = 1, epoch: int = 0, *, phase: Phase = ACTION
    ) -> Transition:
        return self.tell(i.Heartbeat(self.now, step, phase, attempt, epoch))

    def hand_back(self, step: str, attempt: int = 1, epoch: int = 0) -> Transition:
        return self.tell(i.HandedBack(self.now, step, ACTION, attempt, epoch))

    def claim(
        self,
        step: str,
        attempt: int = 1,
        *,
        command_epoch: int = 0,
        delivery: int = 2,
        worker: str = "second",
        phase: Phase = ACTION,
    ) -> Transition:
        asked = Claim(command_epoch, delivery, worker)
        return self.tell(i.ClaimAsked(self.now, step, phase, attempt, asked))

    def lost(
        self, step: str, attempt: int = 1, epoch: int = 0, *, phase: Phase = ACTION
    ) -> Transition:
        return self.tell(i.DispatchLost(self.now, step, phase, attempt, epoch))

    def held(self, step: str, attempt: int = 1, *, no_effect: bool = False) -> Transition:
        """The agent stopped before something that a person must look at."""
        return self.faulted(
            step, attempt, no_effect=no_effect, retryable=False, type="Tripped", hold=True
        )

    def guarded(self, step: str) -> Transition:
        return self.tell(i.Guarded(self.now, step, "budget-spent", "nothing is left"))

    def moved(self, target: int) -> Transition:
        """Move to version `target`, which this story's saga is from the beginning."""
        return self.tell(i.Move(self.now, "somebody", "mended", 1, target, self.task.version))

    def approve(self, step: str) -> Transition:
        return self.tell(i.Approval(self.now, step, True, "somebody", "fine"))

    def reject(self, step: str) -> Transition:
        return self.tell(i.Approval(self.now, step, False, "somebody", "too much"))

    def signal(self, name: str, id: str, payload: Any = None) -> Transition:
        return self.tell(i.SignalSent(self.now, name, id, payload, "somebody"))

    def child_succeeded(self, step: str, attempt: int = 1, result: Any = None) -> Transition:
        return self.tell(i.ChildEnded(self.now, step, attempt, "succeeded", result=result))

    def child_undone(self, step: str, attempt: int = 1) -> Transition:
        return self.tell(i.ChildEnded(self.now, step, attempt, "compensated", "it failed"))

    def child_refused(self, step: str, attempt: int = 1) -> Transition:
        return self.tell(i.ChildEnded(self.now, step, attempt, "refused", "it is past return"))

    def revoke(self) -> Transition:
        return self.tell(i.Revoke(self.now, "its parent is undone"))

    def cancel(self) -> Transition:
        return self.tell(i.Cancel(self.now, "somebody", "changed my mind"))

    def retry(self, step: str | None = None) -> Transition:
        return self.tell(i.RetryStuck(self.now, "somebody", "mended", step))

    def happened(self, step: str, result: Any = None) -> Transition:
        return self.tell(i.Settle(self.now, step, "happened", "somebody", "saw it", result))

    def did_not_happen(self, step: str) -> Transition:
        return self.tell(i.Settle(self.now, step, "did_not_happen", "somebody", "looked"))


def compensations(story: Story) -> list[str]:
    """The steps for which a compensation was sent, in the order of its first attempt."""
    return list(dict.fromkeys(sent.step for sent in story.sent if sent.phase is COMPENSATION))
