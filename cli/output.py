"""Where a command's words go: data to standard output, narration to standard error.

With `--json` the data are JSON, one document a line; otherwise they are tables for people. No
text from outside reaches a terminal with control characters in it.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import orjson
from pydantic import BaseModel
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

M = TypeVar("M", bound=BaseModel)

WIDTH_WITHOUT_TERMINAL = 400  # columns of a table in a pipe or file: wide, so that no id is cut


def data_console() -> Console:
    width = None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL
    return Console(width=width, markup=False, emoji=False, highlight=False)


def is_for_a_person() -> bool:
    """Whether standard output is a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def narration_console() -> Console:
    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def show(model: M, render: Callable[[M], RenderableType], *, as_json: bool) -> None:
    """Write one answer to standard output."""
    if as_json:
        write_json(model)
    else:
        data_console().print(render(model))


def write_json(value: BaseModel | dict[str, object]) -> None:
    """Write one JSON document on one line, at once."""
    plain = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
    sys.stdout.buffer.write(orjson.dumps(plain, option=orjson.OPT_APPEND_NEWLINE))
    sys.stdout.buffer.flush()


def narrate(text: str) -> None:
    """Tell the person at the terminal what is going on."""
    narration_console().print(printable(text), soft_wrap=True)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on standard error; the value given takes how many of `total` are done."""
    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[clock]}"),
    )
    with Progress(*columns, console=narration_console()) as bar:
        task = bar.add_task(what, total=total, clock="left")

        def tell(done: int) -> None:
            bar.update(task, completed=done, clock="in all" if done >= total else "left")

        yield tell


class _Rate(ProgressColumn):
    """How many are done a second: lately or, once all are, on average."""

    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")


def complain(text: str) -> None:
    """Say what went wrong and what to do, after the name of the program."""
    narrate(f"headway: {text}")


class _EachOnce(logging.Filter):
    """Lets each text pass once: one that tries again says the same again."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        is_new = text not in self._said
        self._said.add(text)
        return is_new


def narrate_warnings() -> None:
    """Tell what the client warns of while a command waits, each once."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("headway: %(message)s"))
    handler.addFilter(_EachOnce())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def printable(text: str) -> str:
    """`text` on one line, with every control character replaced."""
    return "".join(
        character if character.isprintable() else " " if character.isspace() else "\ufffd"
        for character in text
    )
