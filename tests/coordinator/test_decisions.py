"""Groups of items applied to one task, without any server."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import pytest
from headway.agents.heartbeats import PROGRESS_MAX_BYTES
from headway.agents.identity import new_task_id
from headway.agents.messages import (
    COMPLETED,
    FAILED,
    HEARTBEAT,
    INPUT_MAX_BYTES,
    Event,
    EventData,
    FailureData,
    NextStep,
)
from headway.coordinator.commands import command
from headway.coordinator.decisions import decide
from headway.coordinator.errors import Refusal
from headway.coordinator.intake import Intake, Item
from headway.coordinator.outcomes import to_input
from headway.coordinator.records import Loaded, NewTask
from headway.coordinator.schemas import InputCheck
from headway.sagas import Phase, Saga, Timeouts
from headway.sagas import inputs as i
from headway.sagas.actions import Dispatch

SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}
SAGA = (
    Saga("s", input=SCHEMA)
    .step("a", "left.do", compensate="left.undo")
    .step("b", "right.do", after="a", pivot=True, timeouts=Timeouts(schedule_to_start=5))
    .define()
)
TASK = new_task_id()
NOW = datetime.fromtimestamp(0, UTC)


def submit(body: bytes = b'{"n":1}', digest: bytes = b"d", saga: str = "s") -> Item:
    new = NewTask(TASK, saga, body, digest)
    return Item(TASK, i.Submit(1), lambda _: None, new=new)


def loaded(digest: bytes = b"d") -> Loaded:
    task = run([submit()]).task
    assert task is not None
    return Loaded(TASK, SAGA, task, b'{"n":1}', digest, NOW, NOW, None, {})


def run(items: list[Item], before: Loaded | None = None):
    return decide(items, before, {("s", None): SAGA}, InputCheck().check)


def refusals(decision) -> list[str]:
    return [refusal.reason if refusal else "" for _, refusal, _ in decision.answers]


def success(agent: str = "left", **changes) -> Item:
    fields = {"at": 2, "step": "a", "phase": Phase.ACTION, "attempt": 1} | changes
    return Item(TASK, i.Succeeded(**fields), lambda _: None, agent=agent)


def test_a_submission_becomes_a_task_with_its_first_command():
    decision = run([submit()])
    assert decision.change is not None
    assert decision.change.expected == 0
    assert [action.step for action in decision.actions] == ["a"]


def test_the_same_submission_again_changes_nothing():
    decision = run([submit()], loaded())
    assert decision.change is None
    assert refusals(decision) == [""]


def test_the_same_id_with_another_body_is_refused():
    assert "another body" in refusals(run([submit(digest=b"other")], loaded()))[0]
    twice = run([submit(), submit(digest=b"other")])
    assert "another body" in refusals(twice)[1]
    assert twice.change is not None


def test_an_unknown_saga_is_refused_with_what_to_do():
    assert "register it first" in refusals(run([submit(saga="none")]))[0]


@pytest.mark.parametrize(
    ("body", "field"), [(b'{"n":"secret"}', "n"), (b"{}", "n"), (b"[]", "input")]
)
def test_an_input_that_does_not_fit_names_the_field_and_not_the_value(body, field):
    complaint = refusals(run([submit(body)]))[0]
    assert field in complaint
    assert "secret" not in complaint


def test_an_event_of_an_unknown_task_is_refused():
    assert "there is no task" in refusals(run([success()]))[0]


def test_an_event_by_another_agent_than_the_commands_is_refused():
    decision = run([success(agent="right")], loaded())
    assert "that was for 'left'" in refusals(decision)[0]
    assert decision.change is None


def test_an_event_of_an_unknown_step_or_of_an_attempt_never_dispatched_is_refused():
    decision = run(
        [success(step="zzz"), success(attempt=9), success(agent="right", step="b")], loaded()
    )
    assert "no step 'zzz'" in refusals(decision)[0]
    assert "attempt 9" in refusals(decision)[1]
    assert "never dispatched" in refusals(decision)[2]
    assert decision.change is None


def test_a_refused_item_does_not_spoil_the_others_of_its_batch():
    decision = run([success(agent="right"), success(), success()], loaded())
    assert [changed for _, _, changed in decision.answers] == [False, True, False]
    assert decision.change is not None
    assert decision.change.expected == 2


def test_a_saga_whose_schema_is_none_is_refused_and_remote_references_are_not_followed():
    for schema in ({"type": "objekt"}, {"$ref": "http://127.0.0.1:9/x"}):
        saga = Saga("s", input=schema).step("a", "x.a", read_only=True).define()
        with pytest.raises(Refusal, match="not a JSON Schema"):
            InputCheck().compile(saga)


def test_a_command_says_what_the_agent_needs():
    before = loaded()
    done = run([success(result={"receipt": 1})], before)
    assert done.after is not None
    sent = command(done.after, Dispatch("b", Phase.ACTION, 1, 0))
    assert sent.subject == f"hw.commands.right.do.{TASK}.b"
    assert sent.attributes["reportstart"] is True
    assert sent.data == b'{"input":{"n":1},"results":{"a":{"receipt":1}}}'
    assert sent.fresh
    assert not command(done.after, Dispatch("b", Phase.ACTION, 1, 1)).fresh


def test_a_task_in_a_batch_waits_for_its_release():
    intake = Intake()
    first, second, other = success(), success(), Item(new_task_id(), i.Tick(1), lambda _: None)
    intake.put(first)
    assert intake.take(10) == [first]
    intake.put(second)
    intake.put(other)
    assert intake.take(10) == [other]
    assert intake.take(10) == []
    intake.release([TASK])
    assert intake.take(10) == [second]


def test_a_batch_may_hold_several_items_of_one_task_in_order():
    intake = Intake()
    items = [success(attempt=n) for n in range(1, 6)]
    for item in items:
        intake.put(item)
    assert intake.take(3) == items[:3]
    assert intake.take(3) == []
    intake.release([TASK])
    assert intake.take(3) == items[3:]


def test_words_and_results_that_cannot_be_stored_are_made_so_or_become_a_failure():
    def said(kind: str, data: EventData) -> i.Input:
        event = Event("e", str(TASK), "a", "action", 1, 0, kind, "/s")
        return to_input(event, data, 5, 0.0)

    failed = said(FAILED, EventData(error=FailureData("T\0", "no\0thing")))
    assert isinstance(failed, i.Failed)
    assert failed.error.message == "no\N{REPLACEMENT CHARACTER}thing"
    for result in (10**40, float("nan"), [[]] * 3 + [orjson.loads("[" * 70 + "]" * 70)]):
        unstorable = said(COMPLETED, EventData(result=result))
        assert isinstance(unstorable, i.Failed)
        assert (unstorable.error.type, unstorable.retryable) == ("InvalidResult", False)
    assert isinstance(said(COMPLETED, EventData(result={"a": None})), i.Succeeded)
    most = "x" * (INPUT_MAX_BYTES - 2)
    handed = [NextStep("shop.b", f"b{n}", input=most) for n in range(5)]
    assert isinstance(said(COMPLETED, EventData(result=most, handoff=handed[:4])), i.Succeeded)
    for data in (EventData(result=most + "x"), EventData(handoff=handed)):
        too_large = said(COMPLETED, data)
        assert isinstance(too_large, i.Failed)
        assert "keep it elsewhere and return a reference" in too_large.error.message


def test_progress_that_is_too_much_or_cannot_be_stored_is_left_out():
    def told(progress: object) -> object:
        event = Event("e", str(TASK), "a", "action", 1, 0, HEARTBEAT, "/s")
        happened = to_input(event, EventData(progress=progress), 5, 0.0)
        assert isinstance(happened, i.Heartbeat)
        return happened.progress

    assert told({"page": 3}) == {"page": 3}
    assert told("x" * (PROGRESS_MAX_BYTES - 2)) is not None
    assert [told("x" * PROGRESS_MAX_BYTES), told(10**40)] == [None, None]
