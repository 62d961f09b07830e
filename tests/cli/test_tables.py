"""What people see, and what must never reach their terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import UUID

from headway.agents.auditing import AuditEntry
from headway.agents.catalogue_views import AgentList, AgentView
from headway.agents.entries import Entry
from headway.agents.manifest import Manifest
from headway.agents.views import (
    FailureView,
    History,
    HistoryEntry,
    StepView,
    TaskPage,
    TaskRow,
    TaskView,
    UsageView,
    WaitingPage,
    WaitingView,
)
from headway.cli import tables, traces, waiting
from headway.cli.offers import offer
from headway.cli.output import printable
from rich.console import Console, RenderableType

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = UUID("01890a5d-ac96-774b-bcce-b302099a8057")


def text_of(renderable: RenderableType, width: int = 200) -> str:
    console = Console(file=StringIO(), width=width, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def task(**changes: object) -> TaskView:
    view = TaskView(
        task=TASK,
        saga="refund",
        saga_version=2,
        status="parked",
        version=7,
        reason="charge: attempts are exhausted",
        created_at=AT,
        updated_at=AT,
        steps=[
            StepView(
                name="charge",
                action="payments.charge",
                status="failed_to_compensate",
                attempt=3,
                phase="compensation",
                compensation="payments.refund",
                error=FailureView(type="Declined", message="[red]no[/red] funds"),
                waiting_for="payments",
            )
        ],
        actions=["retry", "settle"],
    )
    return view.model_copy(update=changes)


def test_a_task_shows_its_steps_its_reason_and_what_is_open_to_a_person() -> None:
    shown = text_of(tables.task(task()))
    for expected in (
        str(TASK),
        "refund v2",
        "parked",
        "charge: attempts are exhausted",
        "payments.refund",
        "failed to compensate",
        "waits for payments",
        f"headway retry {TASK} charge",
        f"headway settle {TASK} charge happened|did-not-happen",
    ):
        assert expected in shown


def test_a_parked_task_shows_no_next_attempt_and_names_no_step_if_several_are_stuck() -> None:
    stuck = [
        StepView(name=name, action=f"x.{name}", status=status, attempt=2, phase="action")
        for name, status in (("a", "unknown"), ("b", "scheduled"))
    ]
    stuck[1].next_attempt_at = AT
    shown = text_of(tables.task(task(steps=stuck)))
    assert "next attempt" not in shown
    assert f"headway settle {TASK} STEP happened|did-not-happen" in shown
    shown = text_of(tables.task(task(steps=stuck[1:])))
    assert f"headway settle {TASK} b happened|did-not-happen" in shown
    running = text_of(tables.task(task(steps=stuck, status="running", actions=[])))
    assert "next attempt 2026-01-02 03:04:05Z" in running


def test_what_an_agent_said_is_shown_as_it_is_and_not_as_markup() -> None:
    assert "Declined: [red]no[/red] funds" in text_of(tables.task(task()))


def test_control_characters_from_outside_never_reach_a_terminal() -> None:
    shown = text_of(tables.task(task(reason="a\x1b[2Jb\nc\x07")))
    assert "a\ufffd[2Jb c\ufffd" in shown
    assert printable("tab\there") == "tab here"


def test_a_list_keeps_ids_whole_and_says_how_to_go_on() -> None:
    row = TaskRow(
        task=TASK,
        saga="refund",
        saga_version=1,
        status="succeeded",
        version=9,
        created_at=AT,
        updated_at=AT + timedelta(hours=26, minutes=3),
    )
    shown = text_of(tables.tasks(TaskPage(tasks=[row], cursor="next-page")))
    assert str(TASK) in shown
    assert "1 d 2 h" in shown
    assert "--cursor next-page" in shown


def test_an_agent_that_is_not_there_shows_what_waits_for_it() -> None:
    absent = AgentView(agent="mail", instances=[], queued=4, in_flight=1)
    [_, line] = text_of(tables.agents(AgentList(agents=[absent]))).splitlines()
    assert line.split() == ["mail", "0", "0/0", "1", "4"]


def test_a_long_history_entry_is_cut_for_people() -> None:
    entry = HistoryEntry(version=1, type="submitted", at=AT, data={"input": "x" * 500})
    shown = text_of(tables.history(History(task=TASK, entries=[entry])), width=400)
    assert "…" in shown
    assert len(shown.splitlines()[1]) < 300


def test_a_task_shows_its_bounds_and_what_of_them_is_used() -> None:
    manifest = Manifest(
        goal="be fair",
        agents=["desk"],
        tools=[],
        max_steps=5,
        max_tokens=100,
        max_cost_usd=2.5,
        deadline=AT,
        acceptance={"type": "object"},
    )
    shown = text_of(tables.task(task(manifest=manifest, usage=UsageView(tokens=40, cost_usd=0.5))))
    for line in (
        "goal: be fair",
        "bounds: agents desk; tools none; 5 steps; deadline 2026-01-02 03:04:05Z; "
        "its output is checked, else park",
        "used: 40 of 100 tokens, 0.5 of 2.5 US dollars",
    ):
        assert line in shown
    assert "used" not in text_of(tables.task(task(manifest=Manifest(max_steps=1))))


def test_a_step_shows_how_far_it_is_and_whose_child_a_task_is() -> None:
    [step] = task().steps
    step = step.model_copy(update={"progress": {"read": 3}, "phase": "action"})
    shown = text_of(tables.task(task(steps=[step], parent=TASK, actions=[])))
    assert 'progress {"read":3}' in shown
    assert f"child of: {TASK}" in shown


def test_what_waits_shows_since_when_why_and_what_to_type() -> None:
    call = WaitingView(
        task=TASK,
        saga="refund",
        kind="unsettled",
        step="charge",
        phase="compensation",
        reason="nobody knows whether the call of 'pay' happened",
        since=datetime.now(UTC) - timedelta(minutes=3),
        actions=["settle", "cancel"],
        context="0123456789abcdef",
        key="pay it",
        tool="pay",
        details={"amount": "[red]5\x1b"},
    )
    lines = text_of(waiting.queue(WaitingPage(waiting=[call], cursor="next"))).splitlines()
    assert [line.rstrip() for line in lines] == [
        f"unsettled  {TASK}  refund  step charge  for 3 min  context 0123456789abcdef",
        '  pay (call pay it): {"amount":"[red]5\\u001b"}',
        "  nobody knows whether the call of 'pay' happened",
        f"    headway settle {TASK} charge happened|did-not-happen --call 'pay it' "
        "--phase compensation",
        f"    headway cancel {TASK}",
        "more: --cursor next",
    ]


def test_steps_that_are_stuck_together_are_retried_together() -> None:
    parked = WaitingView(
        task=TASK, saga="s", kind="parked", step="a, b", since=AT, actions=["retry", "settle"]
    )
    shown = text_of(waiting.queue(WaitingPage(waiting=[parked])))
    assert f"headway retry {TASK}\n" in shown.replace(" \n", "\n")
    assert f"headway settle {TASK} STEP happened|did-not-happen" in shown
    assert offer("retry", TASK, step="a") == f"headway retry {TASK} a"


def test_a_journal_tells_notes_and_failures_but_not_what_was_passed() -> None:
    entries = [
        Entry(seq=1, epoch=1, at=AT, kind="note", data="about\nto pay"),
        Entry(seq=2, epoch=1, at=AT, kind="intent", key="pay#1", tool="pay", data={"card": "4711"}),
        Entry(
            seq=3,
            epoch=1,
            at=AT,
            kind="failure",
            key="pay#1",
            tool="pay",
            data={"type": "GateRejected", "message": "rejected by ann: no budget"},
        ),
        Entry(seq=4, epoch=2, at=AT, kind="void", data="it only reads"),
        Entry(seq=5, epoch=2, at=AT, kind="void", by="ann", reason="asked the bank"),
    ]
    shown = text_of(traces.journal(traces.in_short(entry) for entry in entries))
    for words in (
        "about to pay",
        "GateRejected: rejected by ann: no budget",
        "it only reads",
        "asked the bank",
    ):
        assert words in shown
    assert "4711" not in shown


def test_an_act_is_one_line_with_who_and_why() -> None:
    entry = AuditEntry(
        at=AT, task=TASK, step="agree", kind="StepApproved", who="ann\x1b", reason="fine\nso"
    )
    shown = text_of(traces.act(entry)).rstrip()
    expected = f"2026-01-02 03:04:05Z  {TASK}/agree  StepApproved  by ann\ufffd  fine so"
    assert shown == expected
