"""The killer: a plan by seed that spares nobody, carried out on real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from headway.coordinator.process import ServerError
from headway.demo import killer
from headway.demo.killer import VICTIMS, Kill, Killed, Returned, carry_out, plan


def test_the_same_seed_plans_the_same_kills_and_another_seed_others() -> None:
    assert plan(7, 12, 25.0) == plan(7, 12, 25.0)
    assert plan(7, 12, 25.0) != plan(8, 12, 25.0)


@pytest.mark.parametrize("seed", range(1, 6))
def test_everyone_has_a_turn_before_anyone_has_a_second_one(seed: int) -> None:
    kills = plan(seed, 13, 25.0)
    assert {kill.victim for kill in kills[:6]} == {kill.victim for kill in kills[6:12]}
    assert {kill.victim for kill in kills} == set(VICTIMS)
    assert len(kills) == 13


def test_kills_come_in_order_of_time_and_within_the_span() -> None:
    moments = [kill.at_s for kill in plan(1, 50, 25.0)]
    assert moments == sorted(moments)
    assert moments[0] >= killer.QUIET_START_S
    assert moments[-1] <= 25.0


def test_no_kills_are_a_plan_too() -> None:
    assert plan(1, 0, 25.0) == []


class Role:
    """A role that one process after the other plays, as under a supervisor."""

    def __init__(self) -> None:
        self.played_by = [_sleeper()]

    def find(self, _role: str) -> int | None:
        if self.played_by[-1].poll() is None:
            return self.played_by[-1].pid
        self.played_by.append(_sleeper())
        return None

    def end(self) -> None:
        for process in self.played_by:
            process.kill()
            process.wait(timeout=10)


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


@pytest.fixture
def role() -> Iterator[Role]:
    role = Role()
    yield role
    role.end()


async def test_a_planned_victim_is_killed_without_a_goodbye_and_seen_to_return(role: Role) -> None:
    told: list[Killed | Returned] = []
    await carry_out([Kill(0.0, "mail")], role.find, told.append)
    first, second = role.played_by
    assert first.wait(timeout=10) == -signal.SIGKILL
    killed, returned = told
    assert (killed.victim, killed.pid) == ("mail", first.pid)
    assert (returned.victim, returned.pid) == ("mail", second.pid)
    assert killed.at_s <= returned.at_s


async def test_a_victim_that_is_down_is_waited_for(role: Role) -> None:
    role.played_by[0].kill()
    role.played_by[0].wait(timeout=10)
    told: list[Killed | Returned] = []
    await carry_out([Kill(0.0, "mail")], role.find, told.append)
    assert [one.pid for one in told] == [process.pid for process in role.played_by[1:]]


async def test_a_process_that_ended_by_itself_is_not_counted_as_killed(role: Role) -> None:
    gone = _sleeper()
    gone.kill()
    gone.wait(timeout=10)
    answers = iter([gone.pid])
    told: list[Killed | Returned] = []
    await carry_out([Kill(0.0, "mail")], lambda name: next(answers, role.find(name)), told.append)
    assert [one.pid for one in told] == [process.pid for process in role.played_by]


async def test_a_victim_that_never_comes_back_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(killer, "VICTIM_WITHIN_S", 0.1)
    with pytest.raises(ServerError, match="mail did not come back"):
        await carry_out([Kill(0.0, "mail")], lambda _role: None, lambda _told: None)
