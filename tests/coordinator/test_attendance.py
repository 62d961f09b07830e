"""Who counts as lost, look by look."""

from __future__ import annotations

import pytest
from headway.coordinator.attendance import FORGOTTEN_AFTER_S, Attendance, Look

HOME, AWAY = "server-home", "server-away"


def look(at: float, *names: str, servers: tuple[str, ...] = (HOME,), on: str = HOME) -> Look:
    return Look(at, at + 0.001, dict.fromkeys(names, on), servers)


@pytest.fixture
def attendance() -> Attendance:
    return Attendance(lost_after_s=0.5)


def test_one_who_is_missed_for_long_enough_is_lost_once(attendance: Attendance) -> None:
    assert attendance.take(look(0.0, "a", "b")) == []
    assert attendance.take(look(0.1, "a")) == []
    assert attendance.missed == ["b"]
    assert attendance.take(look(0.59, "a")) == []
    assert attendance.take(look(0.62, "a")) == ["b"]
    assert attendance.missed == []
    assert attendance.take(look(0.7, "a")) == []


def test_one_who_comes_back_is_not_lost_and_is_missed_anew(attendance: Attendance) -> None:
    attendance.take(look(0.0, "a"))
    attendance.take(look(0.1))
    attendance.take(look(0.5, "a"))
    assert attendance.missed == []
    assert attendance.take(look(0.9)) == []
    assert attendance.take(look(1.0)) == []
    assert attendance.take(look(1.5)) == ["a"]


def test_he_who_was_frozen_himself_has_missed_nobody(attendance: Attendance) -> None:
    attendance.take(look(0.0, "a"))
    assert attendance.take(look(60.0)) == []
    assert attendance.missed == ["a"]


def test_who_was_on_a_server_that_went_away_is_missed_and_at_last_forgotten_but_not_lost(
    attendance: Attendance,
) -> None:
    attendance.take(look(0.0, "a", servers=(HOME, AWAY), on=AWAY))
    for tenth in range(1, round(FORGOTTEN_AFTER_S * 10)):
        assert attendance.take(look(tenth / 10)) == []
        assert attendance.missed == ["a"]
    assert attendance.take(look(FORGOTTEN_AFTER_S + 0.2)) == []
    assert attendance.missed == []
    assert not attendance


def test_who_left_a_server_that_has_answered_since_is_lost(attendance: Attendance) -> None:
    attendance.take(look(0.0, "a", servers=(HOME, AWAY), on=AWAY))
    attendance.take(look(0.1, servers=(HOME, AWAY)))
    assert attendance.take(look(0.7)) == ["a"]


def test_who_moved_to_another_server_is_there(attendance: Attendance) -> None:
    attendance.take(look(0.0, "a", servers=(HOME, AWAY), on=AWAY))
    attendance.take(look(0.1))
    assert attendance.take(look(0.4, "a")) == []
    assert attendance.missed == []


def test_who_said_so_and_went_before_the_first_look_is_missed_once(attendance: Attendance) -> None:
    attendance.hear({"a": HOME})
    assert attendance.take(look(0.0)) == []
    attendance.hear({"a": HOME})
    assert attendance.take(look(0.6)) == ["a"]
    attendance.hear({"a": HOME})
    assert attendance.take(look(1.0)) == []
    assert attendance.missed == []
