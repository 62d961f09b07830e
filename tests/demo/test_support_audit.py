"""The audit of a kill sweep: silent on a clean one, and each breach is found by its clause."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from headway.agents.entries import Entry, Usage
from headway.agents.identity import ACTION, invocation_id, operation_id
from headway.agents.views import StepView, TaskView
from headway.demo.support.audit import Case, Finding, Run, audit
from headway.demo.support.evidence import Effect, Evidence, LoggedCall
from headway.demo.support.report import compile_report, render
from headway.demo.support.stub import COMPLETIONS
from rich.console import Console

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MODEL, PAY = "model-1", "turn-1-1"
TOOLS = {MODEL: "ask_model", PAY: "large_refund"}


def invocation(number: int, key: str) -> str:
    return str(invocation_id(operation_id(UUID(int=number), "answer", ACTION), key))


def entry(number: int, seq: int, kind: Any, key: str) -> Entry:
    usage = Usage(input_tokens=70, output_tokens=30) if TOOLS[key] == "ask_model" else None
    return Entry(
        kind=kind,
        key=key,
        tool=TOOLS[key],
        model=key == MODEL,
        data=f"order L-{number:04}",
        seq=seq,
        epoch=1,
        at=NOON,
        usage=usage if kind == "result" else None,
    )


def run(number: int, victim: str, **changes: Any) -> Run:
    view = TaskView(
        task=UUID(int=number),
        saga="support-0",
        saga_version=1,
        status="succeeded",
        version=3,
        created_at=NOON,
        updated_at=NOON,
        steps=[
            StepView(
                name="answer",
                action="support-0.answer",
                status="completed",
                attempt=1,
                phase="action",
                result={"text": f"paid for L-{number:04}"},
            )
        ],
    )
    kinds = (("intent", MODEL), ("result", MODEL), ("intent", PAY), ("result", PAY))
    made = Run(
        kind="support",
        number=f"{number:04}",
        victim=victim,
        entry=f"intent {PAY}" if victim else "",
        when="after" if victim else "",
        met=bool(victim),
        view=view,
        entries=tuple(entry(number, seq, *each) for seq, each in enumerate(kinds, 1)),
        approvals=1,
        took_s=5.0 if victim else 1.0,
    )
    return replace(made, **changes)


UNHARMED, HARMED = 1, 2


def calls(number: int) -> list[LoggedCall]:
    return [
        LoggedCall(COMPLETIONS, invocation(number, MODEL), "applied", 100),
        LoggedCall("payments", invocation(number, PAY), "applied", 0),
    ]


def payment(number: int, cents: int = 18_900) -> Effect:
    return Effect("payments", invocation(number, PAY), f"L-{number:04}", str(cents))


def case(
    harmed: Run | None = None,
    more_calls: tuple[LoggedCall, ...] = (),
    effects: tuple[Effect, ...] = (payment(UNHARMED), payment(HARMED)),
    without: tuple[str, ...] = (),
    **changes: Any,
) -> Case:
    logged = (*calls(UNHARMED), *calls(HARMED), *more_calls)
    kept = tuple(call for call in logged if call.invocation not in without)
    runs = [run(UNHARMED, ""), harmed or run(HARMED, "agent")]
    return Case(runs, Evidence(kept, effects), **changes)


NAME = "support, agent after intent turn-1-1"


def repeated(key: str, outcome: str, tokens: int = 0) -> LoggedCall:
    service = COMPLETIONS if key == MODEL else "payments"
    return LoggedCall(service, invocation(HARMED, key), outcome, tokens)


def test_a_sweep_that_made_no_difference_has_no_findings() -> None:
    assert audit(case(more_calls=(repeated(MODEL, "repeated"), repeated(PAY, "repeated")))) == []


def _other_result() -> Run:
    other = run(HARMED, "agent")
    [step] = other.view.steps
    steps = [step.model_copy(update={"result": {"text": "nothing"}})]
    return replace(other, view=other.view.model_copy(update={"steps": steps}))


def _parked() -> Run:
    other = run(HARMED, "agent")
    update = {"status": "parked", "reason": "a tool failed"}
    return replace(other, view=other.view.model_copy(update=update))


def _other_calls() -> Run:
    other = run(HARMED, "agent")
    changed = other.entries[1].model_copy(update={"data": "something else"})
    return replace(other, entries=(other.entries[0], changed, *other.entries[2:]))


STRANGER = str(UUID(int=99))

BREACHES: dict[str, tuple[Case, list[Finding]]] = {
    "an order that was not carried out": (
        case(run(HARMED, "agent", met=False)),
        [Finding("met", NAME, "was never carried out")],
    ),
    "a task that did not succeed": (
        case(_parked()),
        [Finding("ended", NAME, "is parked: a tool failed")],
    ),
    "another result": (
        case(_other_result()),
        [Finding("same", NAME, 'ended with {"answer":{"text":"nothing"}}')],
    ),
    "another answer of a tool": (
        case(_other_calls()),
        [Finding("same", NAME, "made other calls: model-1")],
    ),
    "a model call that was billed twice": (
        case(more_calls=(repeated(MODEL, "applied", 100),)),
        [
            Finding("once", NAME, "model-1 was applied 2 times"),
            Finding("billed", NAME, "model-1 used 100 tokens, billed were 200"),
        ],
    ),
    "a payment that was made twice": (
        case(
            more_calls=(repeated(PAY, "applied"),),
            effects=(payment(UNHARMED), payment(HARMED), payment(HARMED)),
        ),
        [
            Finding("once", NAME, "turn-1-1 was applied 2 times"),
            Finding("once", "payments L-0002", "took effect 2 times"),
            Finding(
                "effects",
                NAME,
                """had ['["payments","L-#","18900"]', '["payments","L-#","18900"]'], """
                """not ['["payments","L-#","18900"]']""",
            ),
        ],
    ),
    "a payment that was lost": (
        case(effects=(payment(UNHARMED),), without=(invocation(HARMED, PAY),)),
        [
            Finding("once", NAME, "turn-1-1 was never applied"),
            Finding("effects", NAME, """had [], not ['["payments","L-#","18900"]']"""),
        ],
    ),
    "another amount": (
        case(effects=(payment(UNHARMED), payment(HARMED, 1))),
        [
            Finding(
                "effects",
                NAME,
                """had ['["payments","L-#","1"]'], not ['["payments","L-#","18900"]']""",
            )
        ],
    ),
    "a call that no journal knows": (
        case(more_calls=(LoggedCall("mail", STRANGER, "applied", 0),)),
        [Finding("once", STRANGER, "was applied, and is in no journal")],
    ),
    "a person who was asked twice": (
        case(run(HARMED, "agent", approvals=2)),
        [Finding("approved", NAME, "a person approved 2 times, not 1")],
    ),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_the_audit_finds(breach: str) -> None:
    found, wanted = BREACHES[breach]
    assert audit(found) == wanted


def test_of_a_model_that_is_not_scripted_only_what_always_holds_is_asked() -> None:
    assert audit(case(_other_calls(), scripted=False)) == []
    doubled = case(more_calls=(repeated(PAY, "applied"),), scripted=False)
    assert [finding.clause for finding in audit(doubled)] == ["once"]


def test_the_report_counts_and_shows_each_victim_at_each_entry() -> None:
    swept = case(more_calls=(repeated(MODEL, "repeated"),))
    report = compile_report(swept, [Finding("met", "x", "y\x1b[2J")], {"support": 69}, 12.0)
    assert (report.model_calls, report.billed, report.tokens) == (2, 2, 200)
    assert (report.payments, report.mails) == (2, 0)
    assert (report.absorbed, report.approvals) == (1, 2)
    assert report.harmed == {"support, agent": 1}
    assert not report.holds
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(render(report))
    text = console.export_text()
    assert "intent turn-1-1" in text
    assert "5.0" in text
    assert "1 findings" in text
    assert "\x1b" not in text
