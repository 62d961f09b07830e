"""What of a failure stands in an agent's log."""

from __future__ import annotations

import logging

import pytest
from headway.agents import Reject, Retry
from headway.agents.handling import fault
from headway.agents.messages import Command

COMMAND = Command("t/s/action/1/0", "t", "saga", "s", "action", 1, 0, "", "headway.command.execute")


@pytest.mark.parametrize("error", [Reject("no credit for Ada\nforged line"), Retry("ask Ada")])
def test_what_a_handler_says_on_purpose_is_the_tasks_and_not_in_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        told = fault(COMMAND, error)
    assert told.error is not None
    assert told.error.message == str(error)
    assert caplog.messages == [f"t/s/action/1/0: {type(error).__name__}"]


def test_what_it_did_not_raise_on_purpose_is_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    fault(COMMAND, ZeroDivisionError("division by zero"))
    assert caplog.messages == ["t/s/action/1/0: failed"]
    assert "division by zero" in caplog.text
