"""Whether a call of a sensitive tool may be made: every no, with its words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from headway.agents.gates import GateRequest, GateView, arguments_digest
from headway.agents.identity import invocation_id, operation_id
from headway.agents.manifest import Manifest
from headway.coordinator import gating
from headway.coordinator.errors import Refusal
from headway.coordinator.gating import APPROVED, OPEN, REJECTED, WAITING, Call, Kept, Use
from headway.sagas import Phase, Saga, transition
from headway.sagas import inputs as i
from headway.sagas.circumstances import ORDINARY, Hold
from headway.sagas.task import Failure, Task

SAGA = (
    Saga("refund")
    .step("look", "shop.look", read_only=True)
    .step("pay", "shop.pay", compensate="shop.unpay", after="look")
    .step("ship", "shop.ship", compensate="shop.unship", after="pay")
    .define()
)
TASK = UUID("018bcfe5-6800-7000-8000-000000000001")
DIGEST = arguments_digest(["A-17"], {"amount": 120})
OTHER_DIGEST = arguments_digest(["A-17"], {"amount": 121})
WHEN = datetime(2027, 1, 15, 8, tzinfo=UTC)
CALL = Call(3, "pay", DIGEST)
KEPT = Kept("pay", DIGEST, OPEN, "", "")


def after(*inputs: i.Input) -> Task:
    task = None
    for happened in (i.Submit(1_000), *inputs):
        outcome = transition(SAGA, task, happened)
        assert not outcome.refusal
        task = outcome.task
    assert task is not None
    return task


LOOKED = i.Succeeded(1_001, "look", Phase.ACTION, 1)
PAID = i.Succeeded(1_002, "pay", Phase.ACTION, 1)
UNSHIPPED = i.Failed(
    1_003, "ship", Phase.ACTION, 1, 0, Failure("NoStock", "none"), False, no_effect=True
)
PAYING = after(LOOKED)
SHIPPING = after(LOOKED, PAID)
UNDOING = after(LOOKED, PAID, UNSHIPPED)


def request(**changes) -> GateRequest:
    step, phase = changes.get("step", "pay"), changes.get("phase", "action")
    key = changes.get("key", "pay#1")
    fields = {
        "task": TASK,
        "step": step,
        "phase": phase,
        "attempt": 1,
        "epoch": 0,
        "journal_epoch": 3,
        "invocation": invocation_id(operation_id(TASK, step, phase), key),
        "key": key,
        "tool": "pay",
        "arguments_digest": DIGEST,
    }
    return GateRequest(**(fields | changes))


def answer(asked: GateRequest, task: Task = PAYING, **known) -> str:
    known = {"manifest": None, "call": CALL, "kept": None} | known
    return gating.answer(asked, task, known["manifest"], known["call"], known["kept"])


def refusal(asked: GateRequest, task: Task = PAYING, **known) -> tuple[int, str, str]:
    """Code, kind and text."""
    with pytest.raises(Refusal) as refused:
        answer(asked, task, **known)
    return refused.value.code, refused.value.kind, refused.value.reason


def test_a_call_that_nobody_must_approve_gets_its_token():
    assert answer(request()) == OPEN
    assert answer(request(), kept=KEPT) == OPEN


def test_a_call_of_a_compensation_gets_its_token_while_the_task_compensates():
    assert answer(request(phase="compensation"), UNDOING) == OPEN


def test_a_call_to_approve_waits_until_a_person_has_decided():
    asked = request(requires_approval=True)
    assert answer(asked) == WAITING
    for status in (WAITING, APPROVED, REJECTED):
        assert answer(asked, kept=KEPT._replace(status=status)) == status


def test_a_call_that_had_a_token_waits_once_it_must_be_approved():
    assert answer(request(requires_approval=True), kept=KEPT) == WAITING


def test_a_call_that_waits_goes_on_waiting_though_it_is_asked_without_approval():
    assert answer(request(), kept=KEPT._replace(status=WAITING)) == WAITING


@pytest.mark.parametrize(
    ("task", "phase", "why"),
    [
        (UNDOING, "action", "the task is compensating"),
        (PAYING, "compensation", "the task is running"),
        (SHIPPING, "action", "step 'pay' is completed"),
        (after(), "action", "step 'pay' is waiting"),
        (after(LOOKED, i.Cancel(1_009, "ann", "")), "action", "the task is compensating"),
    ],
)
def test_a_phase_that_is_not_under_way_has_no_calls(task, phase, why):
    assert refusal(request(phase=phase), task) == (
        409,
        "gate-closed",
        f"the task wants no call of step 'pay' now: {why}",
    )


def test_a_step_that_is_not_there_has_no_calls():
    assert refusal(request(step="fly")) == (
        409,
        "gate-closed",
        "the task wants no call of step 'fly' now: there is no step 'fly'",
    )


def test_a_task_that_is_held_has_no_calls():
    held = replace(
        PAYING, beside=ORDINARY._replace(holds=(Hold("LoopDetected", "round and round"),))
    )
    assert refusal(request(), held) == (
        409,
        "gate-closed",
        "the task wants no call of step 'pay' now: the task is held: round and round",
    )


@pytest.mark.parametrize("changes", [{"attempt": 2}, {"epoch": 1}, {"attempt": 0}])
def test_another_attempt_than_the_one_outstanding_is_superseded(changes):
    asked = request(**changes)
    assert refusal(asked) == (
        409,
        "superseded",
        f"attempt {asked.attempt} (epoch {asked.epoch}) of step 'pay' is not the one that the task "
        "waits for",
    )


def test_an_attempt_that_has_ended_is_superseded_while_the_next_one_is_due():
    failed = i.Failed(1_002, "pay", Phase.ACTION, 1, 0, Failure("Down", "down"), True, False)
    assert refusal(request(), after(LOOKED, failed))[1] == "superseded"


def test_a_tool_that_the_manifest_does_not_name_gets_no_token():
    assert refusal(request(), manifest=Manifest(tools=["look", "mail"])) == (
        403,
        "tool-not-allowed",
        "tool 'pay' is not one of the 2 that the task's manifest allows",
    )
    assert answer(request(), manifest=Manifest(tools=["pay"])) == OPEN
    assert answer(request(), manifest=Manifest()) == OPEN


@pytest.mark.parametrize("call", [None, Call(3, None, None)])
def test_a_call_without_an_unsettled_intent_gets_no_token(call):
    assert refusal(request(), call=call) == (
        409,
        "gate-closed",
        "the journal has no unsettled intent of call 'pay#1'",
    )


@pytest.mark.parametrize("epoch", [2, 4])
def test_whoever_does_not_hold_the_journal_is_superseded(epoch):
    assert refusal(request(journal_epoch=epoch)) == (
        409,
        "superseded",
        "the journal was opened again: its epoch is 3",
    )


def test_an_invocation_is_the_one_of_its_key_and_no_other():
    assert refusal(request(invocation=uuid4())) == (
        422,
        "about:blank",
        "invocation: not the one of call 'pay#1' of this operation",
    )


@pytest.mark.parametrize(
    "known",
    [
        {"call": Call(3, "mail", DIGEST)},
        {"kept": KEPT._replace(tool="mail", status=APPROVED)},
    ],
)
def test_a_call_of_another_tool_than_the_intent_or_the_approval_is_refused(known):
    assert refusal(request(), **known) == (
        403,
        "gate-other-tool",
        "call 'pay#1' is of tool 'mail', not of 'pay'",
    )


@pytest.mark.parametrize(
    "known",
    [
        {"call": Call(3, "pay", OTHER_DIGEST)},
        {"kept": KEPT._replace(arguments_digest=OTHER_DIGEST, status=APPROVED)},
    ],
)
def test_a_call_with_other_arguments_than_the_intent_or_the_approval_is_refused(known):
    assert refusal(request(), **known) == (
        403,
        "gate-other-arguments",
        "call 'pay#1' of 'pay' has other arguments than those it began with",
    )


def test_a_token_says_all_that_it_was_given_for_and_lasts_thirty_seconds():
    token_id = uuid4()
    gate = gating.gate(request(), "shop", PAYING, token_id, 1_800_000_000_999)
    assert (gate.task, gate.step, gate.phase, gate.attempt, gate.epoch) == (
        TASK,
        "pay",
        "action",
        1,
        0,
    )
    assert (gate.version, gate.tool, gate.arguments_digest) == (PAYING.version, "pay", DIGEST)
    assert (gate.invocation, gate.token_id) == (request().invocation, token_id)
    assert (gate.issued_at, gate.expires_at) == (1_800_000_000, 1_800_000_030)


GATE = gating.gate(request(), "shop", PAYING, UUID(int=7), 1_800_000_000_000)
FRESH = Use(newest=True, unsettled=True, by=None, at=None)


@pytest.mark.parametrize(
    ("task", "use", "kind", "reason"),
    [
        (
            PAYING,
            FRESH._replace(by=UUID(int=8), at=WHEN),
            "gate-redeemed",
            "the gate token was redeemed before, at 2027-01-15T08:00:00.000Z",
        ),
        (
            replace(PAYING, version=PAYING.version + 2),
            FRESH,
            "gate-stale",
            f"the gate token is for version {PAYING.version} of the task, which is at version "
            f"{PAYING.version + 2} now; ask for a new one",
        ),
        (
            PAYING,
            FRESH._replace(newest=False),
            "gate-stale",
            "a newer gate token was given for this call; only that one is good",
        ),
        (
            PAYING,
            FRESH._replace(unsettled=False),
            "gate-closed",
            "the call of 'pay' is settled in the journal",
        ),
        (
            UNDOING,
            FRESH,
            "gate-closed",
            "the task wants no call of step 'pay' now: the task is compensating",
        ),
        (
            None,
            gating.NO_USE,
            "gate-closed",
            f"there is no task {TASK}",
        ),
    ],
)
def test_a_token_that_cannot_be_redeemed_is_told_why(task, use, kind, reason):
    refused = gating.not_redeemable(GATE, task, use)
    assert (refused.code, refused.kind, refused.reason) == (409, kind, reason)


def view(status: str, **changes) -> GateView:
    fields = request().model_dump(
        include={"task", "step", "phase", "invocation", "key", "tool", "arguments_digest"}
    )
    return GateView(**(fields | {"status": status, "since": WHEN} | changes))


def test_a_call_that_waits_can_be_decided_though_its_task_is_held():
    held = replace(
        PAYING, beside=ORDINARY._replace(holds=(Hold("LoopDetected", "round and round"),))
    )
    gating.check_decision(PAYING, view("waiting"))
    gating.check_decision(held, view("waiting"))


@pytest.mark.parametrize(
    ("task", "seen", "kind", "reason"),
    [
        (
            PAYING,
            view("approved", by="ann", decided_at=WHEN),
            "gate-decided",
            "the call of 'pay' was approved before, by ann at 2027-01-15T08:00:00.000Z",
        ),
        (
            PAYING,
            view("open"),
            "gate-decided",
            "the call of 'pay' needs nobody's approval",
        ),
        (
            UNDOING,
            view("waiting"),
            "gate-closed",
            "the task wants no call of step 'pay' now: the task is compensating",
        ),
    ],
)
def test_what_does_not_wait_or_is_not_wanted_cannot_be_decided(task, seen, kind, reason):
    with pytest.raises(Refusal) as refused:
        gating.check_decision(task, seen)
    assert (refused.value.code, refused.value.kind, refused.value.reason) == (409, kind, reason)
