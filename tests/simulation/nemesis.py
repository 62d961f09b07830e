"""What goes wrong from outside, each second: deaths, cuts, kills, wipes, freezes, jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from simulation.process import Process
from simulation.world import World

STEPS_BEFORE_DEATH_MAX = 400
FREEZE_MAX_S = 20.0
AWAY_MAX_S = 6.0
JUMP_MAX_S = 30.0
NOTICED_MAX_S = 22.0
FLUSH_EVERY_S = 2.0
STOPPABLE = ("coordinator", "worker")


class Nemesis:
    """Looks every second at everything that may break."""

    def __init__(
        self,
        world: World,
        processes: Sequence[Process],
        lost: Callable[[list[bytes]], None],
    ) -> None:
        """`lost` is told submissions that were in JetStream only, when its store is wiped."""
        self._lost = lost
        self._world = world
        self._processes = processes
        self._rng = world.chance.rng("nemesis")
        world.on_death = self._died
        world.timeline.after(0.5, self._look)
        world.timeline.after(FLUSH_EVERY_S, self._flush)

    def heal(self) -> None:
        """Nothing goes wrong any more, and all are up."""
        world = self._world
        world.chance.heal()
        world.told("heals")
        world.store_is_down = False
        if not world.broker.up:
            world.broker.start()
        for process in self._processes:
            process.quicken()
            for line in process.lines():
                line.noticed()
            process.clock.settle()

    def _look(self) -> None:
        world, chance = self._world, self._world.chance
        if chance.healed:
            return
        for process in self._processes:
            self._strike(process)
        kill = chance.hit("broker_kill", "broker")
        if kill is not None and world.broker.up:
            world.told("broker dies")
            world.broker.kill(kill)
            world.timeline.after(AWAY_MAX_S * kill.random() ** 2, self._broker_returns)
        wipe = chance.hit("wipe", "broker")
        if wipe is not None:
            world.told("wiped")
            self._lost(world.broker.wipe())
        down = chance.hit("store_down", "store")
        if down is not None and not world.store_is_down:
            world.told("store is away")
            world.store_is_down = True
            world.timeline.after(AWAY_MAX_S * down.random() ** 2, self._store_returns)
        world.timeline.after(1.0, self._look)

    def _strike(self, process: Process) -> None:
        world, name = self._world, process.name
        if process.over or not process.alive:
            return
        crash = world.chance.hit("crash", name)
        if crash is not None:
            process.loop.dies_after = int(STEPS_BEFORE_DEATH_MAX * crash.random() ** 2)
        if name.startswith(STOPPABLE) and world.chance.hit("stop", name):
            world.told("is asked to stop", name)
            process.ask_to_stop()
        freeze = world.chance.hit("freeze", name)
        if freeze is not None:
            seconds = FREEZE_MAX_S * freeze.random() ** 2
            world.told("freezes", name, f"{seconds:.2f}")
            process.loop.freeze(seconds)
        cut = world.chance.hit("cut", name)
        if cut is not None:
            for line in process.lines():
                world.told("cut", name)
                line.cut(cut.random() * 2, NOTICED_MAX_S * cut.random() ** 4)
        jump = world.chance.hit("jump", name)
        if jump is not None:
            process.clock.skew_s += jump.uniform(-JUMP_MAX_S, JUMP_MAX_S)

    def _died(self, process: Process) -> None:
        self._world.timeline.after(0.2 + 5 * self._rng.random() ** 3, self._return, process)

    def _return(self, process: Process) -> None:
        if not process.alive and not process.over:
            process.begin()

    def _broker_returns(self) -> None:
        if not self._world.broker.up:
            self._world.told("broker returns")
            self._world.broker.start()

    def _store_returns(self) -> None:
        self._world.store_is_down = False

    def _flush(self) -> None:
        if self._world.broker.up:
            self._world.broker.flush(self._rng)
        self._world.timeline.after(FLUSH_EVERY_S * (0.2 + 2 * self._rng.random()), self._flush)
