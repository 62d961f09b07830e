"""What a journal says about calls, and which of them a handler's next call is. Pure.

A call with a `key=` is found by it. The others are found by their order: the n-th call without a
key must be the n-th in the journal, the same tool with the same arguments. A handler that takes up
its state from a checkpoint goes on with the calls that came after that.

A task's output that was not accepted makes its last steps run again, with `ctx.rejection`: then
calls without a key are found by tool and arguments alone, so that what is asked as before has its
result from before, and what is asked anew is run.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.agents.entries import KEY_MAX_CHARS, Entry, NewEntry
from headway.agents.errors import DeclarationError, JournalMismatch
from headway.agents.plainjson import is_text

NUMBER = "#"  # between a tool and a number, in the key of a call that was given none


@dataclass(slots=True)
class Recorded:
    """A call in the journal: its first intent, how often it was begun, and how it ended."""

    intent: Entry
    runs: int = 1
    ending: NewEntry | None = None  # a result or a failure
    ended_at: int = 0  # the ending's number
    voided: bool = False

    @property
    def key(self) -> str:
        return self.intent.key

    @property
    def unsettled(self) -> bool:
        return self.ending is None and not self.voided


@dataclass(slots=True)
class Place:
    """Where a call belongs: its key, and what the journal has of it."""

    key: str
    recorded: Recorded | None = None

    @property
    def runs(self) -> int:
        return 0 if self.recorded is None else self.recorded.runs

    @property
    def ending(self) -> NewEntry | None:
        return None if self.recorded is None else self.recorded.ending


@dataclass(slots=True)
class Replay:
    """The calls of a journal, handed out as a handler makes them again.

    `attempt` is the one that runs now; `anew`: the last output was not accepted.
    """

    attempt: int
    anew: bool = False
    calls: dict[str, Recorded] = field(default_factory=dict)  # in the order of first intents
    _numbered: list[Recorded] = field(default_factory=list)
    _last_call: int = 0  # its first intent
    _notes: deque[str] = field(default_factory=deque)
    _used: set[str] = field(default_factory=set)
    _made: int = 0
    _numbers: Counter[str] = field(default_factory=Counter)

    def read(self, entries: Iterable[Entry]) -> None:
        """Take in what the journal has: at first all of it, then what was added."""
        for entry in entries:
            if entry.kind == "intent":
                known = self.calls.get(entry.key)
                if known is None:
                    self._add(Recorded(entry))
                else:
                    known.runs, known.ending, known.voided = known.runs + 1, None, False
            elif entry.key in self.calls:
                call = self.calls[entry.key]
                if entry.kind in ("result", "failure"):
                    call.ending, call.ended_at = entry, entry.seq
                elif entry.kind == "void":
                    call.ending, call.voided = None, True
            elif entry.kind == "note":
                self._notes.append(str(entry.data))

    def _add(self, call: Recorded) -> None:
        self.calls[call.key] = call
        self._last_call = call.intent.seq
        if NUMBER in call.key:
            self._numbered.append(call)

    def go_on_after(self, seq: int) -> None:
        """The handler has its state from entry `seq`, a checkpoint: it made the calls before."""
        before = [call for call in self._numbered if call.intent.seq < seq]
        self._made = max(self._made, len(before))
        self._numbers |= Counter(call.intent.tool for call in before)  # the larger of both

    def noted(self, text: str) -> bool:
        """Whether the handler's next note is in the journal already."""
        if self._notes and self._notes[0] == text:
            self._notes.popleft()
            return True
        return False

    def unsettled(self) -> list[Recorded]:
        """The calls of which nobody knows how they ended."""
        return [call for call in self.calls.values() if call.unsettled]

    def left(self) -> list[Recorded]:
        """The calls that the handler has not made again."""
        return [call for call in self.calls.values() if call.key not in self._used]

    def next(self, tool: str, digest: str, key: str = "") -> Place:
        """The place of the handler's next call. Raises JournalMismatch, or DeclarationError for a
        key that cannot be one."""
        place = self._named(tool, digest, key) if key else self._unnamed(tool, digest)
        self._used.add(place.key)
        if place.recorded is not None and self._is_open_again(place.recorded):
            place.recorded.ending = None
        return place

    def _named(self, tool: str, digest: str, key: str) -> Place:
        if NUMBER in key or "\0" in key or len(key) > KEY_MAX_CHARS or not is_text(key):
            raise DeclarationError(
                f"key={key!r}: use at most {KEY_MAX_CHARS} characters of Unicode, no # and no NUL"
            )
        if key in self._used:
            raise DeclarationError(f"key={key!r} is given to two calls; each needs its own")
        recorded = self.calls.get(key)
        if recorded is not None:
            _check_same(f"the call with key {key!r}", tool, digest, recorded.intent)
        return Place(key, recorded)

    def _unnamed(self, tool: str, digest: str) -> Place:
        self._made += 1
        self._numbers[tool] += 1
        if self.anew:
            return self._by_content(tool, digest)
        if self._made > len(self._numbered):
            return Place(f"{tool}{NUMBER}{self._numbers[tool]}")
        recorded = self._numbered[self._made - 1]
        _check_same(f"call {self._made}", tool, digest, recorded.intent)
        return Place(recorded.key, recorded)

    def _by_content(self, tool: str, digest: str) -> Place:
        for call in self._numbered:
            same = (call.intent.tool, call.intent.arguments_digest) == (tool, digest)
            if same and call.key not in self._used:
                return Place(call.key, call)
        taken = self._used | self.calls.keys()
        number = 1
        while f"{tool}{NUMBER}{number}" in taken:
            number += 1
        return Place(f"{tool}{NUMBER}{number}")

    def _is_open_again(self, call: Recorded) -> bool:
        """Whether a failure is tried again: it is of an earlier attempt, another try may end
        better, and no call was made after it, so nothing was built on it."""
        ending = call.ending
        if ending is None or ending.kind != "failure" or self._last_call > call.ended_at:
            return False
        data = ending.data if isinstance(ending.data, dict) else {}
        return bool(data.get("retryable")) and data.get("attempt", self.attempt) < self.attempt


def _check_same(what: str, tool: str, digest: str, intent: Entry) -> None:
    if (intent.tool, intent.arguments_digest) == (tool, digest):
        return
    raise JournalMismatch(
        f"{what} is of tool {tool!r} with arguments {digest[:12]}…, but the journal has tool "
        f"{intent.tool!r} with arguments {intent.arguments_digest[:12]}… there (entry "
        f"{intent.seq}): the handler changed, or does not do the same each time; give calls whose "
        "order may change a key="
    )
