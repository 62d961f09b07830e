"""Histories at hand: those that one coordinator committed alone, and no others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from headway.agents.identity import new_task_id
from headway.coordinator import recent_histories
from headway.coordinator.decisions import Decision, decide
from headway.coordinator.intake import Item
from headway.coordinator.recent_histories import RecentHistories
from headway.coordinator.records import NewTask, Trace
from headway.coordinator.schemas import InputCheck
from headway.coordinator.spans import spans
from headway.sagas import Phase, Saga
from headway.sagas import inputs as i

SAGA = Saga("pair").step("a", "x.a", read_only=True).step("b", "x.b", after="a", pivot=True)
SAGAS = {("pair", None): SAGA.define()}


def decided(*happened: i.Input) -> list[Decision]:
    """What one after another comes to, of a task of its own."""
    task, loaded, found = new_task_id(), None, []
    for each in happened:
        submitted = isinstance(each, i.Submit)
        new = NewTask(task, "pair", b"1", b"d", trace=Trace(True)) if submitted else None
        item = Item(task, each, lambda _: None, new=new, agent="" if submitted else "x")
        found.append(decide([item], loaded, SAGAS, InputCheck().check))
        loaded = found[-1].after
    return found


def course() -> list[Decision]:
    return decided(
        i.Submit(1_000),
        i.Heartbeat(1_100, "a", Phase.ACTION, 1, 0, progress=1),
        i.Succeeded(1_200, "a", Phase.ACTION, 1),
        i.Succeeded(1_300, "b", Phase.ACTION, 1),
    )


def observed(histories: RecentHistories, decisions: Sequence[Decision]) -> None:
    for decision in decisions:
        if decision.change is not None and decision.after is not None:
            histories.take(decision.change, decision.after)


def test_a_history_that_was_committed_here_is_at_hand_without_signs_of_life():
    histories, decisions = RecentHistories(), course()
    observed(histories, decisions)
    last = decisions[-1].task
    assert last is not None
    known = histories.look(decisions[0].id, 4, last.version)
    assert known is not None
    assert len(known.history) == last.version - 1
    assert known.read == 3
    assert [span.name for span in spans(known.task, known.history)] == [
        *("invoke_agent x.a", "invoke_agent x.b", "invoke_workflow pair")
    ]


def test_what_a_peer_committed_is_not_at_hand():
    histories, decisions = RecentHistories(), course()
    observed(histories, [decisions[0], *decisions[2:]])
    assert histories.look(decisions[0].id, 0, 2) is None


def test_up_to_an_earlier_version_there_is_less():
    histories, decisions = RecentHistories(), course()
    observed(histories, decisions)
    known = histories.look(decisions[0].id, 0, 2)
    assert known is not None
    assert (len(known.history), known.read) == (2, 0)


def test_what_has_ended_is_forgotten_once_it_was_sent():
    histories, decisions = RecentHistories(), course()
    observed(histories, decisions[:-1])
    histories.settle(decisions[0].id)
    assert histories.look(decisions[0].id, 0, 2) is not None
    observed(histories, decisions[-1:])
    histories.settle(decisions[0].id)
    assert histories.look(decisions[0].id, 0, 2) is None


def test_the_oldest_go_first_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recent_histories, "EVENTS_MAX", 10)
    histories, first, second = RecentHistories(), course(), course()
    observed(histories, [*first, *second])
    assert histories.look(first[0].id, 0, 2) is None
    assert histories.look(second[0].id, 0, 2) is not None


def test_a_long_history_is_read_instead(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recent_histories, "TASK_EVENTS_MAX", 4)
    histories, decisions = RecentHistories(), course()
    observed(histories, decisions)
    assert histories.look(decisions[0].id, 0, 2) is None
