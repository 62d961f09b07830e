"""Checkpoints: how far an agent has come, and that its journal still says the same. Pure.

A checkpoint names the entry before it, and a digest of how every call up to there ended. On resume
both must be found again in the journal, or a person has to look: going on from a journal that lost
an entry would do things twice.

An agent's own state is kept in the checkpoint that gave it; those written by themselves, after a
tool's result and the like, point to it (`state_at`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headway.agents.entries import Entry, NewEntry

Cause = Literal["agent", "result", "long", "fault", "stop", "sure"]
"""Why there is one: an agent gave its state; a call ended, or a long one begins; the handler failed
or was stopped; it was made sure that the journal is still ours."""

_ENDINGS = ("result", "failure", "void")


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a journal: its last entry's number, and what led there.

    `chain` is the digest of the endings of calls so far; `state_at` the number of the checkpoint
    with the agent's last state, 0 if it never gave one.
    """

    seq: int = 0
    chain: str = ""
    state_at: int = 0

    def after(self, entry: NewEntry) -> Position:
        """The place right behind `entry`, which is the next one here."""
        seq, chain, state_at = self.seq + 1, self.chain, self.state_at
        if entry.kind in _ENDINGS:
            link = f"{chain}/{seq}/{entry.kind}/{entry.key}/{entry.datadigest}"
            chain = hashlib.sha256(link.encode()).hexdigest()
        elif has_state(entry):
            state_at = seq
        return Position(seq, chain, state_at)


def after_all(position: Position, entries: Iterable[NewEntry]) -> Position:
    """The place behind these entries."""
    for entry in entries:
        position = position.after(entry)
    return position


def checkpoint(position: Position, cause: Cause) -> NewEntry:
    """The checkpoint that says that the journal ends at `position`."""
    return NewEntry(kind="checkpoint", data=_mark(position, cause))


def with_state(position: Position, state: NewEntry) -> NewEntry:
    """As `checkpoint`, with the agent's state, which `state` has as data or by reference."""
    mark = _mark(position, "agent")
    if not state.dataref:
        mark["state"] = state.data
    return state.model_copy(update={"data": mark})


def has_state(entry: NewEntry) -> bool:
    """Whether this is a checkpoint in which an agent gave its state."""
    return entry.kind == "checkpoint" and (bool(entry.dataref) or "state" in _data(entry))


def inline_state(entry: NewEntry) -> Any:
    """The state in a checkpoint that has it, and not by reference."""
    return _data(entry)["state"]


def inconsistency(entries: Sequence[Entry]) -> str:
    """What contradicts itself in a journal, in words; "" if nothing does."""
    position = Position()
    for entry in entries:
        if entry.seq != position.seq + 1:
            return (
                f"the journal's entry {position.seq + 1} is missing: "
                f"entry {entry.seq} follows entry {position.seq}"
            )
        if entry.kind == "checkpoint" and (words := _contradiction(entry, position)):
            return words
        position = position.after(entry)
    return ""


def _contradiction(entry: Entry, position: Position) -> str:
    mark = _data(entry)
    after, chain = mark.get("after"), mark.get("chain")
    if after == position.seq and chain == position.chain:
        return ""
    if isinstance(after, int) and after > position.seq:
        return (
            f"the checkpoint in entry {entry.seq} was written after entry {after}: "
            "it is ahead of its journal"
        )
    return (
        f"the checkpoint in entry {entry.seq} remembers other results than the journal has "
        f"up to entry {position.seq}"
    )


def _mark(position: Position, cause: Cause) -> dict[str, Any]:
    mark: dict[str, Any] = {"cause": cause, "after": position.seq, "chain": position.chain}
    if position.state_at:
        mark["state_at"] = position.state_at
    return mark


def _data(entry: NewEntry) -> dict[str, Any]:
    return entry.data if isinstance(entry.data, dict) else {}
