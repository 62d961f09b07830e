"""Dead letters, acts on many tasks and webhooks from the command line, against a running system."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

import pytest
from command_shell import ANSWER_WITHIN_S, POLL_S, Shell
from headway.agents import Client
from headway.agents.identity import new_task_id
from headway.cli.addresses import Given, find

T = TypeVar("T")


@pytest.fixture
def mark() -> str:
    """An attribute that only the tasks of one test have."""
    return f"test={uuid4().hex}"


def waiting(shell: Shell, mark: str) -> str:
    """A task that waits for an agent that is absent."""
    ended = shell.run_here("submit", "waiting", "{}", "--attribute", mark, "--json")
    return str(ended.json["task"])


def publish(shell: Shell, subject: str, body: bytes, task: str) -> None:
    """As any program may, without an SDK."""

    async def store() -> None:
        url = find(Given(data=shell.folder / ".headway"), {}).nats_url
        async with await Client.connect(url) as client:
            jetstream = client.connection.nc.jetstream()
            await jetstream.publish(subject, body, headers={"ce-id": task})

    asyncio.run(store())


def soon(look: Callable[[], T]) -> T:
    """What `look` finds, once it finds anything."""
    deadline = time.monotonic() + ANSWER_WITHIN_S
    while not (found := look()):
        assert time.monotonic() < deadline, f"nothing after {ANSWER_WITHIN_S:g} s"
        time.sleep(POLL_S)
    return found


def test_a_letter_is_listed_shown_replayed_and_then_left_out(shell: Shell) -> None:
    task, subject = str(new_task_id()), f"hw.tasks.none-{uuid4().hex}"
    publish(shell, subject, b'{"note": "a body"}', task)

    def refused() -> list[int]:
        listed = shell.run_here("dead", "list", "--kind", "submission", "--json").json["letters"]
        return [each["sequence"] for each in listed if each["subject"] == subject]

    [letter] = soon(refused)
    shown = shell.run_here("dead", "show", str(letter))
    assert '{"note": "a body"}' in shown.out, shown
    assert f"headway dead replay {letter}\n" in shown.out
    replayed = shell.run_here("dead", "replay", str(letter), "--reason", "mended")
    assert replayed.out == f"letter {letter}, of task {task}: replayed\n", replayed
    assert f"\n{letter} " not in f"\n{shell.run_here('dead', 'list').out}"
    every = shell.run_here("dead", "list", "--all").out
    assert any(
        line.split()[:1] == [str(letter)] and "replayed" in line for line in every.split("\n")
    )
    dropped = shell.run_here("dead", "drop", str(letter))
    assert dropped.code == 3
    assert "there is nothing to drop" in dropped.err
    audit = shell.run_here("audit", task).out
    assert f"dead-letter-replayed  letter {letter}  by " in audit
    assert audit.endswith("  mended\n")


def test_many_tasks_are_cancelled_after_a_look_at_them(shell: Shell, mark: str) -> None:
    tasks = {waiting(shell, mark) for _ in range(3)}
    planned = shell.run_here("batch", "cancel", "--attribute", mark, "--dry-run")
    assert (planned.code, planned.out) == (0, "3 would be cancelled\n"), planned
    done = shell.run_here("batch", "cancel", "--attribute", mark, "--agent", "absent", "--json")
    assert done.code == 0, done
    assert set(done.json["tasks"]) == tasks
    again = shell.run_here("batch", "cancel", "-a", mark)
    assert (again.code, again.out) == (0, "0 cancelled\n")


def test_a_batch_tells_what_refused_it_and_why(shell: Shell, mark: str) -> None:
    task = waiting(shell, mark)
    ended = shell.run_here("batch", "retry", "-a", mark, "--status", "running")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[:2] == ["0 retried", "1 refused it"]
    assert lines[-1].split(None, 2) == [
        "1",
        task,
        "the task is running; only a parked task waits for a person",
    ]
    shell.run_here("cancel", task)
    empty = shell.run_here("batch", "cancel")
    assert empty.code == 2
    assert "filter: narrow it by a saga" in empty.err


def test_tasks_are_listed_by_an_agent_of_their_saga(shell: Shell, mark: str) -> None:
    task = waiting(shell, mark)
    by_agent = [
        shell.run_here("list", "-a", mark, "--agent", agent, "--json").json["tasks"]
        for agent in ("absent", "shop")
    ]
    assert [[row["task"] for row in rows] for rows in by_agent] == [[task], []]
    shell.run_here("cancel", task)


def test_a_webhook_shows_its_secret_once(shell: Shell) -> None:
    name = f"hook-{uuid4().hex[:8]}"
    made = shell.run_here("webhooks", "create", name, "--signal", "name:paid", "--saga", "refund")
    assert made.out.startswith("whsec_"), made
    assert made.err == (
        f"POST /hooks/{name} at any coordinator's HTTP; the secret is not shown again\n"
    )
    listed = shell.run_here("webhooks", "list")
    assert name in listed.out
    assert "name:paid" in listed.out
    assert "whsec_" not in listed.out + shell.run_here("webhooks", "list", "--json").out
    rotated = shell.run_here("webhooks", "rotate", name, "--overlap", "0", "-r", "it leaked")
    assert rotated.out.startswith("whsec_")
    assert rotated.out != made.out
    assert rotated.err == "the secret before ends now; the new one is not shown again\n"
    again = shell.run_here("webhooks", "rotate", name)
    assert again.err.startswith("the secret before is good until ")
    gone = shell.run_here("webhooks", "remove", name, "--reason", "not used")
    assert gone.out == f"no webhook {name} any more\n"
    assert shell.run_here("webhooks", "remove", name).code == 3
    acts = [line for line in shell.run_here("audit").out.splitlines() if f"  {name}  by " in line]
    assert [line.split()[2].removeprefix("webhook-") for line in acts] == [
        *("created", "rotated", "rotated", "removed")
    ]


def test_agents_tell_what_they_run_on_and_sagas_how_many_tasks_they_have(shell: Shell) -> None:
    shop = next(
        each
        for each in shell.run_here("agents", "--json").json["agents"]
        if each["agent"] == "shop"
    )
    [instance] = shop["instances"]
    assert instance["sdk"].startswith("headway ")
    assert len(instance["config"]) == 16
    ended = shell.run_here("submit", "order", '{"fate": "fine"}', "--wait")
    assert ended.code == 0

    def succeeded() -> int:
        listed = shell.run_here("saga", "list", "--json").json["sagas"]
        order = next(each for each in listed if (each["name"], each["version"]) == ("order", 1))
        return int(order["counts"].get("succeeded", 0))

    assert soon(succeeded) >= 1
