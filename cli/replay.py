"""The command `replay`: a task's record against the code of today."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import orjson
import typer
from headway.agents import runner
from headway.agents.export_views import TaskRecord
from headway.agents.messages import describe
from headway.agents.replay_views import DivergenceView, ReplayReport, Rerun
from headway.agents.reruns import rerun
from headway.cli.extras import load
from headway.cli.failures import BadInput, Exit
from headway.cli.sagas import definition_from
from headway.cli.tasks import PANEL
from headway.cli.terminal import Terminal, command
from headway.cli.wording import DETAIL_CHARACTERS_MAX, cut, table_of
from pydantic import ValidationError
from rich.console import Group, RenderableType
from rich.text import Text

WORK = "headway.coordinator.retracing"


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL, flags=("json",))(replay)


def replay(
    terminal: Terminal,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What `headway history TASK --json` wrote.")
    ],
    saga: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE|MODULE:SAGA", help="A definition of today, instead of the recorded one."
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODULE:AGENT",
            help="Run its handlers over the recorded journals, too; no tool is run.",
        ),
    ] = None,
) -> None:
    """Find out whether today's code makes of a task what was made of it.

    The machine decides the recorded history again, and handlers make their recorded calls again.
    Exits with 1 at the first event, or call, that differs. Nothing is asked or changed.
    """
    record = record_in(file)
    definition = None if saga is None else definition_from(saga)
    report: ReplayReport = load(WORK, "replay").replayed(record, definition)
    if agent:
        report = _with_handlers(report, record, agent)
    terminal.show(report, replayed)
    if not report.reproduced:
        raise typer.Exit(Exit.OTHERWISE)


def record_in(file: Path) -> TaskRecord:
    """The record that a file holds; BadInput says why it holds none."""
    try:
        return TaskRecord.model_validate_json(file.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {file}: {error.strerror}") from None
    except ValidationError as error:
        raise BadInput(
            f"{file} is no record of a task that this version reads: {describe(error)}; write one "
            "with: headway history TASK --json"
        ) from None


def _with_handlers(report: ReplayReport, record: TaskRecord, named: Sequence[str]) -> ReplayReport:
    found: list[Rerun] = []
    for each in named:
        ours = runner.load(each)
        reruns = asyncio.run(rerun(record, ours))
        if not reruns:
            raise BadInput(f"task {record.task} has no journal of agent {ours.name!r}")
        found += reruns
    same = not any(each.difference for each in found)
    changes = {"handlers": found, "reproduced": report.reproduced and same}
    return report.model_copy(update=changes)


def replayed(report: ReplayReport) -> RenderableType:
    """Whether all was reproduced, and the first thing that was not."""
    parts: list[RenderableType] = [_headline(report)]
    if report.divergence is not None:
        parts += _divergence(report.divergence)
    if report.handlers:
        table = table_of("handler", "step", "phase", "calls", "difference")
        for each in report.handlers:
            table.add_row(
                Text(each.handler),
                Text(each.step),
                Text(each.phase),
                Text(str(each.calls), justify="right"),
                _verdict(each),
            )
        parts.append(table)
    return Group(*parts)


def _headline(report: ReplayReport) -> Text:
    line = Text(f"{report.task}  {report.against}  ")
    if report.divergence is None:
        line.append("decided as it was", style="green")
    else:
        line.append("decided otherwise", style="bold red")
    line.append(f"  {report.events} events in {report.decisions} steps of the machine")
    return line


def _divergence(found: DivergenceView) -> list[RenderableType]:
    return [
        Text(f"event {found.version} was: {_event(found.recorded)}"),
        Text(f"{' ' * len(f'event {found.version}')} now: {_event(found.decided)}"),
    ]


def _event(fields: dict[str, object] | None) -> str:
    if fields is None:
        return "nothing"
    rest = {name: value for name, value in fields.items() if name != "type"}
    return cut(f"{fields['type']} {orjson.dumps(rest).decode()}", DETAIL_CHARACTERS_MAX)


def _verdict(found: Rerun) -> Text:
    if found.skipped:
        return Text(found.skipped, style="dim")
    if found.difference:
        return Text(cut(found.difference, 2 * DETAIL_CHARACTERS_MAX), style="bold red")
    return Text("none", style="green")
