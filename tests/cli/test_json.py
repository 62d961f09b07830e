"""What commands write with `--json` is what docs/json.md says of them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
from command_shell import Ended, Shell

FORMATS = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "json_formats.py"))["FORMATS"]


def check(command: str, ended: Ended, form: int = 0) -> list[Any]:
    """The documents that a command wrote, each of its documented format `form`."""
    described = FORMATS[command][form]
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert found if described.lines else len(found) == 1, ended
    for document in found:
        if isinstance(described.of, dict):
            assert document.keys() <= described.of.keys()
        else:
            model = described.of.model_validate_json(json.dumps(document))
            assert json.loads(model.model_dump_json()) == document
    return found


@pytest.fixture
def shown(shell: Shell) -> Any:
    """Gives a command with --json, and checks what it writes."""

    def show(command: str, *arguments: str, form: int = 0) -> list[Any]:
        return check(command, shell.run_here(*command.split(), *arguments, "--json"), form)

    return show


def test_tasks(shell: Shell, shown: Any) -> None:
    [receipt] = shown("submit", "order", '{"fate": "stuck"}')
    task = receipt["task"]
    shown("watch", task)
    shown("status", task)
    shown("list", "--limit", "2")
    shown("history", task)
    shown("parked")
    shown("retry", task)
    shown("audit", task)
    shown("watch", task)
    shown("settle", task, "notify", "happened", "--result", "1")
    shown("fork", task, "--from", "notify")
    shown("batch", "cancel", "--status", "parked", "--saga", "order", "--dry-run")
    (shell.folder / "two.jsonl").write_text('{"fate": "fine"}\n{"fate": "fine"}\n')
    shown("submit", "order", "--file", "two.jsonl", form=2)
    shown("submit", "order", "--file", "two.jsonl", "--wait", form=3)
    shown("submit", "order", '{"fate": "fine"}', "--wait", form=1)


def test_people(shown: Any) -> None:
    [receipt] = shown("submit", "refund", '{"amount": 50}')
    task = receipt["task"]
    shown("approve", task, "agree")
    shown("signal", task, "paid", "1")
    shown("watch", task)
    shown("journal", task, "consult")
    [other] = shown("submit", "refund", '{"amount": 50}')
    shown("reject", other["task"], "agree")
    [third] = shown("submit", "waiting")
    shown("cancel", third["task"])


def test_the_system(shown: Any) -> None:
    for command in ("top", "agents", "saga list", "limits list", "webhooks list", "console"):
        shown(command)
    shown("saga show", "order")
    shown("dead list")
    shown("doctor")
    shown("version")
    shown("agents pause", "absent")
    shown("agents resume", "absent")
    shown("limits set", "agent", "absent", "--rate", "5/s")
    shown("limits remove", "agent", "absent")
    shown("drill", "--list", form=1)
    shown("conform", "absent", "--list", form=1)
