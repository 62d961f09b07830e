"""Limits and pauses from the command line, against a running system."""

from __future__ import annotations

import pytest
from command_shell import Shell
from headway.cli.failures import BadInput
from headway.cli.limits import rate_from


@pytest.mark.parametrize(
    ("text", "rate"), [("50/s", 50.0), ("0.5/s", 0.5), ("90/m", 1.5), ("36/h", 0.01), (None, None)]
)
def test_rates_are_written_in_seconds_minutes_or_hours(text: str, rate: float) -> None:
    assert rate_from(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["50", "50/d", "-1/s", "a/s", "50/s "])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        rate_from(text)
    assert str(refused.value) == f"a rate is written 50/s, 100/m or 1000/h, not {text!r}"


@pytest.mark.parametrize("text", ["0/s", "1000001/s"])
def test_a_rate_out_of_bounds_is_refused(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        rate_from(text)
    assert str(refused.value) == (
        f"a rate is from 0.0416667/h to 1000000/s, not {text!r}; "
        "`headway agents pause` stops an agent"
    )


def test_limits_are_set_listed_and_removed(shell: Shell) -> None:
    words = ("key", "absent:customer", "--rate", "90/m", "--burst", "3", "--concurrency", "2")
    ended = shell.run_here("limits", "set", *words, "--json")
    assert ended.code == 0, ended
    [limit] = ended.json["limits"]
    assert (limit["rate"], limit["burst"], limit["concurrency"]) == (1.5, 3, 2)
    listed = shell.run_here("limits", "list")
    assert "key     absent:customer  1.5/s      3          2" in listed.out, listed
    removed = shell.run_here("limits", "remove", "key", "absent:customer")
    assert removed.out == "no limit any more on key absent:customer\n", removed
    again = shell.run_here("limits", "remove", "key", "absent:customer")
    assert again.code != 0
    assert "there is no limit on key 'absent:customer'" in again.err


def test_a_limit_of_nothing_is_refused(shell: Shell) -> None:
    ended = shell.run_here("limits", "set", "agent", "absent")
    assert ended.code != 0
    assert "a limit needs a rate, a concurrency, or both" in ended.err


def test_an_agent_is_paused_shown_as_that_and_resumed(shell: Shell) -> None:
    paused = shell.run_here("agents", "pause", "absent", "--reason", "maintenance")
    assert paused.out.startswith("absent: paused by "), paused
    assert paused.out.endswith(": maintenance\n")
    listed = shell.run_here("agents", "--json")
    [absent] = [each for each in listed.json["agents"] if each["agent"] == "absent"]
    assert absent["breaker"]["state"] == "paused"
    examined = shell.run_here("doctor", "--json")
    told = [each for each in examined.json["findings"] if "absent" in each["check"]]
    assert [each["remedy"] for each in told if "paused by" in each["found"]] == [
        "once it is well again: `headway agents resume absent`"
    ]
    assert not [each for each in told if each["check"].startswith("consumer")], told
    assert "no agent" not in paused.err
    resumed = shell.run_here("agents", "resume", "absent")
    assert resumed.out == "absent: gets its commands\n", resumed


def test_pausing_an_agent_that_never_was_asks_for_its_name(shell: Shell) -> None:
    paused = shell.run_here("agents", "pause", "absnt")
    assert (paused.code, paused.err) == (
        0,
        "no agent 'absnt' was here so far: if that is not its name, resume it; "
        "`headway agents` lists those that were\n",
    )
    assert shell.run_here("agents", "resume", "absnt").out == "absnt: gets its commands\n"


def test_a_task_is_submitted_with_a_priority(shell: Shell) -> None:
    ended = shell.run_here(
        "submit", "order", '{"fate": "fine"}', "--priority", "9", "--wait", "--json"
    )
    assert (ended.code, ended.json["status"]) == (0, "succeeded"), ended
    refused = shell.run_here("submit", "order", "{}", "--priority", "10")
    assert refused.code != 0
    assert "less than or equal to 9" in refused.err
