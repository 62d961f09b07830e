"""The command `submit`: one task, or a file of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from uuid import UUID

import typer
from headway.agents.client import Client
from headway.agents.errors import HeadwayError
from headway.agents.views import PRIORITY, SubmitReceipt, TaskStatus, TaskView
from headway.cli import completing, output, standstill, tables
from headway.cli.failures import BadInput, exit_code
from headway.cli.parsing import attributes_from, inputs_from, json_from, manifest_from
from headway.cli.tasks import exit_by_outcome
from headway.cli.terminal import Terminal, command

PANEL = "Submit"
BEFORE = "was accepted before, and is not done again:"
REFUSED_SHOWN_MAX = 5  # tasks of a file whose errors are told one by one

Attributes = Annotated[
    list[str] | None,
    typer.Option("--attribute", "-a", metavar="KEY=VALUE", help="To find it by, and for limits."),
]
Bounds = Annotated[
    str | None,
    typer.Option(metavar="FILE|JSON", help="What the task may do: agents, tools, budgets …"),
]
Priority = Annotated[
    int, typer.Option(min=0, max=9, help="9 is the most urgent; counts where something is limited.")
]


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    command(app, PANEL)(submit)


def submit(  # noqa: PLR0913, PLR0917  # each is a word of the command
    terminal: Terminal,
    saga: Annotated[str, typer.Argument(help="The saga to run.", autocompletion=completing.sagas)],
    input: Annotated[
        str | None, typer.Argument(metavar="JSON", help="Its input; `-` reads standard input.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Many inputs, one JSON value a line.")
    ] = None,
    task: Annotated[
        UUID | None, typer.Option(help="The task's id: submitting it again is harmless.")
    ] = None,
    attribute: Attributes = None,
    manifest: Bounds = None,
    priority: Priority = PRIORITY,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until it ends.")] = False,
) -> None:
    """Submit a task, or a file of tasks.

    With --wait, exits with 0 if every task succeeded, with 1 if one ended otherwise or is parked.
    """
    attributes = attributes_from(attribute)
    if file is None:
        value, bounds = json_from(input, "the input"), manifest_from(manifest)

        async def submit_it(client: Client) -> SubmitReceipt:
            with _noting_no_input(saga, input):
                return await client.submit(
                    saga,
                    value,
                    task=task,
                    attributes=attributes,
                    manifest=bounds,
                    priority=priority,
                )

        _submit_one(terminal, submit_it, wait)
    elif input is not None or task is not None or manifest is not None:
        raise BadInput("--file goes neither with an input nor with --task nor with --manifest")
    else:
        inputs = inputs_from(file)

        async def submit_all(client: Client) -> list[SubmitReceipt | HeadwayError]:
            with output.progress("submitted", len(inputs)) as done:
                return await client.submit_many(
                    saga, inputs, attributes=attributes, priority=priority, progress=done
                )

        _submit_many(terminal, submit_all, wait)


@contextmanager
def _noting_no_input(saga: str, given: str | None) -> Iterator[None]:
    """An input that does not fit because none was given is told as such."""
    try:
        yield
    except HeadwayError as error:
        if given is None and "the input does not fit" in str(error):
            error.add_note(f"none was given, as in: headway submit {saga} '{{…}}'")
        raise


def _submit_one(
    terminal: Terminal, submit_it: Callable[[Client], Awaitable[SubmitReceipt]], wait: bool
) -> None:
    async def submit_and_wait(client: Client) -> TaskView:
        receipt = await submit_it(client)
        output.narrate(f"{'submitted' if receipt.created else BEFORE} {receipt.task}")
        with going_on(
            f"task {receipt.task} goes on; look at it with: headway watch {receipt.task}"
        ):
            async with standstill.told(client, receipt.task):
                return await client.result(receipt.task)

    if not wait:
        receipt = terminal.ask(submit_it)
        if not receipt.created:
            output.narrate(f"{BEFORE} {receipt.task}")
        terminal.show(receipt, tables.receipt)
        return
    view = terminal.ask(submit_and_wait)
    terminal.show(view, tables.task)
    exit_by_outcome([view.status])


@contextmanager
def going_on(what: str) -> Iterator[None]:
    """Whoever stops waiting, by Ctrl-C, is told what goes on all the same."""
    try:
        yield
    except asyncio.CancelledError:
        output.narrate(what)
        raise


def _submit_many(
    terminal: Terminal,
    submit_all: Callable[[Client], Awaitable[list[SubmitReceipt | HeadwayError]]],
    wait: bool,
) -> None:
    async def submit_all_and_wait(client: Client) -> list[SubmitReceipt | HeadwayError]:
        answers = await submit_all(client)
        tasks = [answer.task for answer in answers if isinstance(answer, SubmitReceipt)]
        on = "the tasks go on; look at them with: headway list"
        with going_on(on), output.progress("settled", len(tasks)) as done:
            statuses.extend(await _settled(terminal, client, tasks, done))
        return answers

    statuses: list[TaskStatus] = []
    answers = terminal.ask(submit_all_and_wait if wait else submit_all)
    if not wait:
        for answer in answers:
            if isinstance(answer, SubmitReceipt):
                terminal.show(answer, tables.receipt)
    elif not terminal.as_json:
        output.data_console().print(tables.outcomes(Counter(statuses)))
    _exit_if_refused(answers)
    exit_by_outcome(statuses)


async def _settled(
    terminal: Terminal, client: Client, tasks: list[UUID], done: Callable[[int], None]
) -> list[TaskStatus]:
    """How the tasks ended, as they do; each is written at once if JSON is asked for."""
    statuses: list[TaskStatus] = []
    async for view in client.results(tasks):
        statuses.append(view.status)
        done(len(statuses))
        if terminal.as_json:
            output.write_json(view)
    return statuses


def _exit_if_refused(answers: list[SubmitReceipt | HeadwayError]) -> None:
    """Say which tasks of a file were not accepted, and end with the first one's exit code."""
    refused = {
        number: answer
        for number, answer in enumerate(answers, start=1)
        if isinstance(answer, HeadwayError)
    }
    if not refused:
        return
    for number, error in list(refused.items())[:REFUSED_SHOWN_MAX]:
        output.complain(f"task {number} of the file was not accepted: {error}")
    output.complain(f"{len(refused)} of {len(answers)} tasks were not accepted")
    raise typer.Exit(exit_code(next(iter(refused.values()))))
