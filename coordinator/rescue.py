"""Giving to others what a worker had when it was lost, at once instead of after `ack_wait`.

    the agent's commands that were delivered before it was missed and are not answered
    → the state of their tasks → what the workers that are there hold → the rest was with the dead

Each of the rest is looked after as a dispatch that was lost: published again under a new epoch.
Always holds:
- The epoch that the state had *before* the workers were asked decides, in the commit: a command
  that anybody claimed meanwhile is left alone. So it does not matter how many coordinators do this
  at once, on what they know of old, or where in the midst of it one freezes or dies.
- Only what was on its way for ON_THE_WAY_S is looked at: a live worker that was given it has it.
- All that are there must have answered, and nobody may be missed who may come back. Otherwise the
  commands are left alone, tried again, and at last left to `ack_wait`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol
from uuid import UUID

from headway.agents import subjects
from headway.agents.errors import InvalidInput
from headway.agents.messages import decode_command
from headway.coordinator.commands import subject_of
from headway.coordinator.intake import Item, nobody_waits
from headway.coordinator.records import Loaded
from headway.coordinator.rollcall import RollCall
from headway.sagas import inputs as i
from headway.sagas.actions import Dispatch
from headway.sagas.transition import outstanding

_LOG = logging.getLogger(__name__)

ON_THE_WAY_S = 0.3  # within which a delivered command has reached its worker, however busy both are


class Commands(Protocol):
    """The streams, as far as a rescue needs them."""

    async def unanswered(self, agent: str, upto: int) -> list[tuple[str, bytes]]: ...
    async def unread(self, tasks: Sequence[UUID]) -> set[UUID]: ...


class Tasks(Protocol):
    """The store, as far as a rescue needs it."""

    async def read(self, ids: Sequence[UUID]) -> dict[UUID, Loaded]: ...


class Left(NamedTuple):
    """A command that was delivered and not answered, as its task has it now."""

    subject: str
    task: UUID
    sent: Dispatch


class Rescue:
    def __init__(
        self,
        commands: Commands,
        tasks: Tasks,
        roll_call: RollCall,
        put: Callable[[Item], None],
        clock: Callable[[], int],
    ) -> None:
        self._commands = commands
        self._tasks = tasks
        self._roll_call = roll_call
        self._put = put
        self._clock = clock

    async def attempt(self, agent: str, upto: int) -> bool:
        """Give to others what nobody has of an agent's commands up to sequence `upto`; false if it
        cannot be told yet of all of them. CoordinatorError: nothing was done."""
        stored = await self._commands.unanswered(agent, upto)
        loaded = await self._tasks.read(list(_tasks_of(stored)))
        left = left_of(stored, loaded)
        if not left:
            return True
        holdings = await self._roll_call.holdings(subjects.roll_subject(agent))
        if holdings is None or holdings.silent:
            silent = ", ".join(holdings.silent) if holdings else "nats-server"
            _LOG.info("agent %s: %s did not answer; its commands are left alone", agent, silent)
            return False
        nobodys = [each for each in left if each.subject not in holdings.held]
        unread = await self._commands.unread(list({each.task: None for each in nobodys}))
        lost = [each for each in nobodys if each.task not in unread]
        for each in lost:
            sent, now = each.sent, self._clock()
            again = i.DispatchLost(
                now, sent.step, sent.phase, sent.attempt, sent.epoch, fenced=True
            )
            self._put(Item(each.task, again, nobody_waits))
        if lost:
            _LOG.warning("agent %s: %d commands were with a lost worker", agent, len(lost))
        return len(lost) == len(nobodys)


def left_of(stored: Iterable[tuple[str, bytes]], loaded: Mapping[UUID, Loaded]) -> list[Left]:
    """Which of these stored commands are what their task waits for, and as which dispatch."""
    found: list[Left] = []
    for subject, body in stored:
        task = _task_of(subject)
        known = None if task is None else loaded.get(task)
        if task is None or known is None:
            continue
        for sent in outstanding(known.definition, known.task):
            step, state = known.definition.steps[sent.step], known.task.steps[sent.step]
            published = 0 if state.claim is None else state.claim.command_epoch
            same = subject_of(task, step, sent.phase) == subject
            if same and _is_publication(body, sent.attempt, published):
                found.append(Left(subject, task, sent))
    return found


def _is_publication(body: bytes, attempt: int, epoch: int) -> bool:
    """Whether this is the latest publication: somebody else may have put another in its place."""
    try:
        command = decode_command(body)
    except InvalidInput:
        return False  # the worker that gets it refuses it
    return (command.attempt, command.epoch) == (attempt, epoch)


def _tasks_of(stored: Iterable[tuple[str, bytes]]) -> dict[UUID, None]:
    tasks = (_task_of(subject) for subject, _ in stored)
    return dict.fromkeys(task for task in tasks if task is not None)


def _task_of(subject: str) -> UUID | None:
    try:
        return UUID(subjects.parse_command_subject(subject).task)
    except ValueError:
        return None
