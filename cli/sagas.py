"""Commands about saga definitions: register, list, show."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated

import typer
from headway.agents import loading
from headway.agents.catalogue_views import SagaList, SagaView
from headway.agents.client import Client
from headway.agents.errors import HeadwayError, Refused
from headway.cli import plans
from headway.cli.failures import BadInput
from headway.cli.terminal import Terminal, command
from headway.sagas.builder import Saga
from headway.sagas.definition import Definition
from headway.sagas.errors import DefinitionError, SagaError

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
    definitions = _definitions(sources)

    async def register_all(client: Client) -> SagaList:
        views: list[SagaView] = []
        for one in definitions:
            try:
                views.append(await client.register(one.to_json()))
            except Refused as error:
                _note(error, [f"{view.name} v{view.version}" for view in views], len(definitions))
                raise
        return SagaList(sagas=views)

    terminal.show(terminal.ask(register_all), plans.sagas)


def _definitions(sources: list[str]) -> list[Definition]:
    """All of them, or the error of the first that cannot be."""
    try:
        return [definition_from(source) for source in sources]
    except (HeadwayError, SagaError) as error:
        _note(error, [], len(sources))
        raise


def _note(error: Exception, registered: list[str], of: int) -> None:
    """Have told with `error` which of several were registered all the same."""
    if of > 1:
        error.add_note(f"of these {of}, {', '.join(registered) or 'none'} was registered")


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
    return _from_module(source)


def _from_file(path: Path) -> Definition:
    try:
        return Definition.from_json(path.read_bytes())
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from None
    except DefinitionError as error:
        raise BadInput(f"{path}: {error}") from None


def _from_module(source: str) -> Definition:
    module_name, name = loading.split(source, "neither a file nor MODULE:NAME", _sagas)
    module = loading.module_of(module_name, source)
    found = getattr(module, name, None)
    if isinstance(found, FunctionType) and not inspect.signature(found).parameters:
        with loading.told_of(f"{source} cannot be made"):
            found = found()
    match found:
        case Definition():
            return found
        case Saga():
            return found.define()
        case None:
            sagas = _sagas(module)
            there = f"its sagas are: {', '.join(sagas)}" if sagas else "it has no sagas"
            raise BadInput(loading.lacks(module, name, "nothing", there))
        case _:
            raise BadInput(f"{source} is not a Saga, nor a function that makes one")


def _sagas(module: ModuleType) -> list[str]:
    """The names of its sagas, and of the functions that say that they make one."""
    return sorted(name for name, value in vars(module).items() if _is_saga(value))


def _is_saga(value: object) -> bool:
    if isinstance(value, FunctionType):
        makes = value.__annotations__.get("return") in {Saga, Definition, "Saga", "Definition"}
        return makes and not inspect.signature(value).parameters
    return isinstance(value, (Saga, Definition))
