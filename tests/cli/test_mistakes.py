"""Mistakes that are noticed before any server is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_shell import Ended
from headway.agents.errors import NotFound, Refused
from headway.cli.failures import told
from headway.cli.main import main

TASK = "01890a5d-ac96-774b-bcce-b302099a8057"
Give = Callable[..., Ended]


@pytest.fixture
def give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Give:
    """Give a command in an empty folder, within this process."""
    for variable in ("HEADWAY_NATS_URL", "HEADWAY_POSTGRES_URL", "HEADWAY_DATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def give(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["headway", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return Ended(int(ended.value.code or 0), said.out, said.err)

    return give


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("submit order {", "the input is not JSON"),
        (
            "submit order {} --file tasks.jsonl",
            "--file goes neither with an input nor with --task nor with --manifest",
        ),
        ("submit order --file tasks.jsonl --manifest {}", "nor with --manifest"),
        ("submit order --manifest {", "the manifest is not JSON"),
        ("submit order --manifest absent.json", "cannot read absent.json"),
        ('submit order --manifest {"steps":5}', "not a manifest: steps: Extra inputs"),
        ("submit order --file tasks.jsonl", "cannot read tasks.jsonl"),
        ("submit order -a x", "KEY=VALUE"),
        ("list --status odd", "use running, compensating"),
        ("list --nats-url nats://host:port", "--nats-url holds no URL"),
        (
            "list --nats-url http://host:7480",
            "--nats-url holds no URL of the form nats://host:port: http:// is not spoken by NATS",
        ),
        ("list --nats-url nats://", "of the form nats://host:port: it names no host"),
        (
            "tokens list --postgres-url host",
            "--postgres-url holds no URL of the form postgresql://user:password@host:port/database",
        ),
        ("coordinator --nats-url nats://x --postgres-url nats://y", "--postgres-url holds no URL"),
        (f"approve {TASK}", "name either the step that waits, or with --invocation the call"),
        (f"reject {TASK} agree --invocation {TASK}", "`headway parked` lists both"),
        (f"signal {TASK} paid {{", "the payload is not JSON"),
        ("audit --until 0001-01-01T00:00:00+23:59", "in UTC it must be in the years 1 to 9999"),
        ("list --since 9999-12-31T23:59:59-23:59", "in UTC it must be in the years 1 to 9999"),
        (f"settle {TASK} pay happened --result {{", "--result is not JSON"),
        ("agent nothing:shop", "there is no module 'nothing'"),
        ("agent nothing", "is not MODULE:NAME"),
        ("saga register nothing:saga", "there is no module 'nothing'"),
        ("saga register json:loads", "json:loads is not a Saga"),
        ("saga register nothing.json", "cannot read nothing.json"),
        ("saga register nothing", "neither a file nor MODULE:NAME"),
        ("saga register shop.py", "shop.py is not JSON; name the saga in it as shop:NAME"),
        ("coordinator --nats-url nats://x", "set --postgres-url or HEADWAY_POSTGRES_URL"),
    ],
)
def test_a_mistake_is_explained_in_a_line(give: Give, arguments: str, words: str) -> None:
    ended = give(*arguments.split())
    assert ended.code == 2, ended
    assert ended.out == ""
    assert ended.err.startswith("headway: ")
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("arguments", ["status", "status not-an-id", "nonsense"])
def test_wrong_usage_exits_with_2_and_points_to_the_help(give: Give, arguments: str) -> None:
    ended = give(*arguments.split())
    assert ended.code == 2
    assert "Usage: headway" in ended.err


@pytest.mark.parametrize("command", ["status", "fork --from a", "watch", "journal", "audit"])
def test_what_is_no_id_of_a_task_is_told_where_to_find_one(give: Give, command: str) -> None:
    ended = give(*command.split(), "nope")
    said = " ".join(ended.err.replace("│", " ").split())
    assert ended.code == 2, ended
    assert "'nope' is no task's id, which is a UUID; `headway list` shows those of tasks" in said


def test_a_database_that_is_not_there_is_told_with_its_place(give: Give) -> None:
    ended = give("tokens", "list", "--postgres-url", "postgresql://me:secret@127.0.0.1:1/x")
    assert ended.code == 4
    assert ended.err.startswith("headway: no PostgreSQL answers at 127.0.0.1:1 (")
    assert ended.err.endswith("; is it running, and is the URL right?\n")
    assert "secret" not in ended.err


def test_nothing_is_announced_before_it_is_known_where_to_ask(give: Give) -> None:
    ended = give("watch", TASK)
    assert ended.code == 4
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotFound("there is no task 1"), "there is no task 1; `headway list` shows those that are"),
        (
            NotFound("there is no saga 'a'"),
            "there is no saga 'a'; `headway saga list` shows those that are",
        ),
        (NotFound("there is no step 'a' in saga 'b'"), "there is no step 'a' in saga 'b'"),
        (
            NotFound("there is no saga 'a'; register it first (headway saga register)"),
            "there is no saga 'a'; register it first (headway saga register)",
        ),
        (Refused("there is no task 1"), "there is no task 1"),
    ],
)
def test_of_what_is_not_there_it_is_told_what_lists_it(error: Exception, words: str) -> None:
    assert told(error) == words


def test_a_setting_that_does_not_fit_is_named(give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_REPLICAS", "many")
    ended = give("coordinator", "--nats-url", "nats://x", "--postgres-url", "postgresql://x")
    assert ended.code == 2
    assert "HEADWAY_… variable does not fit: replicas" in ended.err


def test_nothing_running_here_exits_with_4_and_says_how_to_start(give: Give) -> None:
    ended = give("list")
    assert ended.code == 4
    assert ended.err == (
        f"headway: no `headway up` runs in {Path.cwd()}/.headway, and no address was given: start "
        "one there; or name where one keeps its data with --data or HEADWAY_DATA, or a NATS server "
        "with --nats-url or HEADWAY_NATS_URL\n"
    )


def test_the_help_documents_every_exit_code(give: Give) -> None:
    shown = give("--help").out
    for code in ("0", "1", "2", "3", "4", "130"):
        assert f" {code}  " in shown
