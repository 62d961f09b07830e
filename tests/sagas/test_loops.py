"""The loop breaker: every loop is seen at its last repetition, and nothing else is."""

from __future__ import annotations

from itertools import product

import pytest
from headway.sagas.loops import CYCLE_MAX, REPEATS, TRAIL_MAX, repeating

WORK = ["plan", "search", "read", "search", "read", "write", "check", "write", "check", "send"]


def _first_alarm(signatures: list[str]) -> int:
    """After how many signatures a loop is seen first; 0 if never."""
    for count in range(1, len(signatures) + 1):
        if repeating(signatures[:count]):
            return count
    return 0


def _loops_by_definition(signatures: tuple[str, ...]) -> bool:
    """The definition, said in another way: the last ones have a short period for long enough."""
    for period in range(1, CYCLE_MAX + 1):
        tail = signatures[-period * REPEATS :]
        if len(tail) == period * REPEATS and all(
            tail[place] == tail[place + period] for place in range(len(tail) - period)
        ):
            return True
    return False


def test_nothing_repeats_where_nothing_was_done() -> None:
    assert repeating([]) == ""


def test_the_same_five_times_in_a_row_is_a_loop_and_four_times_is_not() -> None:
    assert repeating(["plan", *["lookup"] * 4]) == ""
    assert repeating(["plan", *["lookup"] * 5]) == "'lookup' 5 times in a row"


@pytest.mark.parametrize(
    ("cycle", "words"),
    [
        (["a", "b"], "the cycle 'a', 'b' 5 times"),
        (["a", "b", "c"], "the cycle 'a', 'b', 'c' 5 times"),
        (["a", "b", "c", "d"], "the cycle 'a', 'b', 'c', 'd' 5 times"),
        (["a", "a", "b"], "the cycle 'a', 'a', 'b' 5 times"),
    ],
)
def test_a_short_cycle_is_a_loop_when_its_fifth_round_is_complete(
    cycle: list[str], words: str
) -> None:
    rounds = ["plan", *cycle * 5]
    assert repeating(rounds) == words
    assert _first_alarm(rounds) == len(rounds)


def test_two_agents_that_hand_off_to_each_other_are_stopped() -> None:
    assert _first_alarm(["triage", "billing"] * 50) == 10


def test_a_cycle_of_five_is_no_loop() -> None:
    assert _first_alarm(["a", "b", "c", "d", "e"] * 50) == 0


def test_a_loop_that_was_left_is_no_loop() -> None:
    assert repeating([*["lookup"] * 5, "write"]) == ""


def test_the_shortest_cycle_is_told() -> None:
    assert repeating(["a", "b"] * 10) == "the cycle 'a', 'b' 5 times"


def test_ordinary_work_raises_no_alarm() -> None:
    assert _first_alarm(WORK) == 0
    assert _first_alarm(WORK * 20) == 0
    pages = [step for page in range(100) for step in ("fetch", f"read {page}", "note")]
    assert _first_alarm(pages) == 0


def test_what_was_done_before_the_trail_changes_nothing() -> None:
    for cycle in (["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]):
        long = ["plan", *cycle * 30]
        assert repeating(long) == repeating(long[-TRAIL_MAX:]) != ""


def test_of_all_short_sequences_exactly_those_that_loop_raise_the_alarm() -> None:
    for alphabet, longest in (("ab", 13), ("abc", 8)):
        for length in range(longest + 1):
            for signatures in product(alphabet, repeat=length):
                assert bool(repeating(signatures)) is _loops_by_definition(signatures), signatures


def test_of_all_cycles_exactly_those_short_enough_raise_the_alarm_and_only_at_the_end() -> None:
    for length in range(1, CYCLE_MAX + 1):
        for cycle in product("abcd", repeat=length):
            rounds = list(cycle) * REPEATS
            alarm = _first_alarm(rounds)
            assert alarm, cycle
            assert _loops_by_definition(tuple(rounds[:alarm])), cycle
            broken = ["x", *rounds[1:]]
            assert not repeating(broken) or _loops_by_definition(tuple(broken)), cycle
