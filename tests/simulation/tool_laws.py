"""What must hold of journals and of the tools that are run for them.

Of each journal: whoever takes it over has a higher epoch than those before, was outstanding a
moment ago, and epochs of entries never fall. Of each run of a tool: its intent is committed, under
its worker's own epoch; no call of an earlier worker is open; and its worker has not lost the
journal longer ago than it may not know. A completed step leaves no call open. At the end: an
invocation took effect once, or as often as a person said that it had not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

import orjson
from headway.agents import Call, Context
from headway.agents.trial import CONFIRM_AFTER_S
from simulation.downstream import Downstream
from simulation.laws import Laws
from simulation.store_tables import EntryRow, JournalRow, Place
from simulation.world import World

Holder = tuple[int, int]  # attempt, and epoch of its command

UNKNOWN_MAX_S = 2.5 * CONFIRM_AFTER_S  # it may take twice that, and clocks drift
OPENS_WITHIN_S = 2.0  # of a decision to take it over
LATE_OPENING = frozenset(
    {
        *("delay", "freeze", "slow", "cut", "broker_kill", "wipe", "crash", "crash_at_commit"),
        *("store_slow", "store_down", "store_refuses", "store_answer_lost"),
    }
)
"""Faults under which a coordinator commits long after it has read."""


@dataclass(slots=True)
class Known:
    """A journal as it was seen last, and who has had it, in order."""

    head: JournalRow
    entries: int = 0
    held: list[tuple[int, Holder]] = field(default_factory=list)  # under which epoch
    lost_at: dict[Holder, float] = field(default_factory=dict)


class ToolLaws:
    def __init__(self, world: World, laws: Laws, downstream: Downstream) -> None:
        self._world = world
        self._laws = laws
        self._downstream = downstream
        self._known: dict[Place, Known] = {}
        self._calls: dict[UUID, tuple[Place, str]] = {}
        laws.on_journals = self._on_journals
        laws.on_completed = self._on_completed
        downstream.on_run = self._on_run

    def _on_journals(self) -> None:
        for place, head in self._world.tables.journals.items():
            known = self._known.get(place)
            if known is None or known.head is not head:
                for wrong in self._changed(place, head, known):
                    self._world.fail(f"the journal of {_named(place)}: {wrong}")

    def _changed(self, place: Place, head: JournalRow, known: Known | None) -> Iterator[str]:
        before = UNHELD if known is None else known.head
        known = self._known.setdefault(place, Known(head))
        was, now = (before.attempt, before.command_epoch), (head.attempt, head.command_epoch)
        if (*was, before.worker) != (*now, head.worker):
            if head.epoch <= before.epoch:
                yield f"it has another holder, and still epoch {head.epoch}"
            known.lost_at[was] = self._world.timeline.now
            if head.worker:
                known.lost_at.pop(now, None)
                known.held.append((head.epoch, now))
                yield from self._opened(place, now)
        entries = self._world.tables.entries.get(place, [])
        for entry in entries[known.entries :]:
            if entry.epoch != head.epoch:
                yield f"entry {entry.seq} is of epoch {entry.epoch}, and {head.epoch} has it"
        known.head, known.entries = head, len(entries)

    def _opened(self, place: Place, holder: Holder) -> Iterator[str]:
        task, step, phase = place
        state = self._laws.known[task].task.steps[step]
        if state.outstanding and (state.phase, state.attempt, state.epoch) == (phase, *holder):
            return
        since = self._world.timeline.now - self._laws.changed_at[task]
        if since > OPENS_WITHIN_S and LATE_OPENING.isdisjoint(self._world.chance.count):
            yield f"attempt {holder} has opened it and has not been outstanding for {since:.1f} s"

    def _on_run(self, context: Context, call: Call) -> None:
        place: Place = (call.task, context.step, context.phase)
        self._calls[call.id] = place, call.key
        known = self._known.get(place)
        holder = context.attempt, context.epoch
        wrong = self._wrong_run(place, known, holder, call) if known else "it was never opened"
        if wrong:
            self._world.fail(f"the tool call {call.key} of {_named(place)} is run: {wrong}")

    def _wrong_run(self, place: Place, known: Known, holder: Holder, call: Call) -> str:
        mine = [epoch for epoch, each in known.held if each == holder]
        entries = self._entries(place)
        if not any((e.kind, e.key) == ("intent", call.key) and e.epoch in mine for e in entries):
            return f"no intent of it is committed by attempt {holder}"
        lost_at = known.lost_at.get(holder)
        if lost_at is not None:
            since = self._world.timeline.now - lost_at
            return f"another has had its journal for {since:.1f} s" * (since > UNKNOWN_MAX_S)
        for key, open_call in orjson.loads(known.head.unsettled).items():
            if entries[open_call["seq"] - 1].epoch < mine[-1]:
                return f"call {key} of an earlier worker is open"
        return ""

    def _on_completed(self, task: UUID, step: str, phase: str) -> None:
        head = self._world.tables.journals.get((task, step, phase))
        if head is not None and head.unsettled != b"{}":
            self._world.fail(f"the step {step} of {task} is done and leaves calls open")

    def at_rest(self) -> None:
        """Once nothing moves any more."""
        for invocation, times in self._downstream.tools.items():
            place, key = self._calls[invocation]
            entries = self._entries(place)
            allowed = 1 + sum(e.kind == "void" and e.key == key and e.by != "" for e in entries)
            if times > allowed and invocation not in self._downstream.late:
                self._world.fail(
                    f"the tool call {key} of {_named(place)} took effect {times} times"
                )

    def _entries(self, place: Place) -> list[EntryRow]:
        return self._world.tables.entries.get(place, [])


UNHELD = JournalRow(0, 0, 0, 0, "", "", False, 0, 0, b"[]", b"{}")


def _named(place: Place) -> str:
    task, step, phase = place
    return f"{phase} {step} of {task}"
