"""What is documented of `--json` is what the models say, for every command that there is."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import click
import typer
from headway.cli.main import build

DOCS = Path(__file__).parents[2] / "docs"
FORMATS = runpy.run_path(str(DOCS / "json_formats.py"))


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[str]:
    inner = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield " ".join(path)
    for name, each in (inner or {}).items():
        yield from commands(each, (*path, name))


def test_the_documents_are_as_the_models_are():
    written = {name: (DOCS / name).read_text("utf-8") for name in FORMATS["files"]()}
    assert written == FORMATS["files"](), "write them again: .venv/bin/python docs/json_formats.py"


def test_every_command_has_its_format_or_a_reason_for_none():
    there = set(commands(typer.main.get_command(build())))
    assert {*FORMATS["FORMATS"], *FORMATS["SILENT"]} == there
