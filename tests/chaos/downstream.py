"""The world behind the agents: a process that is never harmed, whose log is the witness.

    action      nothing yet      done             undone       barred
    do, use     apply → done     same answer      refuse       refuse
    send        apply → done     apply once more  refuse       refuse
    undo        → barred, empty  → undone         same         same, empty

`do` is a step's effect and `undo` takes it back. `use` and `send` are effects of a tool's calls, of
which `send` dedupes nothing; `look` tells whether one happened. `recall` undoes all that belongs to
an operation and bars what is still to come. `model` has no effect but is counted.

Always holds: what is answered is in the log, and on disk.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

LINE_MAX_BYTES = 65_536

What = Literal["do", "undo", "use", "send", "look", "recall", "model"]
State = Literal["done", "undone", "barred"]


@dataclass(frozen=True)
class Request:
    """One call. `id` names the effect and `of` the operation (task, step, action) that it is for;
    `words` say how it is to be answered, such as `hold=0.2 drop`."""

    what: What
    id: str
    of: str
    task: str
    step: str
    attempt: int
    pid: int
    words: str = ""


@dataclass(frozen=True)
class Entry(Request):
    """One line of the log: a call that came in, or (with an `outcome`) what it came to."""

    seq: int = 0
    at: float = 0.0
    outcome: str = ""


@dataclass
class Effect:
    """What there is under one id: how often it was applied, and where it stands."""

    task: str
    step: str
    state: State
    times: int = 0


@dataclass
class Effects:
    """All effects, and what makes them: the rules above, without any input or output."""

    by_id: dict[str, Effect] = field(default_factory=dict)
    of: defaultdict[str, list[Effect]] = field(default_factory=lambda: defaultdict(list))
    recalled: set[str] = field(default_factory=set)

    def perform(self, request: Request) -> str:
        match request.what:
            case "do" | "use" | "send":
                return self._apply(request)
            case "undo":
                return self._undo(request)
            case "recall":
                return self._recall(request)
            case "look":
                found = self.by_id.get(request.id)
                return "found" if found and found.state == "done" else "not found"
            case "model":
                return "said"

    def _apply(self, request: Request) -> str:
        effect = self.by_id.get(request.id)
        if request.of in self.recalled or (effect is not None and effect.state != "done"):
            return "refused"
        if effect is None:
            effect = self._make(request, "done")
        elif request.what != "send":
            return "repeated"
        effect.times += 1
        return "applied"

    def _undo(self, request: Request) -> str:
        effect = self.by_id.get(request.id)
        if effect is None:
            effect = self._make(request, "barred")
        if effect.state == "done":
            effect.state = "undone"
            return "undone"
        return "undone before" if effect.state == "undone" else "nothing"

    def _recall(self, request: Request) -> str:
        self.recalled.add(request.of)
        found = self.of[request.of]
        for effect in found:
            effect.state = "undone"
        return "undone" if found else "nothing"

    def _make(self, request: Request, state: State) -> Effect:
        effect = Effect(request.task, request.step, state)
        self.by_id[request.id] = effect
        self.of[request.of].append(effect)
        return effect


class Log:
    """An append-only file of JSON lines; `keep` returns when its line is on disk."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._more = asyncio.Event()
        self._seq = 0

    async def keep(self, request: Request, outcome: str = "") -> int:
        """The number of the new line."""
        self._seq += 1
        number = self._seq
        entry = Entry(**asdict(request), seq=number, at=time.time(), outcome=outcome)
        kept = asyncio.get_running_loop().create_future()
        self._waiting.append((json.dumps(asdict(entry)).encode() + b"\n", kept))
        self._more.set()
        await kept
        return number

    async def run(self) -> None:
        """Write what waits, all that there is at once."""
        while True:
            await self._more.wait()
            self._more.clear()
            waiting, self._waiting = self._waiting, []
            os.write(self._file, b"".join(line for line, _ in waiting))
            await asyncio.get_running_loop().run_in_executor(None, os.fsync, self._file)
            for _, kept in waiting:
                kept.set_result(None)


def read_log(path: Path) -> list[Entry]:
    """Everything that is in the log so far."""
    lines = path.read_bytes().splitlines(keepends=True)
    return [Entry(**json.loads(line)) for line in lines if line.endswith(b"\n")]


class Service:
    """Serves any number of agents. An effect does not depend on who still listens."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._effects = Effects()
        self._seen: Counter[tuple[str, str]] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the one call of a connection."""
        try:
            if line := await reader.readline():
                answer = await self._answer(Request(**json.loads(line)))
                if answer is not None:
                    writer.write(json.dumps(answer).encode() + b"\n")
                    await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def _answer(self, request: Request) -> dict[str, Any] | None:
        """None: it hangs up, though what was asked for was done."""
        words = Words(request.words)
        seen = self._seen[request.what, request.id]
        self._seen[request.what, request.id] += 1
        await self._log.keep(request)
        await asyncio.sleep(words.seconds("hold"))
        if words.has("reject"):
            outcome = "rejected"
        elif seen < words.number("fail"):
            outcome = "failed"
        else:
            outcome = self._effects.perform(request)
        receipt = await self._log.keep(request, outcome)
        await asyncio.sleep(words.seconds("late"))
        if words.has("drop") and seen == 0:
            return None
        return {"outcome": outcome, "receipt": receipt}


class Words:
    """Orders of how a call is to be answered: `hold=0.2 fail=2 drop`."""

    def __init__(self, text: str) -> None:
        self._given = dict(word.partition("=")[::2] for word in text.split())

    def has(self, word: str) -> bool:
        return word in self._given

    def number(self, word: str) -> int:
        return int(self._given.get(word, 0))

    def seconds(self, word: str) -> float:
        return float(self._given.get(word, 0.0))
