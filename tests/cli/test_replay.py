"""A task's record is written, and replayed against the code of today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_shell import Shell

OTHER = '''
"""The shop as somebody changed it."""

import shop as before
from headway.agents import Agent, Context, Metered
from headway.sagas import Retry, Saga

once = Retry(maximum_attempts=1)
order = Saga("order", version=2, input=before.Order)
order.step("reserve", "shop.reserve", compensate="shop.release")
order.step("check", "shop.check", read_only=True, after="reserve")
order.step("ship", "shop.ship", after="check", pivot=True, retry=once)
order.step("notify", "shop.notify", after="ship", retry=once)

shop = Agent("shop")


@shop.action("consult", tools=[before.think, before.pay, before.unlock])
async def consult(ctx: Context, refund: before.Refund) -> str:
    return await ctx.call(before.think, "another question")


hasty = Agent("shop")


@hasty.action("consult", tools=[before.think, before.pay, before.unlock])
async def consult_hastily(ctx: Context, refund: before.Refund) -> str:
    await ctx.call(before.think, "a private question")
    return await ctx.call(before.pay, 7)


idle = Agent("shop")


@idle.action("consult", tools=[before.think])
async def do_not_consult(ctx: Context, refund: before.Refund) -> str:
    return "a private answer"


terse = Agent("shop")


@terse.action("consult", tools=[before.think])
async def consult_tersely(ctx: Context, refund: before.Refund) -> str:
    await ctx.call(before.think, "a private question")
    return "another answer"
'''


@pytest.fixture(scope="module")
def record(shell: Shell) -> Path:
    """The record of a refund whose agent asked its model once."""
    task = shell.run_here("submit", "refund", '{"amount": 5}', "--json").json["task"]
    for _ in range(2):
        shell.run_here("signal", task, "paid", '{"by": "bank"}', "--id", "one")
    shell.run_here("watch", task, "--json")
    written = shell.run_here("history", task, "--json")
    assert written.code == 0, written
    (shell.folder / "refund.json").write_text(written.out)
    (shell.folder / "other.py").write_text(OTHER)
    return Path("refund.json")


@pytest.fixture
def document(shell: Shell, record: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shell.folder / record).read_text())
    return found


def kept(shell: Shell, document: dict[str, Any]) -> str:
    (shell.folder / "changed.json").write_text(json.dumps(document))
    return "changed.json"


def test_a_record_is_one_versioned_document(document: dict[str, Any]) -> None:
    assert (document["format"], document["format_version"]) == ("headway.task-record", 1)
    assert document["input"] == {"amount": 5}
    assert [entry["version"] for entry in document["history"]] == [
        *range(1, document["version"] + 1)
    ]
    assert [one["name"] for one in document["definitions"]] == ["refund"]
    [journal] = document["journals"]
    kinds = [entry["kind"] for entry in journal["entries"] if entry["kind"] != "checkpoint"]
    assert (journal["step"], journal["phase"], kinds) == ("consult", "action", ["intent", "result"])


def test_a_record_is_reproduced_by_machine_and_handlers(shell: Shell, record: Path) -> None:
    ended = shell.run("replay", str(record), "--agent", "shop:shop")
    assert ended.code == 0, ended
    first, _, line = ended.out.splitlines()
    assert "refund version 1, as recorded" in first
    assert "decided as it was" in first
    assert line.split() == ["shop.consult", "consult", "action", "1", "none"]
    report = shell.run("replay", str(record), "shop:refund", "--json").json
    assert (report["reproduced"], report["divergence"]) == (True, None)
    assert report["against"] == "refund version 1"


def test_a_changed_definition_is_told_by_the_first_event_that_differs(shell: Shell) -> None:
    task = shell.run_here("submit", "order", '{"fate": "fine"}', "--wait", "--json").json["task"]
    (shell.folder / "order.json").write_text(shell.run_here("history", task, "--json").out)
    assert shell.run("replay", "order.json").code == 0
    ended = shell.run("replay", "order.json", "other:order", "--json")
    assert ended.code == 1, ended
    divergence = ended.json["divergence"]
    assert (divergence["recorded"]["type"], divergence["recorded"]["step"]) == (
        "AttemptDispatched",
        "ship",
    )
    assert (divergence["decided"]["type"], divergence["decided"]["step"]) == (
        "AttemptDispatched",
        "check",
    )
    shown = shell.run("replay", "order.json", "other:order")
    assert shown.code == 1
    assert "decided otherwise" in shown.out
    assert 'now: AttemptDispatched {"step":"check"' in shown.out


@pytest.mark.parametrize(
    ("agent", "difference"),
    [
        ("shop", "call 1 is of tool 'think' with arguments "),
        ("hasty", "it calls tool 'pay' with {\"amount\":7} (key 'pay#1'), which the journal does"),
        ("idle", "it ended without call 'think#1' of tool 'think'"),
        ("terse", 'it returned "another answer"; recorded is "a private answer"'),
    ],
)
def test_a_changed_handler_is_told_by_its_first_call_that_differs(
    shell: Shell, record: Path, agent: str, difference: str
) -> None:
    ended = shell.run("replay", str(record), "--agent", f"other:{agent}", "--json")
    assert ended.code == 1, ended
    [handler] = ended.json["handlers"]
    assert handler["difference"].startswith(difference)
    assert ended.json["divergence"] is None


def test_what_is_no_record_is_refused(shell: Shell, record: Path, document: dict[str, Any]) -> None:
    nowhere = shell.run_here("replay", "nowhere.json")
    assert (nowhere.code, nowhere.err.strip()) == (
        2,
        "headway: cannot read nowhere.json: No such file or directory",
    )
    later = shell.run_here("replay", kept(shell, {**document, "format_version": 2}))
    assert (later.code, "format_version: Input should be 1" in later.err) == (2, True)
    assert later.err.strip().endswith("write one with: headway history TASK --json")
    cut = {**document, "history": document["history"][:-1]}
    shorter = shell.run_here("replay", kept(shell, cut))
    assert (shorter.code, shorter.err.strip()) == (
        2,
        f"headway: the record says version {document['version']}, but its history does not go from "
        "version 1 to that one",
    )
    parked = shell.run_here("replay", kept(shell, {**document, "status": "parked"}))
    assert (parked.code, parked.err.strip()) == (
        2,
        "headway: the record says parked, but its history leads to succeeded",
    )
    absent = shell.run("replay", str(record), "--agent", "shop:absent")
    assert (absent.code, absent.err.strip()) == (
        2,
        f"headway: task {document['task']} has no journal of agent 'absent'",
    )


def test_a_record_that_was_edited_by_hand_is_refused_in_words(
    shell: Shell, document: dict[str, Any]
) -> None:
    second, *rest = document["history"][1:]
    bare = [document["history"][0], {**second, "data": {}}, *rest]
    huge = [document["history"][0], {**second, "data": {**second["data"], "attempt": 2**70}}, *rest]
    after, move = document["version"] + 1, {"origin": 1, "target": 7, "by": "ada", "reason": ""}
    moved = {"version": after, "type": "TaskMoved", "at": second["at"], "data": move}
    for change, said in (
        ({"version": 10**30}, "the record says version 1000000000000000000000000000000, but its"),
        ({"history": bare}, f"event 2 is no {second['type']}: step: Field required"),
        ({"history": huge}, "event 2: Integer exceeds 64-bit range"),
        ({"input": 2**70}, "input: Integer exceeds 64-bit range"),
        ({"definitions": [{"name": 2**70}]}, "definitions: Integer exceeds 64-bit range"),
        (
            {"history": [*document["history"], moved], "version": after},
            "the task was moved to version 7, whose definition the record lacks",
        ),
    ):
        ended = shell.run_here("replay", kept(shell, {**document, **change}))
        assert (ended.code, ended.err.startswith(f"headway: {said}")) == (2, True), ended


def test_a_masked_record_is_replayed_only_where_its_payloads_do_not_matter(
    shell: Shell, document: dict[str, Any]
) -> None:
    digest = {"sha256": "0" * 64, "bytes": 12}
    ended = shell.run_here("replay", kept(shell, {**document, "input": digest}))
    assert (ended.code, ended.err.strip()) == (
        2,
        "headway: the payloads of this record are digests, and its saga depends on them; export it "
        "with role 'operate'",
    )
