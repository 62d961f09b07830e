"""Commands for tasks that wait for people, and for looking back at what was done."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from command_shell import ANSWER_WITHIN_S, POLL_S, Ended, Shell
from headway.cli.interventions import person
from headway.cli.main import main

UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"
NO_TASK = f"there is no task {UNKNOWN}; `headway list` shows those that are"
MANIFEST = {"max_tokens": 1000, "tools": ["think", "pay", "unlock"], "goal": "be fair"}

Give = Callable[..., Ended]


@pytest.fixture
def give(shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Give:
    """Give a command in the folder of the running `headway up`, within this process."""
    for variable in ("HEADWAY_NATS_URL", "HEADWAY_POSTGRES_URL", "HEADWAY_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(shell.folder)

    def give(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["headway", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return give


def begun(give: Give, amount: int, *options: str) -> str:
    """Submit a refund; its id."""
    ended = give("submit", "refund", json.dumps({"amount": amount}), *options)
    assert ended.code == 0, ended
    return ended.out.strip()


def waiting(give: Give, task: str, kind: str) -> dict[str, Any]:
    """What of a task waits for a person, once it does."""
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while time.monotonic() < deadline:
        for one in give("parked", "--saga", "refund", "--json").json["waiting"]:
            if (one["task"], one["kind"]) == (task, kind):
                return dict(one)
        time.sleep(POLL_S)
    raise AssertionError(f"nothing of {task} waits as {kind}")


def offered(give: Give, task: str) -> list[list[str]]:
    """The commands that `headway parked` offers for a task, as they stand."""
    lines = give("parked", "--limit", "500").out.splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("    headway ")]
    return [words[1:] for words in commands if words[2] == task]


def assert_explained(ended: Ended, code: int, words: str) -> None:
    assert (ended.code, ended.out, ended.err) == (code, "", f"headway: {words}\n")


def test_a_refund_waits_for_a_person_a_signal_time_and_another_task(give: Give) -> None:
    task = begun(give, 50, "--manifest", json.dumps(MANIFEST))
    assert waiting(give, task, "approval")["step"] == "agree"
    shown = give("status", task).out
    for words in ("waits for a person's approval", "0 of 1000 tokens", "goal: be fair"):
        assert words in shown
    approve, reject = offered(give, task)
    assert (approve, reject) == (["approve", task, "agree"], ["reject", task, "agree"])
    assert give(*approve, "--by", "ann", "--reason", "fine").code == 0
    assert_explained(
        give(*reject), 3, "step 'agree' does not wait for an approval; it is completed"
    )
    signal = ("signal", task, "paid", '{"receipt": 7}', "--id", "one", "--json")
    assert [give(*signal).code for _ in range(2)] == [0, 0]
    assert give("watch", task).code == 0
    view = give("status", task, "--json").json
    steps = {step["name"]: step for step in view["steps"]}
    assert [step["kind"] for step in view["steps"]] == [
        *("approval", "action", "wait", "sleep", "child")
    ]
    assert steps["agree"]["result"] == {"approved": True, "by": "ann", "reason": "fine"}
    assert steps["paid"]["result"] == {"receipt": 7}
    assert view["usage"] == {"tokens": 15, "cost_usd": 0.25}
    child = steps["tell"]["child"]
    shown = give("status", task).out
    assert "15 of 1000 tokens, 0.25 US dollars" in shown
    assert f"task {child}" in shown
    assert f"child of: {task}" in give("status", child).out


def test_what_was_done_is_in_the_journal_and_in_the_audit_log(shell: Shell, give: Give) -> None:
    task = begun(give, 5)
    give("signal", task, "paid", "--by", "bank")
    assert give("watch", task).code == 0
    shown = give("journal", task, "consult").out
    header, intent, result = (
        line.split() for line in shown.splitlines() if "checkpoint" not in line
    )
    assert header[:5] == ["seq", "at", "kind", "call", "tool"]
    assert (intent[3:], result[3:6]) == (
        ["intent", "think#1", "think", "33"],
        ["result", "think#1", "think"],
    )
    assert "15" in result
    assert "private" not in shown
    whole = shell.run_here("journal", task, "consult", "--json").lines
    calls = [entry["data"] for entry in whole if entry["kind"] != "checkpoint"]
    assert calls == [{"question": "a private question"}, "a private answer"]
    acts = [line for line in give("audit", task).out.splitlines() if "by bank" in line]
    assert len(acts) == 1
    assert f"{task}  SignalReceived  paid" in acts[0]
    kinds = [act["kind"] for act in shell.run_here("audit", task, "--json").lines]
    assert sorted(kinds) == ["SignalReceived", "intent", "result"]
    assert give("audit", task, "--since", "2999-01-01", "--json").out == ""
    assert "has no journal" in give("journal", task, "agree").err


def test_a_call_of_which_nobody_knows_is_settled_and_its_task_goes_on(give: Give) -> None:
    task = begun(give, 500)
    waiting(give, task, "approval")
    give("approve", task, "agree")
    call = waiting(give, task, "unsettled")
    assert (call["tool"], call["key"]) == ("pay", "pay#1")
    settle = next(words for words in offered(give, task) if "--call" in words)
    assert settle == ["settle", task, "consult", "happened|did-not-happen", "--call", "pay#1"]
    settle[3] = "happened"
    settled = give(*settle, "--result", '"paid in cash"', "--reason", "saw the receipt")
    assert settled.out == f"call pay#1 is settled; go on with: headway resume {task}\n"
    assert give("resume", task, "--reason", "settled", "--by", "ann").code == 0
    give("signal", task, "paid")
    assert give("watch", task).code == 0
    [consult] = [s for s in give("status", task, "--json").json["steps"] if s["name"] == "consult"]
    assert consult["result"] == "paid in cash"
    acts = [json.loads(line) for line in give("audit", task, "--json").out.splitlines()]
    by_hand = [(act["kind"], act["reason"]) for act in acts if act["who"] == person()]
    assert by_hand == [("StepApproved", ""), ("result", "saw the receipt"), ("SignalReceived", "")]


def test_a_call_that_needs_a_person_is_approved_by_its_invocation(give: Give) -> None:
    task = begun(give, 5000)
    waiting(give, task, "approval")
    give("approve", task, "agree")
    call = waiting(give, task, "gate")
    assert (call["tool"], call["key"]) == ("unlock", "unlock#1")
    approve = next(words for words in offered(give, task) if words[0] == "approve")
    assert approve == ["approve", task, "--invocation", call["invocation"]]
    assert give(*approve, "--reason", "they are honest").code == 0
    again = give("reject", task, "--invocation", call["invocation"])
    assert again.code == 3
    assert "approved" in again.err
    give("signal", task, "paid")
    assert give("watch", task).code == 0


def test_a_rejected_refund_is_turned_around(give: Give) -> None:
    task = begun(give, 50)
    waiting(give, task, "approval")
    assert give("reject", task, "agree", "--reason", "too late").code == 0
    ended = give("watch", task, "--json")
    assert (ended.code, ended.lines[-1]["status"]) == (1, "compensated")
    assert ended.lines[-1]["reason"] == "step 'agree': Rejected: too late"


def test_the_queue_is_read_page_by_page(give: Give) -> None:
    tasks = [begun(give, 50) for _ in range(3)]
    for task in tasks:
        waiting(give, task, "approval")
    first = give("parked", "--saga", "refund", "--limit", "2")
    cursor = first.out.splitlines()[-1].removeprefix("more: --cursor ")
    second = give("parked", "--saga", "refund", "--limit", "2", "--cursor", cursor)
    assert [task in first.out for task in tasks] == [False, True, True]
    assert tasks[0] in second.out
    for task in tasks:
        give("cancel", task)
    assert "nothing waits for a person" in give("parked", "--saga", "nothing").err


def test_a_saga_is_shown_with_the_kinds_and_conditions_of_its_steps(give: Give) -> None:
    lines = give("saga", "show", "refund").out.splitlines()[2:]
    shown = {line.split()[0]: " ".join(line.split()[1:]) for line in lines}
    assert shown == {
        "agree": "approval a person's word input.amount > 10 3600 s",
        "consult": "action shop.consult agree shop.cease 1 60 s",
        "paid": "wait signal paid consult",
        "rest": "sleep 0.01 s paid",
        "tell": "child saga order rest its own compensations 60 s",
    }


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("approve", UNKNOWN, "agree"), 3, NO_TASK),
        (("signal", UNKNOWN, "paid"), 3, NO_TASK),
        (("journal", UNKNOWN, "consult"), 3, NO_TASK),
        (
            ("submit", "refund", '{"amount": 5}', "--manifest", '{"agents": ["mail"]}'),
            2,
            "manifest: saga 'refund' needs agent 'shop' as well",
        ),
    ],
)
def test_what_cannot_be_done_is_explained(
    give: Give, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert_explained(give(*arguments), code, words)
