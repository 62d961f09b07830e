"""The engine: one bounded unit of work at a time, over three ports.

    items  →  load the tasks  →  decide each  →  commit all in one statement
           →  publish what follows  →  answer (and so ack)

Always holds: nothing is published before the events that call for it are committed; nothing is
acked before what follows from it is stored. A change is committed only on the version that it was
decided on; that nothing changes is decided only on a state read in this very step. It awaits
nothing but its ports, so that a simulator can drive it; loops and background tasks live in `app`
and `batches`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol
from uuid import UUID

from headway.coordinator.commands import Outgoing, Sought, command, withdrawn_of
from headway.coordinator.decisions import CheckInput, Decision, Definitions, decide
from headway.coordinator.errors import Refusal, StoreRefused
from headway.coordinator.family import ending
from headway.coordinator.intake import Answer, Item, nobody_waits
from headway.coordinator.recent import Recent
from headway.coordinator.records import Change, Loaded
from headway.sagas.actions import Dispatch, StartChild, Stop, UndoChild, Withdraw
from headway.sagas.definition import Definition
from headway.sagas.inputs import Failed
from headway.sagas.task import Failure, Task, TaskStatus

BATCH_MAX = 512  # items in one unit of work
CONFLICT_ROUNDS_MAX = 8  # after so many lost races the items are left to come again


class Truth(Protocol):
    """Where tasks are kept (the store)."""

    async def load(self, ids: Sequence[UUID]) -> dict[UUID, Loaded]: ...
    async def commit(self, changes: Sequence[Change]) -> set[UUID]: ...


class Sagas(Protocol):
    """Where sagas are kept (the registry)."""

    async def newest(self, sagas: Collection[str], *, fresh: bool) -> dict[str, Definition]: ...
    async def definition(self, name: str, version: int) -> Definition | None: ...


class Transport(Protocol):
    """What carries commands and news (the bus)."""

    async def dispatch(self, commands: Sequence[Outgoing]) -> list[bool]: ...
    async def withdraw(self, commands: Sequence[Sought]) -> set[Sought]: ...
    def stop(self, agent: str, task: UUID, stop: Stop) -> None: ...
    def announce(self, decision: Decision, kind: str) -> None: ...


class Children(Protocol):
    """What begins and undoes child tasks (the family)."""

    async def raise_all(
        self, wanted: Sequence[tuple[Loaded, StartChild | UndoChild]]
    ) -> set[UUID]: ...


@dataclass(slots=True)
class Committed:
    """The outcome of one `commit`: what is to be performed now."""

    decisions: list[Decision] = field(default_factory=list)
    since: float = 0.0  # monotonic: when the first of them may have been stored
    unconfirmed: set[UUID] = field(default_factory=set)  # whose commands may not be stored
    parents: list[Decision] = field(default_factory=list)  # those of which children are asked


class Engine:
    def __init__(
        self,
        truth: Truth,
        sagas: Sagas,
        transport: Transport,
        observe: Callable[[Sequence[Decision]], None],
        family: Children,
        check: CheckInput,
        look_after: Callable[[UUID], None],
        put: Callable[[Item], None],
    ) -> None:
        """`observe` is told each decision that was committed, once; `look_after` tasks whose
        dispatches may have been cut short; `put` takes what is found out while performing."""
        self._truth = truth
        self._sagas = sagas
        self._transport = transport
        self._check = check
        self._look_after = look_after
        self._put = put
        self._observe = observe
        self._family = family
        self._recent = Recent()

    async def commit(self, items: Sequence[Item]) -> Committed:
        """Decide and commit. StoreUnavailable: try the same items again.

        Whatever it raises, some of it may be committed though nobody heard so: from then on the
        items count as repeated, and what they find done already is looked after.
        Tasks that lost their race too often are left out; their items were not answered.
        """
        try:
            return await self._commit(items)
        except BaseException:
            self._recent.forget(item.task for item in items)
            for item in items:
                item.repeated = True
            raise

    async def _commit(self, items: Sequence[Item]) -> Committed:
        committed = Committed()
        left, fresh = _by_task(items), False
        new = {task for task, group in left.items() if group[0].new and not group[0].repeated}
        for _ in range(CONFLICT_ROUNDS_MAX):
            decisions = await self._decide(left, known_new=new, fresh=fresh)
            committed.since = committed.since or time.monotonic()
            lost = await self._write(decisions)
            done = [decision for decision in decisions if decision.id not in lost]
            committed.decisions += done
            for decision in done:
                self._keep(decision)
                _answer(decision, at_commit=True)
            self._observe(done)
            if not lost:
                break
            self._recent.forget(lost)
            left, new, fresh = {task: left[task] for task in lost}, set(), True
        return committed

    async def perform(self, committed: Committed) -> None:
        """Publish what follows from what was committed, then answer the rest of the items; but for
        those with children, which `raise_children` does."""
        committed.unconfirmed = await self._publish(committed)
        for decision in committed.decisions:
            if _children(decision):
                committed.parents.append(decision)
            else:
                self._conclude(decision, confirmed=decision.id not in committed.unconfirmed)

    async def raise_children(self, committed: Committed) -> None:
        """Begin and undo the children that follow from what was committed. It waits for commits of
        later batches, so nothing that these wait for may be kept meanwhile."""
        parents = committed.parents
        if not parents:
            return
        wanted = [
            (parent.after, action)
            for parent in parents
            if parent.after is not None
            for action in _children(parent)
        ]
        missed = committed.unconfirmed | await self._family.raise_all(wanted)
        for parent in parents:
            self._conclude(parent, confirmed=parent.id not in missed)

    def _conclude(self, decision: Decision, *, confirmed: bool) -> None:
        self._announce(decision)
        if decision.repeated or not confirmed:
            self._look_after(decision.id)
        if confirmed:
            self._tell_parent(decision)
            _answer(decision, at_commit=False)

    def give_up(self, committed: Committed) -> None:
        """Publishing failed in an unforeseen way: have all of these tasks looked after."""
        for decision in committed.decisions:
            self._look_after(decision.id)

    async def _decide(
        self, groups: dict[UUID, list[Item]], *, known_new: set[UUID], fresh: bool
    ) -> list[Decision]:
        """Decide on what is at hand or, if that must be `fresh`, on what is stored.

        A change is checked when it is committed. "Nothing changes" and "refused" are checked by
        nobody: made on what was at hand, they are made again on what is stored.
        """
        definitions = await self._definitions(groups, fresh=fresh)
        at_hand = {} if fresh else self._recent.look(groups)
        stored = await self._truth.load(
            [task for task in groups if task not in at_hand and task not in known_new]
        )
        decisions = [
            decide(group, at_hand.get(task) or stored.get(task), definitions, self._check)
            for task, group in groups.items()
        ]
        if fresh:
            return decisions
        unsure = {
            each.id: groups[each.id]
            for each in decisions
            if each.change is None and (each.id in at_hand or groups[each.id][0].new)
        }
        if not unsure:
            return decisions
        self._recent.forget(unsure)
        again = await self._decide(unsure, known_new=set(), fresh=True)
        return [each for each in decisions if each.id not in unsure] + again

    def _keep(self, decision: Decision) -> None:
        change, after = decision.change, decision.after
        if change is not None and after is not None:
            self._recent.keep(after, len(change.state) + len(after.input))

    async def _definitions(self, groups: dict[UUID, list[Item]], *, fresh: bool) -> Definitions:
        wanted = {
            (item.new.saga, item.new.version)
            for group in groups.values()
            for item in group
            if item.new is not None
        }
        found: dict[tuple[str, int | None], Definition] = {}
        unpinned = {name for name, version in wanted if version is None}
        newest = await self._sagas.newest(unpinned, fresh=fresh)
        for name, definition in newest.items():
            found[name, None] = definition
        for name, version in wanted:
            if version is not None:
                exact = await self._sagas.definition(name, version)
                if exact is not None:
                    found[name, version] = exact
        return found

    async def _write(self, decisions: list[Decision]) -> set[UUID]:
        """Commit what changed; returns the tasks whose version was not the one read.

        Rows that PostgreSQL refuses are found by committing one by one; they are refused alone.
        """
        changes = [decision.change for decision in decisions if decision.change is not None]
        if not changes:
            return set()
        try:
            return await self._truth.commit(changes)
        except StoreRefused:
            lost: set[UUID] = set()
            for place, decision in enumerate(decisions):
                if decision.change is None:
                    continue
                try:
                    lost |= await self._truth.commit([decision.change])
                except StoreRefused as refused:
                    decisions[place] = _refused(decision, str(refused))
            return lost

    async def _publish(self, committed: Committed) -> set[UUID]:
        """Withdraw, dispatch, hint; returns the tasks whose commands are not known to be stored."""
        withdrawn: dict[Sought, tuple[Decision, str]] = {}
        commands: list[Outgoing] = []
        for decision in committed.decisions:
            after = decision.after
            for action in decision.actions:
                assert after is not None
                step = after.definition.steps[action.step]
                match action:
                    case Dispatch():
                        if len(decision.answers) == 1 or _still_wanted(after.task, action):
                            commands.append(command(after, action, committed.since))
                    case Withdraw():
                        unwanted = withdrawn_of(decision.id, step, after.task, action.phase)
                        withdrawn[unwanted] = decision, step.name
                    case Stop():
                        self._transport.stop(step.agent, decision.id, action)
        if withdrawn:
            for unwanted in await self._transport.withdraw(tuple(withdrawn)):
                self._unbegun(*withdrawn[unwanted])
        stored = await self._transport.dispatch(commands) if commands else []
        return {sent.task for sent, ok in zip(commands, stored, strict=True) if not ok}

    def _tell_parent(self, decision: Decision) -> None:
        """A child's end is its parent's news; told again for a repeated event."""
        after = decision.after
        if after is None or after.parent is None:
            return
        parent, at = after.parent, decision.change.at if decision.change else 0
        ended = ending(after.definition, after.task, parent, at)
        if ended is not None and (decision.change is not None or decision.repeated):
            self._put(Item(parent.task, ended, nobody_waits))

    def _unbegun(self, decision: Decision, step: str) -> None:
        """A running step was asked to stop before any agent had its command: it left nothing."""
        assert decision.task is not None
        state = decision.task.steps[step]
        if decision.change is None or not state.stop_by:
            return
        why = Failure("Withdrawn", "withdrawn before an agent had it")
        ended = Failed(
            decision.change.at,
            step,
            state.phase,
            state.attempt,
            state.epoch,
            why,
            retryable=False,
            no_effect=True,
        )
        self._put(Item(decision.id, ended, nobody_waits))

    def _announce(self, decision: Decision) -> None:
        """Tell whoever watches; a repeated event of a settled task tells its end again."""
        task = decision.task
        if task is None:
            return
        if decision.change is None:
            if decision.repeated and (task.ended or task.parked):
                self._transport.announce(decision, task.status)
        elif decision.before is None and task.status is TaskStatus.RUNNING:
            self._transport.announce(decision, "submitted")
        elif decision.before is not None and decision.before.task.status is task.status:
            self._transport.announce(decision, "progressed")
        else:
            kind = "progressed" if task.status is TaskStatus.RUNNING else task.status
            self._transport.announce(decision, kind)


def _by_task(items: Sequence[Item]) -> dict[UUID, list[Item]]:
    groups: dict[UUID, list[Item]] = {}
    for item in items:
        groups.setdefault(item.task, []).append(item)
    return groups


_OF_CHILDREN = (StartChild, UndoChild)


def _children(decision: Decision) -> list[StartChild | UndoChild]:
    """What is asked of its child tasks."""
    return [each for each in decision.actions if isinstance(each, _OF_CHILDREN)]


def _still_wanted(task: Task, dispatch: Dispatch) -> bool:
    """A later item of the same batch may have ended the attempt again."""
    state = task.steps[dispatch.step]
    return (
        state.outstanding
        and state.phase is dispatch.phase
        and (state.attempt, state.epoch) == (dispatch.attempt, dispatch.epoch)
    )


def _answer(decision: Decision, *, at_commit: bool) -> None:
    """Answer the items of one kind; only those answered at the commit are shown the task."""
    shown = decision.after if at_commit else None
    for item, refusal, changed in decision.answers:
        if item.at_commit is at_commit:
            item.answer(Answer(shown, refusal, changed))


def _refused(decision: Decision, reason: str) -> Decision:
    refusal = Refusal(f"PostgreSQL refuses this: {reason}", 422)
    answers: tuple[tuple[Item, Refusal | None, bool], ...] = tuple(
        (item, refusal, False) for item, _, _ in decision.answers
    )
    return replace(decision, change=None, after=decision.before, actions=(), answers=answers)
