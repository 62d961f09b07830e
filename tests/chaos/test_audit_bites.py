"""The audit from outside finds what is wrong, and nothing where nothing is."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from chaos.claims import Told, audit
from chaos.downstream import Effects, Entry, Request
from chaos.recovery import Struck, of_killed_agents, of_open_tasks
from headway.agents.identity import ACTION, operation_id

TASK = "01a228d3-8b1d-728f-a4a8-c99741d7b99b"
OTHER = "01a228d3-8b1d-728f-a4a8-c99741d7b99c"


def of(step: str, task: str = TASK) -> str:
    return str(operation_id(UUID(task), step, ACTION))


class World:
    """A service's log, written by a service that follows its own rules."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self._effects = Effects()

    def ask(self, what, step, *, id="", pid=1, at=0.0, task=TASK, of_step="") -> str:
        operation = of(of_step or step, task)
        request = Request(what, id or operation, operation, task, step, 1, pid)
        self._keep(request, at, "")
        outcome = self._effects.perform(request)
        self._keep(request, at, outcome)
        return outcome

    def arrives(self, what, step, *, pid=1, at=0.0) -> None:
        self._keep(Request(what, of(step), of(step), TASK, step, 1, pid), at, "")

    def _keep(self, request: Request, at: float, outcome: str) -> None:
        number = len(self.log) + 1
        self.log.append(Entry(**vars(request), seq=number, at=at, outcome=outcome))


def trip(status="succeeded", reason="", **steps) -> Told:
    return Told(TASK, "trip", status, reason, {"book": "completed", "charge": "completed", **steps})


@pytest.fixture
def world() -> World:
    world = World()
    for step in ("book", "charge"):
        world.ask("do", step)
    return world


@pytest.fixture
def errand() -> World:
    world = World()
    world.ask("model", "think", id="think#1", of_step="run")
    for number in (1, 2):
        world.ask("use", "pay", id=f"pay#{number}", of_step="run")
    world.ask("use", "seal", id="seal#1", of_step="run")
    world.ask("send", "mail", id="mail", of_step="run")
    return world


RAN = Told(TASK, "errand", "succeeded", "", {"run": "completed"})


def clauses(world, *told, accepted=()) -> list[str]:
    return [finding.clause for finding in audit(told, accepted, world.log)]


def test_where_all_is_well_nothing_is_found(world, errand):
    assert clauses(world, trip(), accepted=[TASK]) == []
    assert clauses(errand, RAN, accepted=[TASK]) == []


def test_an_accepted_task_that_nobody_knows_is_lost(world):
    assert clauses(world, trip(), accepted=[TASK, OTHER]) == ["lost"]


def test_a_completed_step_without_its_effect_is_lost(world):
    assert clauses(world, trip(ship="completed")) == ["lost"]
    world.ask("undo", "charge")
    assert clauses(world, trip()) == ["lost"]


def test_a_tool_call_without_its_effect_is_lost(errand):
    errand.log = [entry for entry in errand.log if entry.id != "pay#2"]
    assert clauses(errand, RAN) == ["lost"]


def test_an_effect_applied_twice_is_doubled(errand):
    assert errand.ask("send", "mail", id="mail", of_step="run") == "applied"
    assert clauses(errand, RAN) == ["doubled"]


def test_a_call_made_again_under_its_own_id_is_not_doubled(errand, world):
    assert errand.ask("use", "pay", id="pay#1", of_step="run") == "repeated"
    assert clauses(errand, RAN) == []
    assert world.ask("do", "book") == "repeated"
    assert clauses(world, trip()) == []


def test_a_model_asked_again_after_its_answer_was_used_is_doubled(errand):
    errand.ask("model", "think", id="think#1", of_step="run")
    assert clauses(errand, RAN) == ["doubled"]


def test_an_effect_that_stands_though_it_was_undone_is_left_over(world):
    told = trip("compensated", book="compensated", charge="compensated")
    assert clauses(world, told) == ["left over", "left over"]
    world.ask("undo", "book")
    world.ask("undo", "charge")
    assert clauses(world, told) == []


def test_tool_calls_are_undone_with_their_step(errand):
    undone = replace(RAN, status="compensated", steps={"run": "compensated"})
    assert clauses(errand, undone) == ["left over"]
    errand.ask("recall", "run")
    assert clauses(errand, undone) == []
    assert errand.ask("use", "pay", id="pay#3", of_step="run") == "refused"


def test_an_effect_that_comes_after_its_undoing_is_refused():
    world = World()
    assert world.ask("undo", "book") == "nothing"
    assert world.ask("do", "book") == "refused"
    assert clauses(world, trip("compensated", book="compensated", charge="failed")) == []


def test_an_effect_of_no_step_and_of_no_task_is_left_over(world):
    world.ask("do", "fly")
    assert clauses(world, trip()) == ["left over"]
    strange = World()
    strange.ask("do", "book", task=OTHER)
    assert clauses(strange) == ["left over"]


def test_what_neither_ended_nor_waits_for_a_person_is_stuck(world):
    assert clauses(world, trip("running")) == ["stuck"]
    assert clauses(world, trip("compensating", charge="compensating")) == ["stuck"]


def test_what_waits_for_a_person_has_a_reason(world):
    assert clauses(world, trip("parked", ship="unknown")) == ["unexplained"]
    assert clauses(world, trip("parked", "why", ship="unknown")) == []


def test_what_only_a_person_can_end_is_parked():
    doomed = Told(TASK, "doomed", "parked", "why", {"crash": "unknown"})
    assert clauses(World(), doomed) == []
    assert clauses(World(), replace(doomed, status="compensated", steps={})) == ["unexplained"]


def test_a_status_agrees_with_its_steps(world):
    assert clauses(world, trip(ship="skipped")) == ["unexplained"]
    world.ask("undo", "charge")
    assert clauses(world, trip("compensated", charge="compensated")) == ["unexplained"]


def test_recovery_is_from_a_kill_to_another_process_that_goes_on():
    world = World()
    world.ask("do", "book", pid=1, at=1.0)  # answered before the kill
    world.arrives("do", "charge", pid=1, at=2.0)
    world.ask("do", "charge", pid=2, at=3.5)
    world.ask("do", "charge", pid=2, at=9.0)
    [sign] = of_killed_agents(world.log, Struck(at=3.0, pids=(1,)))
    assert sign == (0.5, of("charge"))


def test_recovery_is_from_a_faults_end_to_the_next_sign_of_each_open_task():
    world = World()
    world.ask("do", "book", at=1.0)
    world.ask("do", "charge", at=5.0)
    began, ended = {TASK: 0.5, OTHER: 0.25}, {TASK: 6.0, OTHER: 1.25}
    assert of_open_tasks(world.log, began, ended, Struck(2.0)) == [(3.0, TASK)]
    assert of_open_tasks(world.log, began, ended, Struck(5.5)) == [(0.5, TASK)]
    assert sorted(of_open_tasks(world.log, began, ended, Struck(0.75))) == [
        (0.25, TASK),
        (0.5, OTHER),
    ]
