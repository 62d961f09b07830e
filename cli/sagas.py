"""Commands about saga definitions: register, list, show."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path
from types import FunctionType
from typing import Annotated

import typer
from headway.agents.catalogue_views import SagaList
from headway.agents.client import Client
from headway.cli import plans
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal, command
from headway.sagas.builder import Saga
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError

PANEL = "Sagas"


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `saga`."""
    group = typer.Typer(no_args_is_help=True, help="Register saga definitions and look at them.")
    command(group, PANEL)(register)
    command(group, PANEL, name="list")(list_sagas)
    command(group, PANEL)(show)
    app.add_typer(group, name="saga", rich_help_panel=PANEL)


def register(
    terminal: Terminal,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|MODULE:NAME...",
            help="A JSON file, or in Python a Saga or a function that makes one.",
        ),
    ],
) -> None:
    """Register saga definitions.

    The same definition may be registered again; another one under the same version is refused.
    """
    definitions = [definition_from(source) for source in sources]

    async def register_all(client: Client) -> SagaList:
        return SagaList(sagas=[await client.register(one.to_json()) for one in definitions])

    terminal.show(terminal.ask(register_all), plans.sagas)


def list_sagas(terminal: Terminal) -> None:
    """List the registered definitions, all versions of each."""
    terminal.show(terminal.ask(lambda client: client.sagas()), plans.sagas)


def show(
    terminal: Terminal,
    name: Annotated[str, typer.Argument(help="The saga's name.")],
    version: Annotated[int | None, typer.Option(help="The newest, if not given.")] = None,
) -> None:
    """Show a definition: its steps, their order and policies."""
    terminal.show(terminal.ask(lambda client: client.saga(name, version)), plans.saga)


def definition_from(source: str) -> Definition:
    """The definition in a JSON file, or that of the Saga named by MODULE:NAME."""
    path = Path(source)
    if path.suffix == ".py":
        raise BadInput(f"{source} is not JSON; name the saga in it as {path.stem}:NAME")
    if path.is_file() or path.suffix == ".json":
        return _from_file(path)
    module, colon, name = source.partition(":")
    if not colon:
        raise BadInput(f"{source!r} is neither a file nor MODULE:NAME")
    return _from_module(module, name)


def _from_file(path: Path) -> Definition:
    try:
        return Definition.from_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except DefinitionError as error:
        raise BadInput(f"{path}: {error}") from None


def _from_module(module: str, name: str) -> Definition:
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise BadInput(f"there is no module {error.name!r} here, so no {module}:{name}") from None
    if isinstance(found, FunctionType) and not inspect.signature(found).parameters:
        found = found()
    match found:
        case Definition():
            return found
        case Saga():
            return found.define()
        case _:
            raise BadInput(f"{module}:{name} is not a Saga, nor a function that makes one")
