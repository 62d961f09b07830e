"""The killer: a plan by seed that spares nobody, carried out on real processes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from headway.demo import killer
from headway.demo.killer import VICTIMS, Kill, Killed, carry_out, plan


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


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


async def test_a_planned_victim_is_killed_without_a_goodbye() -> None:
    victim = _sleeper()
    told: list[Killed] = []
    await carry_out([Kill(0.0, "mail")], lambda _role: victim.pid, told.append)
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert [(killed.victim, killed.pid) for killed in told] == [("mail", victim.pid)]


async def test_a_victim_that_is_down_is_waited_for() -> None:
    victim = _sleeper()
    gone = _sleeper()
    gone.kill()
    gone.wait(timeout=10)
    answers = iter([None, gone.pid, victim.pid])
    told: list[Killed] = []
    await carry_out([Kill(0.0, "mail")], lambda _role: next(answers), told.append)
    assert victim.wait(timeout=10) == -signal.SIGKILL
    assert [killed.pid for killed in told] == [victim.pid]


async def test_a_victim_that_never_comes_back_is_an_error_that_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(killer, "VICTIM_WITHIN_S", 0.1)
    with pytest.raises(TimeoutError, match="mail did not come back"):
        await carry_out([Kill(0.0, "mail")], lambda _role: None, lambda _killed: None)
