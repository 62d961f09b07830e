"""What is drawn in a terminal while it goes on: `watch`, `top`, progress; and completion."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from command_shell import Shell
from terminals import HEADWAY, at_terminal


def submit(shell: Shell, saga: str, value: object, *flags: str) -> str:
    ended = shell.run_here("submit", saga, json.dumps(value), "--json", *flags)
    assert ended.code in (0, 1), ended
    return str(ended.json["task"])


def test_a_task_is_watched_as_a_live_timeline_in_a_terminal(shell: Shell) -> None:
    task = submit(shell, "waiting", None)
    with at_terminal(shell.folder, "watch", task) as screen:
        screen.until("waiting v1", "scheduled", "with absent", "━")
        shell.run_here("cancel", task, "-r", "no longer wanted", "--by", "ada")
        screen.until("compensated", "cancel", "by ada", "no longer wanted")
        assert screen.end() == 1


def test_the_last_picture_of_a_watched_task_stays_and_tells_its_end(shell: Shell) -> None:
    task = submit(shell, "order", {"fate": "stuck"}, "--wait")
    with at_terminal(shell.folder, "watch", task) as screen:
        assert screen.end() == 1
        last = screen.drawn
    assert "parked" in last
    assert "RuntimeError" in last
    lines = [line for line in last.splitlines() if line.startswith("notify")]
    assert lines[-1].split()[1:3] == ["unknown", "1"]


def test_without_a_terminal_watch_writes_a_line_a_change(shell: Shell) -> None:
    task = submit(shell, "order", {"fate": "fine"}, "--wait")
    ended = shell.run("watch", task)
    assert ended.code == 0
    [line] = ended.out.splitlines()
    assert "succeeded" in line
    assert "━" not in line


def test_top_is_live_in_a_terminal_and_q_leaves_it(shell: Shell) -> None:
    with at_terminal(shell.folder, "top") as screen:
        screen.until("last minute:", "failures", "95% within", "shop", "q leaves")
        task = submit(shell, "order", {"fate": "fine"}, "--wait")
        screen.until(task)
        screen.press("q")
        assert screen.end() == 0


def test_top_is_shown_once_where_there_is_no_terminal(shell: Shell) -> None:
    task = submit(shell, "order", {"fate": "fine"}, "--wait")
    ended = shell.run("top")
    assert (ended.code, ended.err) == (0, "")
    assert "last minute:" in ended.out
    assert task in ended.out
    assert "q leaves" not in ended.out
    recent = shell.run("top", "--once", "--json").json["recent"]
    assert task in [row["task"] for row in recent]


def test_a_file_of_tasks_is_submitted_with_a_rate_and_the_time_left(shell: Shell) -> None:
    (shell.folder / "many.jsonl").write_text('{"fate": "fine"}\n' * 300)
    with at_terminal(shell.folder, "submit", "order", "--file", "many.jsonl", "--wait") as screen:
        assert screen.end() == 0
        assert "submitted" in screen.drawn
        assert "300/300" in screen.drawn
        assert "/s" in screen.drawn
        assert "in all" in screen.drawn


def completed(folder: Path, home: Path, line: str) -> list[str]:
    """What bash offers for the last word of `line`, after `headway --install-completion`."""
    script = f"""
        source {home}/.bashrc
        COMP_WORDS=({line}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        [[ "{line}" == *" " ]] && COMP_CWORD=${{#COMP_WORDS[@]}} && COMP_WORDS+=("")
        $(complete -p headway | sed -E 's/.* -F ([^ ]+).*/\\1/') headway
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    ended = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env={**os.environ, "HOME": str(home), "PATH": f"{HEADWAY.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return ended.stdout.split()


@pytest.fixture(scope="module")
def home(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory in which bash was told how to complete `headway`."""
    home = tmp_path_factory.mktemp("home")
    (home / ".bashrc").touch()
    subprocess.run(
        ["bash", "-c", f"{HEADWAY} --install-completion; true"],
        cwd=shell.folder,
        env={**os.environ, "HOME": str(home), "SHELL": "/bin/bash"},
        check=True,
        capture_output=True,
        timeout=60,
    )
    return home


def test_bash_completes_commands_statuses_and_what_coordinators_know(
    shell: Shell, home: Path
) -> None:
    task = submit(shell, "order", {"fate": "fine"}, "--wait")
    lines = {
        "headway sub": "submit",
        "headway list --status suc": "succeeded",
        "headway submit ord": "order",
        "headway agents pause sh": "shop",
        f"headway status {task[:18]}": task,
    }
    offered = {line: completed(shell.folder, home, line) for line in lines}
    assert offered == {line: [word] for line, word in lines.items()}


def test_nothing_is_offered_or_said_where_nobody_answers(home: Path, tmp_path: Path) -> None:
    assert completed(tmp_path, home, "headway submit ord") == []
