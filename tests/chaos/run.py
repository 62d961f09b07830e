"""A run: faults in turn, round by round, on stages that are made anew now and then."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from chaos import link_faults, mixed_faults, process_faults, server_faults, traffic_faults
from chaos.claims import Finding
from chaos.faults import FAULTS, Fault
from chaos.rounds import Result, play
from chaos.stage import Stage
from chaos.theatre import NoMount, theatre

PARTS = (
    process_faults,
    link_faults,
    server_faults,
    traffic_faults,
    mixed_faults,
)  # which enter their faults
STAGE_ROUNDS = 6  # on one stage: enough to meet what earlier rounds left behind

Tell = Callable[[Result], None]


def chosen(names: Sequence[str], *, long: bool) -> list[Fault]:
    """The faults whose names hold one of these; without names, all that are for such a run."""
    if not names:
        return [each for each in FAULTS.values() if long or not (each.only_long or each.mounts)]
    found = [each for each in FAULTS.values() if any(name in each.name for name in names)]
    if not found:
        raise SystemExit(f"there is no such fault; there are: {', '.join(FAULTS)}")
    return found


def plan(faults: Sequence[Fault], rounds: int | None) -> Iterator[tuple[Fault, int]]:
    """Each fault once, then each once more; without end unless `rounds` are given."""
    number = 0
    while rounds is None or number < rounds:
        number += 1
        for fault in faults:
            yield fault, number


class Run:
    """Plays rounds; `stage` is shared by up to STAGE_ROUNDS of them, but for a broken one's."""

    def __init__(self, folder: Path, seed: int, tell: Tell) -> None:
        self.results: list[Result] = []
        self._folder = folder
        self._seed = seed
        self._tell = tell
        self._stack = AsyncExitStack()
        self._stage: Stage | None = None
        self._mounted = False
        self._rounds = 0
        self._stages = 0

    async def play(self, faults: Sequence[Fault], rounds: int | None, until: float) -> None:
        """Play until all is played or, by the monotonic clock, time is up."""
        try:
            for fault, number in plan(faults, rounds):
                if time.monotonic() > until:
                    break
                await self._play_one(fault, f"{self._seed}/{fault.name}/{number}")
        finally:
            await self._leave()

    async def _play_one(self, fault: Fault, seed: str) -> None:
        try:
            stage = await self._stage_for(fault)
        except Exception as error:  # the fault counts as failed: it was not shown
            said = str(error) if isinstance(error, NoMount) else f"{type(error).__name__}: {error}"
            result = Result(fault.name, seed, findings=[Finding("law", "no stage", said)])
        else:
            result = await play(stage, fault, seed)
        self._rounds += 1
        self.results.append(result)
        self._tell(result)
        if not result.held:
            await self._leave()

    async def _stage_for(self, fault: Fault) -> Stage:
        if self._stage is not None and (
            self._rounds >= STAGE_ROUNDS or self._mounted != fault.mounts
        ):
            await self._leave()
        if self._stage is None:
            self._stages += 1
            folder = self._folder / f"stage-{self._stages}"
            rng = random.Random(f"{self._seed}/stage/{self._stages}")
            made = theatre(folder, rng, mounts=fault.mounts)
            self._stage = await self._stack.enter_async_context(made)
            self._mounted, self._rounds = fault.mounts, 0
        return self._stage

    async def _leave(self) -> None:
        self._stage = None
        await self._stack.aclose()
