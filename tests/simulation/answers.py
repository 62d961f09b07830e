"""What must hold of acks and answers, whatever else goes wrong.

- A submission is acked when its task is stored.
- A command is acked when an answer to it is in the stream, or nobody waits for one.
- A failure counts only for the epoch that said so.
- Who calls its tools in the same order each time is never told that its journal does not fit.
"""

from __future__ import annotations

from uuid import UUID

import orjson
from headway.agents.messages import COMPLETED, FAILED, TIMED_OUT, decode_command
from headway.agents.subjects import COMMANDS_STREAM, EVENTS_STREAM, TASKS_STREAM
from headway.coordinator.outcomes import decode
from headway.sagas import events as e
from headway.sagas.task import StepState
from simulation.laws import Ended, Laws
from simulation.streams import Stored
from simulation.world import World

Attempt = tuple[str, str, str, int]
WITHDRAWN = "Withdrawn"  # the coordinator's own word

FORGETFUL = ("wipe", "broker_kill")
"""Faults by which JetStream forgets what it has confirmed, and has again what it has let go."""


class Answers:
    def __init__(self, world: World, laws: Laws) -> None:
        self._world = world
        self._laws = laws
        self._said: dict[Attempt, dict[tuple[str, int], None]] = {}
        self._acked, world.broker.on_acked = world.broker.on_acked, self._on_acked
        self._ended, laws.on_event = laws.on_event, self._on_event
        world.broker.on_stored = self._on_stored

    def _on_stored(self, stream: str, stored: Stored) -> None:
        if stream != EVENTS_STREAM:
            return
        event = decode(stored.body)
        if event.type in (COMPLETED, FAILED, TIMED_OUT):
            attempt = event.task, event.step, event.phase, event.attempt
            self._said.setdefault(attempt, {})[event.type, event.epoch] = None

    def _on_acked(self, stream: str, stored: Stored) -> None:
        self._acked(stream, stored)
        if stream == TASKS_STREAM:
            task = UUID(orjson.loads(stored.body)["id"])
            if task not in self._world.tables.tasks:
                self._world.fail(f"the submission of {task} was acked and is not stored")
        if stream == COMMANDS_STREAM and not any(map(self._world.chance.count.get, FORGETFUL)):
            self._on_command_acked(stored)

    def _on_command_acked(self, stored: Stored) -> None:
        command = decode_command(stored.body)
        state = self._laws.known[UUID(command.task)].task.steps[command.step]
        attempt = command.task, command.step, command.phase, command.attempt
        latest = state.epoch if state.claim is None else state.claim.command_epoch
        current = (state.phase, state.attempt) == (command.phase, command.attempt)
        if command.epoch < latest:
            return  # a later publication is in the stream, or waits to be admitted
        if state.stop_by:
            return  # nobody is to begin it; who has it answers, or is given up by then
        if state.outstanding and current and attempt not in self._said:
            self._world.fail(f"the command of {attempt} was acked though nobody has answered it")

    def _on_event(self, task: UUID, before: StepState, event: Ended | e.AttemptRepublished) -> None:
        self._ended(task, before, event)
        step = self._laws.known[task].definition.steps[event.step]
        if not isinstance(event, e.AttemptFailed) or step.kind != "action":
            return
        said = self._said.get((str(task), event.step, before.phase, before.attempt), {})
        if (FAILED, before.epoch) not in said and event.error.type != WITHDRAWN:
            self._world.fail(f"{event} counts though epoch {before.epoch} never said so: {[*said]}")
        if event.error.type == "JournalMismatch":
            self._world.fail(f"{event} of {task}: its journal does not fit")
