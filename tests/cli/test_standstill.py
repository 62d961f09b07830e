"""Who waits for a task that does not move is told what it waits for; and what `submit` says."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from command_shell import Shell
from headway.agents.catalogue_views import SagaView
from headway.agents.errors import Unavailable
from headway.agents.views import FailureView, StepView, TaskView
from headway.cli import standstill
from headway.cli.standstill import standstill as waits
from headway.cli.submissions import going_on
from headway.cli.suggesting import suggestion

TASK = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
ABSENT = "step 'go' waits for agent 'me' (no instance is connected)"
START = "start it: headway agent MODULE:NAME"


def step(**fields: Any) -> StepView:
    given = {"name": "go", "action": "me.go", "status": "scheduled", "attempt": 1}
    return StepView.model_validate({**given, "phase": "action", **fields})


def task(*steps: StepView, version: int = 1) -> TaskView:
    return TaskView(
        task=TASK,
        saga="buy",
        saga_version=1,
        status="running",
        version=version,
        created_at=AT,
        updated_at=AT,
        steps=list(steps),
        actions=[],
    )


LOST = FailureView(type="ConnectionError", message="no route")


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (step(), ""),
        (step(waiting_for="signal 'paid'"), "step 'go' waits for signal 'paid'"),
        (step(waiting_for="agent 'me' (no instance is connected)"), f"{ABSENT}; {START}"),
        (
            step(waiting_for="agent 'me'", error=LOST),
            "step 'go' waits for agent 'me' after ConnectionError: no route",
        ),
        (
            step(next_attempt_at=AT, error=LOST),
            "step 'go' failed (ConnectionError: no route); next attempt 2030-01-02 03:04:05Z",
        ),
    ],
)
def test_a_step_that_does_not_move_tells_why(one: StepView, words: str) -> None:
    assert waits(one) == words


class Answers:
    """A client whose task looks like this, then like that, and last for ever."""

    def __init__(self, *views: TaskView | Exception) -> None:
        self._views = list(views)
        self.all_seen = asyncio.Event()

    async def status(self, _task: UUID) -> TaskView:
        view = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        if len(self._views) == 1:
            self._again()
        if isinstance(view, Exception):
            raise view
        return view

    def _again(self) -> None:
        asyncio.get_running_loop().call_later(standstill.LOOK_S * 5, self.all_seen.set)


@pytest.mark.parametrize(
    ("views", "told"),
    [
        (
            [Unavailable("away"), task(step(waiting_for="signal 'paid'"))],
            ["still running: step 'go' waits for signal 'paid'"],
        ),
        (
            [task(step(next_attempt_at=AT, error=LOST), version=n) for n in range(1, 9)],
            [f"still running: {waits(step(next_attempt_at=AT, error=LOST))}"],
        ),
        ([task(step(waiting_for="agent 'me'"), version=n) for n in range(1, 9)] + [task()], []),
    ],
)
async def test_what_does_not_move_is_told_once(
    views: list[TaskView | Exception],
    told: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(standstill, "LOOK_S", 0.001)
    client: Any = Answers(*views)
    async with standstill.told(client, TASK):
        await asyncio.wait_for(client.all_seen.wait(), 10)
    said = capsys.readouterr()
    assert (said.out, said.err.splitlines()) == ("", told)


async def test_whoever_stops_waiting_is_told_that_the_task_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(asyncio.CancelledError), going_on("it goes on"):
        raise asyncio.CancelledError
    assert capsys.readouterr().err == "it goes on\n"


def test_a_wait_and_the_status_tell_how_to_start_an_agent_that_is_not_there(shell: Shell) -> None:
    waiting = shell.start("submit", "waiting", "--wait")
    said = "waits for agent 'absent' (no instance is connected); " + START
    shell.until_logged("submit", f"still running: step 'wait' {said}\n")
    log = shell.folder / "submit.log"
    there = log.read_text().split()[1]
    assert f"  {said}" in shell.run_here("status", there).out
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=20)
    assert waiting.returncode == 130
    assert log.read_text().splitlines()[-1] == (
        f"task {there} goes on; look at it with: headway watch {there}"
    )
    shell.run_here("cancel", there, "-r", "it was a trial")


def test_what_was_accepted_before_is_told_so(shell: Shell) -> None:
    again = ("submit", "order", '{"fate": "fine"}', "--task", str(TASK)[:-1] + "6")
    first, second = shell.run_here(*again), shell.run_here(*again)
    assert (first.out, first.err) == (second.out, "")
    assert second.err == f"was accepted before, and is not done again: {first.out}"


def test_an_input_that_was_not_given_is_told_so(shell: Shell) -> None:
    ended = shell.run_here("submit", "order")
    assert ended.err.startswith("headway: the input does not fit the saga: ")
    assert ended.err.endswith("; none was given, as in: headway submit order '{…}'\n")


def test_of_a_saga_that_is_not_there_it_is_told_which_are(shell: Shell) -> None:
    for arguments in (("submit", "oder"), ("saga", "show", "oder")):
        ended = shell.run_here(*arguments)
        assert ended.code == 3
        assert "; did you mean 'order'? there are: order, " in ended.err


def test_the_nearest_names_come_first_and_not_all_of_many() -> None:
    def sagas(*names: str) -> list[SagaView]:
        return [SagaView(name=name, version=2, digest="", registered_at=AT) for name in names]

    assert suggestion("bye", sagas("sell", "buy")) == ("did you mean 'buy'? there are: buy, sell")
    assert suggestion("x", sagas("sell", "buy")) == "there are: buy, sell"
    assert suggestion("buy", sagas("sell", "buy")) == "its versions are: 2"
    many = sagas(*(f"saga-{number:02}" for number in range(12)))
    assert suggestion("x", many).endswith("saga-08, saga-09 and 2 more")
