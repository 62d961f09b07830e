"""The command line against real servers, a real coordinator and a real agent."""

from __future__ import annotations

import json
import signal
import stat
from uuid import UUID

import pytest
from command_shell import Ended, Shell

UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


def submit(shell: Shell, fate: str) -> str:
    """Submit an order and wait until it is settled; its id."""
    ended = shell.run_here("submit", "order", json.dumps({"fate": fate}), "--wait", "--json")
    return str(ended.json["task"])


def assert_explained(ended: Ended, code: int, *words: str) -> None:
    """An expected error: its exit code, and one or two lines that hold `words`."""
    assert ended.code == code, ended
    assert ended.out == ""
    assert "Traceback" not in ended.err
    assert len(ended.err.splitlines()) <= 2, ended.err
    for word in words:
        assert word in ended.err


def test_a_task_that_succeeds_is_waited_for_and_shown(shell: Shell) -> None:
    ended = shell.run("submit", "order", '{"fate": "fine"}', "--wait")
    assert ended.code == 0, ended
    assert "succeeded" in ended.out
    assert "shop.notify" in ended.out


def test_a_task_that_is_compensated_ends_the_wait_with_1(shell: Shell) -> None:
    ended = shell.run("submit", "order", '{"fate": "refused"}', "--wait", "--json")
    assert (ended.code, ended.json["status"]) == (1, "compensated")


def test_submitting_without_waiting_prints_the_id_alone(shell: Shell) -> None:
    ended = shell.run("submit", "order", "-", stdin='{"fate": "fine"}')
    assert ended.code == 0, ended
    assert str(UUID(ended.out.strip())) == ended.out.strip()


def test_submitting_the_same_id_again_is_harmless_unless_the_input_differs(shell: Shell) -> None:
    again = ("submit", "order", '{"fate": "fine"}', "--task", UNKNOWN[:-1] + "8", "--json")
    assert [shell.run_here(*again).json["created"] for _ in range(2)] == [True, False]
    other = shell.run_here("submit", "order", '{"fate": "refused"}', *again[3:])
    assert_explained(other, 3, UNKNOWN[:-1] + "8")


def test_a_file_of_tasks_is_submitted_and_its_outcomes_are_counted(shell: Shell) -> None:
    fates = ["fine", "refused"] * 20
    (shell.folder / "tasks.jsonl").write_text("".join(f'{{"fate": "{f}"}}\n' for f in fates))
    ended = shell.run_here("submit", "order", "--file", "tasks.jsonl", "-a", "batch=1", "--wait")
    assert ended.code == 1, ended
    assert [line.split() for line in ended.out.splitlines()] == [
        ["outcome", "tasks"],
        ["compensated", "20"],
        ["succeeded", "20"],
    ]
    listed = shell.run_here(
        "list", "-a", "batch=1", "-s", "succeeded", "--limit", "15", "--json"
    ).json
    assert len(listed["tasks"]) == 15
    rest = shell.run_here(
        *("list", "-a", "batch=1", "-s", "succeeded", "--cursor", listed["cursor"], "--json")
    ).json
    assert (len(rest["tasks"]), rest["cursor"]) == (5, None)


def test_a_file_of_tasks_gives_one_receipt_a_line(shell: Shell) -> None:
    (shell.folder / "few.jsonl").write_text('{"fate": "fine"}\n{"fate": "fine"}\n')
    ended = shell.run_here("submit", "order", "--file", "few.jsonl", "--json")
    assert ended.code == 0, ended
    assert [line["saga"] for line in ended.lines] == ["order", "order"]


def test_status_and_history_tell_what_happened(shell: Shell) -> None:
    task = submit(shell, "refused")
    steps = {step["name"]: step for step in shell.run_here("status", task, "--json").json["steps"]}
    assert steps["ship"]["error"]["message"] == "no carrier goes there"
    assert steps["reserve"]["status"] == "compensated"
    assert "no carrier goes there" in shell.run_here("status", task).out
    entries = shell.run_here("history", task, "--json").json["history"]
    assert [entry["version"] for entry in entries] == list(range(1, len(entries) + 1))
    assert len(shell.run_here("history", task).out.splitlines()) == len(entries) + 1


def test_watching_a_task_ends_when_it_ends(shell: Shell) -> None:
    assert shell.run_here("watch", submit(shell, "fine")).code == 0
    ended = shell.run_here("watch", submit(shell, "stuck"), "--json")
    assert (ended.code, ended.lines[-1]["status"]) == (1, "parked")


def test_watching_can_be_interrupted(shell: Shell) -> None:
    task = shell.run_here("submit", "waiting").out.strip()
    watching = shell.start("watch", task, "--json")
    assert watching.stdout is not None
    assert json.loads(watching.stdout.readline())["status"] == "running"
    watching.send_signal(signal.SIGINT)
    watching.communicate()
    assert watching.returncode == 130


def test_a_task_whose_agent_is_absent_says_for_whom_it_waits_and_can_be_cancelled(
    shell: Shell,
) -> None:
    task = shell.run_here("submit", "waiting", "--json").json["task"]
    assert "waits for agent 'absent'" in shell.run_here("status", task).out
    cancelled = shell.run_here("cancel", task, "--reason", "ordered by mistake", "--json")
    assert cancelled.code == 0, cancelled
    assert cancelled.json["status"] in {"compensating", "compensated"}
    assert "ordered by mistake" in shell.run_here("history", task).out


def test_a_parked_task_is_listed_retried_and_settled_by_hand(shell: Shell) -> None:
    task = submit(shell, "stuck")
    assert task in shell.run_here("parked", "--saga", "order").out
    assert "headway settle" in shell.run_here("status", task).out
    assert shell.run_here("retry", task, "notify", "--json").json["status"] == "running"
    assert shell.run_here("watch", task).code == 1
    settled = shell.run_here("settle", task, "notify", "happened", "--reason", "phoned", "--json")
    assert settled.json["status"] == "succeeded", settled
    assert "phoned" in shell.run_here("history", task).out


def test_a_parked_task_is_resumed(shell: Shell) -> None:
    task = submit(shell, "stuck")
    assert shell.run_here("resume", task, "--json").json["status"] == "running"


def test_a_task_past_its_pivot_cannot_be_cancelled(shell: Shell) -> None:
    assert_explained(shell.run_here("cancel", submit(shell, "stuck")), 3, "point of no return")


def test_sagas_are_listed_and_shown(shell: Shell) -> None:
    listed = shell.run_here("saga", "list", "--json").json["sagas"]
    assert {saga["name"] for saga in listed} >= {"order", "waiting"}
    shown = shell.run_here("saga", "show", "order").out
    assert "shop.ship" in shown
    assert "pivot" in shown
    definition = shell.run_here("saga", "show", "order", "--json").json["definition"]
    (shell.folder / "order.json").write_text(json.dumps(definition))
    assert shell.run_here("saga", "register", "order.json").code == 0


def test_another_definition_under_the_same_version_is_refused(shell: Shell) -> None:
    assert_explained(shell.run("saga", "register", "shop:changed"), 3, "order", "version 1")


def test_agents_are_listed_with_what_waits_for_them(shell: Shell) -> None:
    agents = {one["agent"]: one for one in shell.run_here("agents", "--json").json["agents"]}
    assert agents["shop"]["instances"][0]["slots"] > 0
    assert agents["absent"]["instances"] == []
    assert "shop" in shell.run_here("agents").out


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("submit", "nothing", "{}"), 3, "nothing"),
        (("submit", "order", '{"fate": "odd"}'), 2, "fate"),
        (("status", UNKNOWN), 3, UNKNOWN),
        (("history", UNKNOWN), 3, UNKNOWN),
        (("cancel", UNKNOWN), 3, UNKNOWN),
        (("saga", "show", "nothing"), 3, "nothing"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_explained(
    shell: Shell, arguments: tuple[str, ...], code: int, word: str
) -> None:
    assert_explained(shell.run_here(*arguments), code, word)


def test_an_input_over_the_limit_is_refused_before_it_is_sent(shell: Shell) -> None:
    ended = shell.run("submit", "order", "-", stdin=json.dumps("x" * 1_048_576))
    assert_explained(ended, 2, "1048576")


def test_a_server_that_does_not_answer_exits_with_4(elsewhere: Shell) -> None:
    assert_explained(elsewhere.run("list", "--nats-url", "nats://127.0.0.1:1"), 4, "127.0.0.1:1")


def test_the_flags_may_stand_before_the_command(shell: Shell, elsewhere: Shell) -> None:
    data = str(shell.folder / ".headway")
    assert elsewhere.run("--json", "--data", data, "agents").json["agents"]
    with_environment = Shell(elsewhere.folder, {"HEADWAY_DATA": data})
    assert with_environment.run("agents", "--json").json["agents"]


def test_the_secrets_of_up_are_the_owners_only(shell: Shell) -> None:
    connections = shell.folder / ".headway" / "connections.json"
    assert stat.S_IMODE(connections.stat().st_mode) == 0o600
    secret = json.loads(connections.read_text())["nats_url"].split(":")[2].split("@")[0]
    assert secret not in (shell.folder / "up.log").read_text()


def test_a_second_up_in_the_same_folder_is_told_of_the_first(shell: Shell) -> None:
    ended = shell.run("up")
    assert ended.code == 1, ended
    assert "Traceback" not in ended.err
    assert ".headway" in ended.err


def test_a_second_coordinator_serves_beside_the_first(shell: Shell) -> None:
    coordinator = shell.start("coordinator")
    try:
        shell.until_logged("coordinator", "serves")
        assert submit(shell, "fine")
    finally:
        coordinator.send_signal(signal.SIGTERM)
        coordinator.communicate()
    assert coordinator.returncode == 0
