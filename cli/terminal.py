"""What all commands share: the flags for output and addresses, and asking the coordinator.

A command is a function whose first parameter is its `Terminal`. `command()` gives it the shared
flags, which may stand before or after the command's name.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from headway.agents.client import Client
from headway.agents.codec import Keyring
from headway.agents.errors import NotFound
from headway.cli import output
from headway.cli.addresses import (
    DATA,
    DEFAULT_DATA,
    NATS_URL,
    POSTGRES_URL,
    Addresses,
    Given,
    Who,
    find,
)
from headway.cli.suggesting import note_sagas
from pydantic import BaseModel
from rich.console import RenderableType

TOKEN = "HEADWAY_TOKEN"  # noqa: S105 - the variable's name

PAYLOAD_KEYS = "HEADWAY_PAYLOAD_KEYS"

ANSWER_TIMEOUT_S = 10.0  # long enough for a coordinator that is being started again

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
F = TypeVar("F", bound=Callable[..., None])

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]
NatsUrl = Annotated[
    str | None,
    typer.Option(help=f"NATS servers, separated by commas; else {NATS_URL}.", metavar="URL"),
]
PostgresUrl = Annotated[
    str | None,
    typer.Option(help=f"The PostgreSQL database; else {POSTGRES_URL}.", metavar="URL"),
]
Data = Annotated[
    Path | None,
    typer.Option(
        help=f"The directory of a `headway up`; else {DATA}, else {DEFAULT_DATA}.",
        metavar="DIR",
    ),
]


@dataclass(frozen=True, slots=True)
class Terminal:
    """The flags of one command, and what it does with them."""

    as_json: bool = False
    given: Given = Given()

    def addresses(self, postgres_url: str | None = None, who: Who = "people") -> Addresses:
        """Where the servers are; Unavailable says how to give addresses if there are none."""
        return find(replace(self.given, postgres_url=postgres_url), os.environ, who)

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Connect, put one question to the coordinator, and return the answer."""

        async def ask() -> T:
            url = self.addresses().nats_url
            async with await Client.connect(
                url,
                name="headway-cli",
                timeout=ANSWER_TIMEOUT_S,
                token=token(),
                keyring=payload_keys(),
            ) as client:
                try:
                    return await question(client)
                except NotFound as error:
                    await note_sagas(client, error)
                    raise

        output.narrate_warnings()
        return asyncio.run(ask())

    def show(self, model: M, render: Callable[[M], RenderableType]) -> None:
        output.show(model, render, as_json=self.as_json)


def token() -> str:
    """What coordinators are shown; empty if there is none."""
    return os.environ.get(TOKEN, "").strip()


def payload_keys() -> Keyring | None:
    """What payloads are encrypted with; InvalidInput if it cannot be read."""
    return Keyring.parse(os.environ.get(PAYLOAD_KEYS, ""))


def shared_flags(
    context: typer.Context,
    json: AsJson = False,
    nats_url: NatsUrl = None,
    data: Data = None,
) -> None:
    """Take the shared flags that stand before a command's name."""
    context.obj = Terminal(json, Given(nats_url, data))


def command(
    app: typer.Typer,
    panel: str,
    *,
    name: str | None = None,
    flags: Sequence[str] = ("json", "nats_url", "data"),
) -> Callable[[F], F]:
    """Register a function of a Terminal as a command that takes the shared flags, too.

    Returns the function unchanged.
    """

    def register(function: F) -> F:
        app.command(name, rich_help_panel=panel)(with_flags(function, flags))
        return function

    return register


def with_flags(function: Callable[..., None], flags: Sequence[str]) -> Callable[..., None]:
    """A function of a Terminal as typer calls it: with the shared flags `flags`. As the callback of
    a group it stands for the group without a subcommand."""
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    shared = inspect.signature(shared_flags, eval_str=True).parameters
    taken = [shared[flag].replace(kind=_KEYWORD) for flag in ("context", *flags)]

    @functools.wraps(function)
    def run(
        context: typer.Context,
        json: bool = False,
        nats_url: str | None = None,
        data: Path | None = None,
        **own_parameters: Any,
    ) -> None:
        if context.invoked_subcommand is None:
            function(_terminal(context, json, nats_url, data), **own_parameters)

    run.__signature__ = inspect.Signature([*own, *taken])  # type: ignore[attr-defined]
    return run


_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _terminal(
    context: typer.Context, as_json: bool, nats_url: str | None, data: Path | None
) -> Terminal:
    before: Terminal = context.find_root().obj
    given = Given(nats_url or before.given.nats_url, data or before.given.data)
    return Terminal(as_json or before.as_json, given)
