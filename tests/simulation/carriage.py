"""What must hold between the streams and what is stored.

- An answer is acked only when it has counted: its attempt is no longer outstanding, and what
  succeeded is in the history.
- Nothing is begun that is not wanted: a handler is called once for each epoch of an attempt that is
  outstanding, or was a moment ago; and nothing is published again that is there.
- No dispatch stays lost: once nothing goes wrong any more, what is outstanding is soon in the
  stream, or answered; long before the last net, which looks every 30 s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

import orjson
from headway.agents.messages import COMPLETED, FAILED, TIMED_OUT, Event
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM
from headway.coordinator.commands import Sought, subject_of
from headway.coordinator.outcomes import decode
from headway.sagas.events import AttemptRepublished
from headway.sagas.task import Phase, StepState
from headway.sagas.transition import outstanding
from simulation.downstream import Downstream
from simulation.faults import LASTING
from simulation.laws import Ended, Laws
from simulation.process import Process
from simulation.streams import Stored
from simulation.world import World

LOST_MAX_S = 15.0  # twice `ack_wait`, and some
LAST_NET_S = 75.0  # twice as often as the last net looks, and some: nobody can know of those
STALE_MAX_S = 8.0  # a worker that waits for a PubAck begins so late what has ended meanwhile

UNTIMELY = frozenset(
    {
        *("delay", "repeat", "freeze", "freeze_at_effect", "slow", "cut", "broker_kill", "wipe"),
        *("skew", "jump"),
        *("store_slow", "store_down", "store_refuses", "store_answer_lost", "crash_at_commit"),
    }
)
"""Faults under which what is old may look new for a while; without them it never does."""

_SUCCESS = {
    Phase.ACTION: {"StepCompleted", "LateSuccess", "StepSettled"},
    Phase.COMPENSATION: {"StepCompensated", "EmptyDoubted", "StepSettled"},
}


class Carriage:
    def __init__(self, world: World, laws: Laws, downstream: Downstream) -> None:
        self._world = world
        self._laws = laws
        self._lost_since: dict[tuple[str, int, int], float] = {}
        self._ended_at: dict[tuple[UUID, str, Phase, int], float] = {}
        self._begun: dict[tuple[object, ...], None] = {}
        world.broker.on_acked = self._on_acked
        laws.on_event = self._on_event
        downstream.on_begin = self._on_begin

    def look(self, processes: Sequence[Process]) -> None:
        """Once a second after it healed. What a process sends on a connection that is broken, and
        not yet known to be, may well be lost until it knows."""
        now = self._world.timeline.now
        if any(not line.alive for process in processes for line in process.lines()):
            self._lost_since.clear()
            return
        lost = dict.fromkeys(self._lost())
        self._lost_since = {each: self._lost_since.get(each, now) for each in lost}
        for (subject, attempt, epoch), since in self._lost_since.items():
            mistaken = subject in self._world.broker.mistaken
            if now - since > (LAST_NET_S if mistaken else LOST_MAX_S):
                self._world.fail(
                    f"attempt {attempt} (epoch {epoch}) on {subject} stays lost: for "
                    f"{now - since:.0f} s it has been in no stream"
                )

    def _lost(self) -> Iterator[tuple[str, int, int]]:
        streams = self._world.broker.streams
        commands, events = streams.get(COMMANDS_STREAM), streams.get(EVENTS_STREAM)
        there = {} if commands is None else commands.by_subject
        answered = [] if events is None else [s.rpartition(".")[2] for s in events.by_subject]
        for row in self._world.tables.tasks.values():
            if str(row.id) in answered:
                continue
            known = self._laws.known[row.id]
            for sent in outstanding(known.definition, known.task):
                subject = subject_of(row.id, known.definition.steps[sent.step], sent.phase)
                waits = (row.id, sent.step) in self._world.tables.admissions
                if subject not in there and not waits:
                    yield subject, sent.attempt, sent.epoch

    def at_rest(self) -> None:
        """Where nothing went wrong but what agents do, nothing is taken over or published again; a
        command that something limits may be claimed all the same."""
        if self._world.tables.limits or not LASTING.issuperset(self._world.chance.count):
            return
        for task, history in self._world.tables.history.items():
            for event in history:
                if event.type in ("AttemptClaimed", "AttemptRepublished"):
                    self._world.fail(f"{event.type} of {task}: taken over though nothing was lost")

    @property
    def _is_timely(self) -> bool:
        return UNTIMELY.isdisjoint(self._world.chance.count)

    def _on_event(self, task: UUID, before: StepState, event: Ended | AttemptRepublished) -> None:
        if not isinstance(event, AttemptRepublished):
            of = task, event.step, before.phase, before.attempt
            self._ended_at.setdefault(of, self._world.timeline.now)
        elif self._is_timely and not event.fenced and self._is_there(task, event):
            self._world.fail(f"{event.step} of {task} is published again though it is there")

    def _is_there(self, task: UUID, event: AttemptRepublished) -> bool:
        stream = self._world.broker.streams.get(COMMANDS_STREAM)
        step = self._laws.known[task].definition.steps[event.step]
        if stream is None or step.kind != "action":
            return False
        stored = stream.last_of(subject_of(task, step, event.phase))
        sought = Sought("", event.phase, event.attempt)
        return stored is not None and sought.is_in(stored.body)

    def _on_begin(self, task: UUID, step: str, phase: str, attempt: int, epoch: int) -> None:
        if not self._is_timely or self._world.chance.count["lose_ack_of_store"]:
            return  # who waits for a PubAck begins when it comes, however late
        this = task, step, phase, attempt, epoch
        if this in self._begun:
            self._world.fail(f"attempt {attempt} ({epoch}) of {step} ({task}) is begun again")
        self._begun[this] = None
        ended_at = self._ended_at.get((task, step, Phase(phase), attempt))
        now = self._world.timeline.now
        if ended_at is not None and now - ended_at > STALE_MAX_S:
            late = f"{now - ended_at:.1f} s after its end"
            self._world.fail(f"attempt {attempt} of {step} ({task}) is begun {late}")

    def _on_acked(self, stream: str, stored: Stored) -> None:
        if stream != EVENTS_STREAM:
            return
        event = decode(stored.body)
        task = UUID(event.task)
        if task not in self._laws.known or event.type not in (COMPLETED, FAILED, TIMED_OUT):
            return
        state = self._laws.known[task].task.steps[event.step]
        said = f"{event.type} of attempt {event.attempt} of {event.step} ({event.task}) was acked"
        now = state.phase, state.attempt, state.epoch
        if state.outstanding and now == (event.phase, event.attempt, event.epoch):
            self._world.fail(f"{said}, and the attempt is outstanding")
        elif event.type == COMPLETED and not self._counted(task, event, state):
            self._world.fail(f"{said}, and its success is not in the history")

    def _counted(self, task: UUID, event: Event, state: StepState) -> bool:
        phase = Phase(event.phase)
        if phase is Phase.ACTION and event.attempt <= state.discounted:
            return True
        return any(
            each.type in _SUCCESS[phase] and orjson.loads(each.data).get("step") == event.step
            for each in self._world.tables.history[task]
        )
