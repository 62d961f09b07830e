"""The narration: what a person reads while the demo runs."""

from __future__ import annotations

import io

from headway.demo.killer import Killed, Returned
from headway.demo.narration import Narration
from rich.console import Console


def test_kills_are_told_and_tasks_are_counted() -> None:
    out = io.StringIO()
    with Narration(Console(file=out, width=120)) as narration:
        narration.say("Starting.")
        narration.begin(2)
        narration.task_filed()
        narration.task_filed()
        narration.tell(Killed(3.14, "mail", 42))
        narration.tell(Returned(3.27, "mail", 43))
        narration.task_settled("failed_to_compensate")
        narration.one_done()
    told = out.getvalue()
    assert "Starting." in told
    assert "3.1 s  SIGKILL  mail, process 42" in told
    assert "3.3 s  back     mail, process 43" in told
    assert "1/2" in told
    assert "1 failed to compensate, 1 open" in told
