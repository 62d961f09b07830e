"""What a journal takes and refuses, as a function of values: every short journal there is."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import pytest
from harness.journals import failure, intent, result, usage, void
from headway.agents.entries import (
    BUDGET_SPENT,
    LOOP_DETECTED,
    OUT_OF_ORDER,
    SUPERSEDED,
    TRIPPED,
    UNDER_WAY_MAX,
    JournalAppend,
    NewEntry,
)
from headway.agents.manifest import Manifest
from headway.coordinator.errors import Refusal
from headway.coordinator.journal_rows import Bounds, Call, Change, Head, Spent, row_of
from headway.coordinator.journaling import FAILURES_MAX, GUARDS, appended

TASK = UUID("01890000-0000-7000-8000-000000000000")
HELD = Head(epoch=1, worker="w", agent="clerk")
FREE = Bounds()


def append(
    head: Head, *entries: NewEntry, bounds: Bounds = FREE, seq: int = 0, epoch: int = 0
) -> Change | None:
    request = JournalAppend(
        task=TASK,
        step="do",
        phase="action",
        epoch=epoch or head.epoch,
        seq=seq or head.seq + 1,
        entries=list(entries),
    )
    rows = [row_of(entry, number) for number, entry in enumerate(entries)]
    return appended(request, "clerk", rows, head, bounds)


def after(head: Head, *entries: NewEntry, bounds: Bounds = FREE) -> Head:
    change = append(head, *entries, bounds=bounds)
    assert change is not None
    return change.after


def why_not(head: Head, *entries: NewEntry, bounds: Bounds = FREE) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as caught:
        append(head, *entries, bounds=bounds)
    return caught.value.code, caught.value.kind, caught.value.reason


WORDS = {
    "begin pay": intent("pay"),
    "paid": result("pay"),
    "pay failed": failure("pay"),
    "pay never happened": void("pay"),
    "begin look": intent("look"),
    "looked": result("look"),
    "note": NewEntry(kind="note", data="n"),
}


class Model:
    """The same rules in other words: what a whole journal says, read from its beginning."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    def is_open(self, tool: str) -> bool:
        kinds = [WORDS[word].kind for word in self.taken if WORDS[word].key == f"{tool}#1"]
        return kinds[-1:] == ["intent"]

    def failures(self) -> int:
        ends = [kind for word in self.taken if (kind := WORDS[word].kind) in ("result", "failure")]
        return len(ends) - len("".join(kind[0] for kind in ends).rstrip("f"))

    def refusal(self, word: str) -> str:
        entry = WORDS[word]
        tool = entry.key.partition("#")[0]
        if entry.kind in ("result", "failure", "void"):
            return "" if self.is_open(tool) else OUT_OF_ORDER
        if entry.kind == "intent":
            if self.is_open(tool):
                return OUT_OF_ORDER
            return TRIPPED if self.failures() >= FAILURES_MAX else ""
        return ""


@pytest.mark.parametrize("together", [False, True])
def test_every_journal_of_up_to_five_entries_is_taken_or_refused_as_its_whole_says(together):
    """Entry by entry, or all in one request: the same ones are taken."""
    for length in range(1, 6):
        for words in product(WORDS, repeat=length):
            model, head = Model(), HELD
            expected = ""
            for word in words:
                expected = model.refusal(word)
                if expected:
                    break
                model.taken.append(word)
                if not together:
                    head = after(head, WORDS[word])
            refused = [words[len(model.taken)]] if expected else []
            if together:
                entries = [WORDS[word] for word in (*model.taken, *refused)]
            else:
                entries = [WORDS[word] for word in refused]
            if expected:
                assert why_not(head, *entries)[1] == expected, words
                continue
            head = after(head, *entries) if together else head
            assert head.seq == length
            assert head.failures == model.failures()
            assert {key.partition("#")[0] for key in head.unsettled} == {
                tool for tool in ("pay", "look") if model.is_open(tool)
            }
            never = words.count("pay never happened")
            assert len(head.trail) == sum(w.startswith("begin") for w in words) - never


def test_all_of_a_request_is_taken_or_none_of_it():
    manifest = Bounds(Manifest(tools=["pay"]))
    assert why_not(HELD, intent("pay"), result("pay"), intent("look"), bounds=manifest)[0] == 403


def test_what_a_request_costs_counts_for_what_follows_in_it():
    bounds = Bounds(Manifest(max_tokens=10), Spent(4, 0, 0.0))
    entries = (intent("pay"), result("pay", usage=usage(6)))
    assert append(HELD, *entries, bounds=bounds).spent == Spent(6, 0, 0.0)
    code, kind, reason = why_not(HELD, *entries, intent("look"), bounds=bounds)
    assert (code, kind) == (402, BUDGET_SPENT)
    assert "10 of 10 tokens are used" in reason


def test_a_budget_of_nothing_lets_no_tool_be_called():
    assert why_not(HELD, intent(), bounds=Bounds(Manifest(max_tokens=0)))[1] == BUDGET_SPENT
    assert why_not(HELD, intent(), bounds=Bounds(Manifest(max_cost_usd=0.0)))[1] == BUDGET_SPENT
    nothing = Manifest(tools=[])
    assert why_not(HELD, intent(), bounds=Bounds(nothing))[2] == (
        "tool 'pay' is not one of the 0 that the task's manifest allows"
    )
    assert after(HELD, NewEntry(kind="note"), bounds=Bounds(nothing)).seq == 1


def test_of_two_guards_the_one_that_a_person_can_do_least_about_is_told():
    bounds = Bounds(Manifest(tools=[], max_tokens=0))
    tripped = HELD._replace(failures=FAILURES_MAX)
    assert why_not(tripped, intent(), bounds=bounds)[0] == 403
    assert why_not(tripped, intent(), bounds=Bounds(Manifest(max_tokens=0)))[0] == 402
    assert why_not(tripped, intent())[1] == TRIPPED


def test_the_manifest_says_how_many_failures_in_a_row_are_too_many():
    once = HELD._replace(failures=1)
    assert after(once, intent()).seq == 1
    assert why_not(once, intent(), bounds=Bounds(Manifest(max_tool_failures=1)))[1] == TRIPPED
    patient = Bounds(Manifest(max_tool_failures=FAILURES_MAX + 1))
    assert after(HELD._replace(failures=FAILURES_MAX), intent(), bounds=patient).seq == 1


def test_the_same_tool_with_other_arguments_each_time_is_no_loop():
    head = HELD
    for number in range(100):
        head = after(head, intent("look", digest=f"page {number}"), result("look"))
    assert len(head.trail) == 20


def test_a_loop_is_seen_within_one_request():
    calls = [
        entry
        for number in range(5)
        for entry in (intent("look", f"k{number}"), result("look", f"k{number}"))
    ]
    assert why_not(HELD, *calls)[:2] == (409, LOOP_DETECTED)


def test_no_more_than_so_many_calls_are_under_way_at_once():
    calls = {f"k{n}": Call(n + 1, "look", f"look {n}") for n in range(UNDER_WAY_MAX)}
    busy = HELD._replace(seq=UNDER_WAY_MAX, unsettled=calls)
    assert why_not(busy, intent("look"))[::2] == (
        409,
        "at most 256 calls of one step may be under way at once",
    )
    assert after(busy, result(key="k7"), intent("look")).seq == UNDER_WAY_MAX + 2


def test_whose_epoch_is_over_hears_that_first():
    for head in (HELD._replace(epoch=2), HELD._replace(epoch=2, seq=7, failures=9)):
        with pytest.raises(Refusal) as caught:
            append(head, intent(), epoch=1)
        assert caught.value.kind == SUPERSEDED


def test_guards_are_the_refusals_after_which_a_person_must_look():
    assert {"tool-not-allowed", "budget-spent", "loop-detected", "tripped"} == GUARDS
