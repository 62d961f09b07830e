"""What people see, and what must never reach their terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import UUID

from headway.agents.views import (
    AgentList,
    AgentView,
    FailureView,
    History,
    HistoryEntry,
    StepView,
    TaskPage,
    TaskRow,
    TaskView,
)
from headway.cli import tables
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
        f"headway retry {TASK}",
        f"headway settle {TASK} STEP happened|did-not-happen",
    ):
        assert expected in shown


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
