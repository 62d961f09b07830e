"""When an agent is given nothing more for a while: the rules alone."""

from __future__ import annotations

from headway.coordinator.breaker import (
    CALM_MS,
    FAILURES_MIN,
    PAUSE_FIRST_MS,
    PAUSE_MAX_MS,
    WINDOW_MS,
    Breaker,
    Outcomes,
    outcome_of,
    turn,
)
from headway.coordinator.intake import Item, nobody_waits
from headway.sagas import inputs as i
from headway.sagas.task import Failure, Phase

NOW = 1_800_000_000_000
CLOSED = Breaker("shop", begun_at=NOW - 10 * CALM_MS)


def seen(failures, successes=0, at=NOW):
    outcomes = Outcomes()
    for failed, count in ((True, failures), (False, successes)):
        for _ in range(count):
            outcomes.add(at, failed=failed)
    return outcomes


def test_it_opens_when_enough_failed_and_those_are_half():
    assert turn(CLOSED, seen(FAILURES_MIN - 1), NOW, 0) is None
    assert turn(CLOSED, seen(FAILURES_MIN, FAILURES_MIN + 1), NOW, 0) is None
    turned = turn(CLOSED, seen(FAILURES_MIN, FAILURES_MIN), NOW, 0)
    assert turned.state == "open"
    assert turned.open_ms == PAUSE_FIRST_MS
    assert turned.reason == "20 of 40 attempts failed within 10 s"


def test_what_is_long_ago_does_not_count():
    assert turn(CLOSED, seen(1_000), NOW + WINDOW_MS + 100, 0) is None


def test_failures_from_before_it_closed_do_not_count_again():
    just_closed = CLOSED._replace(begun_at=NOW + 200)
    assert turn(just_closed, seen(1_000), NOW + 300, 0) is None


def test_it_is_probed_once_its_pause_is_over():
    breaker = CLOSED._replace(state="open", probe_at=NOW + 1_000, trips=1)
    assert turn(breaker, seen(100), NOW + 999, 0) is None
    assert turn(breaker, seen(100), NOW + 1_000, 0).state == "probing"


def test_a_probe_decides():
    breaker = CLOSED._replace(state="probing", begun_at=NOW, trips=2)
    assert turn(breaker, seen(100, at=NOW - 1_000), NOW, 0) is None
    assert turn(breaker, seen(0, 1), NOW, 0).state == "closed"
    again = turn(breaker, seen(1), NOW, 0)
    assert (again.state, again.open_ms, again.trips) == ("open", 4 * PAUSE_FIRST_MS, 3)


def test_pauses_grow_and_differ_but_not_for_ever():
    breaker = CLOSED._replace(state="probing", begun_at=NOW)
    pauses = [turn(breaker._replace(trips=n), seen(1), NOW, 0).open_ms for n in range(40)]
    assert pauses[:4] == [1_000, 2_000, 4_000, 8_000]
    assert set(pauses[6:]) == {PAUSE_MAX_MS}
    assert turn(breaker, seen(1), NOW, 1.0).open_ms == 1_200
    assert turn(breaker, seen(1), NOW, -1.0).open_ms == 800


def test_after_a_calm_while_it_begins_anew():
    relapsed = Breaker("shop", begun_at=NOW - CALM_MS // 2, trips=5)
    assert turn(relapsed, seen(30), NOW, 0).open_ms == 32 * PAUSE_FIRST_MS
    calm = relapsed._replace(begun_at=NOW - CALM_MS - 1)
    assert turn(calm, seen(30), NOW, 0).open_ms == PAUSE_FIRST_MS


def test_what_a_person_paused_only_a_person_resumes():
    paused = CLOSED._replace(state="paused")
    assert turn(paused, seen(0, 100), NOW + 10 * CALM_MS, 0) is None


def outcome(happened, **options):
    return outcome_of(Item(None, happened, nobody_waits, agent="shop"), **options)


def failed(**changes):
    named = {"retryable": True, "no_effect": False, **changes}
    return i.Failed(NOW, "a", Phase.ACTION, 1, 0, Failure("E", "e"), **named)


def test_only_what_trying_again_may_mend_counts_as_failed():
    assert outcome(failed()) is True
    assert outcome(i.TimedOut(NOW, "a", Phase.ACTION, 1, 0)) is True
    assert outcome(failed(retryable=False)) is None
    assert outcome(failed(hold=True)) is None
    assert outcome(i.Succeeded(NOW, "a", Phase.ACTION, 1)) is False
    assert outcome(i.Heartbeat(NOW, "a", Phase.ACTION, 1, 0)) is None


def test_to_a_probe_any_answer_is_a_success():
    assert outcome(failed(), probed=True) is True
    assert outcome(failed(retryable=False), probed=True) is False
    assert outcome(failed(hold=True), probed=True) is False
    assert outcome(i.Heartbeat(NOW, "a", Phase.ACTION, 1, 0), probed=True) is None


def test_outcomes_take_no_more_room_however_many_there_are():
    outcomes = Outcomes()
    for at in range(0, 100 * WINDOW_MS, 37):
        outcomes.add(NOW + at, failed=False)
    assert len(outcomes._slots) == WINDOW_MS // 100
