"""What simulated runs found, each as a small play of its own."""

from __future__ import annotations

from simulation.faults import Faults
from simulation.process import Process
from simulation.run import bury, coordinate, staged
from simulation.world import World


def until(world: World, when: float) -> None:
    while world.timeline.now < when and not world.wrong and world.timeline.step():
        pass


def cut(process: Process, noticed_after_s: float) -> None:
    """The server notices at once, the process only later."""
    for line in process.lines():
        line.cut(0.0, noticed_after_s)


def test_a_coordinator_whose_server_falls_silent_while_it_starts_serves_later() -> None:
    """It ended with a timeout of the flush that follows the registration of its service."""
    world = World(1, Faults.none())
    with staged(world):
        coordinator = Process(world, "coordinator", coordinate)
        while not world.broker.listens("$SRV.PING") and world.timeline.step():
            pass
        cut(coordinator, noticed_after_s=30.0)
        until(world, 20.0)
        assert not world.broker.listens("hw.api.health")
        until(world, 60.0)
        served = world.broker.listens("hw.api.health")
        wrong = list(world.wrong)
        bury(world, [coordinator])
    assert wrong == []
    assert served
