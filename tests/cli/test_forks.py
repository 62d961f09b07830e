"""`headway fork`: a task that keeps what another one finished, and what is said of both."""

from __future__ import annotations

import json
from uuid import UUID

from command_shell import Ended, Shell
from headway.agents.identity import new_task_id


def settled(shell: Shell, fate: str) -> str:
    ended = shell.run_here("submit", "order", json.dumps({"fate": fate}), "--wait", "--json")
    return str(ended.json["task"])


def refused(ended: Ended) -> str:
    assert (ended.code, ended.out) == (3, ""), ended
    return ended.err.strip()


def test_a_task_is_forked_and_both_tasks_say_so(shell: Shell) -> None:
    origin = settled(shell, "stuck")
    forked = shell.run_here("fork", origin, "--from", "notify", "-r", "the mail server is back")
    fork = forked.out.strip()
    assert str(UUID(fork)) == fork
    assert forked.err.strip() == f"kept from {origin}: reserve, ship; done anew: notify"
    watched = shell.run_here("watch", fork, "--json").lines[-1]
    assert (watched["status"], watched["forked_from"]) == ("parked", origin)
    assert [(step["name"], step["status"], step["kept_from"]) for step in watched["steps"]] == [
        ("reserve", "completed", origin),
        ("ship", "completed", origin),
        ("notify", "unknown", None),
    ]
    shown = shell.run_here("status", fork)
    assert f"forked from: {origin}" in shown.out
    assert shown.out.count(f"kept from task {origin}") == 2
    assert f"forks: {fork}" in shell.run_here("status", origin).out
    history = shell.run_here("history", fork)
    kinds = [line.split()[3] for line in history.out.splitlines()[1:5]]
    assert kinds == ["TaskSubmitted", "TaskForked", "StepKept", "StepKept"]
    assert f'"origin":"{origin}"' in history.out


def test_a_fork_is_in_the_audit_of_both_tasks(shell: Shell) -> None:
    origin = settled(shell, "stuck")
    asked = ("fork", origin, "--from", "ship", "--by", "ada", "-r", "again", "--json")
    fork = shell.run_here(*asked).json["task"]
    [of_fork] = shell.run_here("audit", fork, "--json").lines
    assert (of_fork["kind"], of_fork["what"]) == ("TaskForked", f"task {origin}")
    entries = shell.run_here("audit", origin, "--json").lines
    [of_origin] = [entry for entry in entries if entry["kind"] == "fork"]
    assert of_origin["what"] == f"task {fork}"
    for entry in (of_fork, of_origin):
        assert (entry["who"], entry["reason"], entry["step"]) == ("ada", "again", "ship")


def test_forking_again_with_the_same_id_is_harmless(shell: Shell) -> None:
    origin, fork = settled(shell, "fine"), str(new_task_id())
    asked = ("fork", origin, "--from", "ship", "--task", fork, "--json")
    first, second = shell.run_here(*asked).json, shell.run_here(*asked).json
    assert [first.pop("created"), second.pop("created")] == [True, False]
    assert first == second
    other = shell.run_here("fork", origin, "--from", "notify", "--task", fork)
    assert refused(other).endswith(f"task {fork} exists with another body; take a new id")


def test_what_a_fork_keeps_is_never_undone_by_it(shell: Shell) -> None:
    origin = settled(shell, "refused")
    fork = shell.run_here("fork", origin, "--from", "reserve", "--json").json
    assert (fork["kept"], fork["anew"]) == ([], ["reserve", "ship", "notify"])
    assert shell.run_here("watch", fork["task"], "--json").lines[-1]["status"] == "compensated"


def test_what_cannot_be_forked_is_refused_with_what_to_do_instead(shell: Shell) -> None:
    undone = settled(shell, "refused")
    assert refused(shell.run_here("fork", undone, "--from", "ship")) == (
        "headway: step 'reserve' was undone; fork from it or from a step that it comes after, or "
        "submit the task anew"
    )
    assert refused(shell.run_here("fork", undone, "--from", "pack")) == (
        "headway: there is no step 'pack' in this task; its steps are reserve, ship, notify"
    )
    waiting = shell.run_here("submit", "waiting", "--json").json["task"]
    assert refused(shell.run_here("fork", waiting, "--from", "wait")) == (
        "headway: the task is running; only one that ended or is parked can be forked: wait until "
        "it is, or cancel it"
    )
    shell.run_here("cancel", waiting)
    missing = str(new_task_id())
    assert refused(shell.run_here("fork", missing, "--from", "wait")) == (
        f"headway: there is no task {missing}; `headway list` shows those that are"
    )
