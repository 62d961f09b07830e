"""Commands about documents, the state that agents share: get, put, delete, list, history; and their
collections."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from headway.agents.client import Client
from headway.agents.document_views import DocumentHistory, Transitions
from headway.agents.documents import Documents
from headway.agents.errors import InvalidInput
from headway.agents.messages import describe
from headway.agents.views import PAGE_LIMIT_MAX
from headway.cli import tables
from headway.cli.interventions import person
from headway.cli.parsing import json_from, json_in
from headway.cli.terminal import Terminal, command
from pydantic import ValidationError

PANEL = "Documents"
PAGE = 50

CollectionName = Annotated[str, typer.Argument(metavar="COLLECTION", help="The collection.")]
Key = Annotated[str, typer.Argument(metavar="KEY", help="The document's key.")]
Expected = Annotated[
    int | None,
    typer.Option(min=0, help="Only if this is its version; 0: only if it is not there."),
]


def add_to(app: typer.Typer) -> None:
    """Register this module's commands as the group `document`."""
    group = typer.Typer(no_args_is_help=True, help="Look at the state that agents share.")
    command(group, PANEL)(get)
    command(group, PANEL)(put)
    command(group, PANEL)(delete)
    command(group, PANEL, name="list")(list_documents)
    command(group, PANEL)(history)
    command(group, PANEL)(collection)
    app.add_typer(group, name="document", rich_help_panel=PANEL)


def get(
    terminal: Terminal,
    collection: CollectionName,
    key: Key,
    version: Annotated[int | None, typer.Option(min=1, help="As it was at this version.")] = None,
) -> None:
    """Show a document as it is, or as it was."""
    document = terminal.ask(lambda client: _of(client).get(collection, key, version=version))
    terminal.show(document, tables.document)


def put(
    terminal: Terminal,
    collection: CollectionName,
    key: Key,
    body: Annotated[str, typer.Argument(metavar="JSON", help="`-` reads standard input.")],
    expected: Expected = None,
) -> None:
    """Write the next version of a document, or its first."""
    value = json_from(body, "the document")
    written = terminal.ask(
        lambda client: _of(client).put(collection, key, value, expected=expected)
    )
    terminal.show(written, tables.written)


def delete(
    terminal: Terminal, collection: CollectionName, key: Key, expected: Expected = None
) -> None:
    """Delete a document; its history stays."""
    written = terminal.ask(lambda client: _of(client).delete(collection, key, expected=expected))
    terminal.show(written, tables.written)


def list_documents(
    terminal: Terminal,
    collection: CollectionName,
    prefix: Annotated[str, typer.Option(help="Only keys that begin like this.")] = "",
    after: Annotated[str, typer.Option(help="The next page, as the last one named it.")] = "",
    limit: Annotated[
        int, typer.Option(min=1, max=PAGE_LIMIT_MAX, help="Documents on a page.")
    ] = PAGE,
) -> None:
    """List the documents of a collection by their keys."""
    page = terminal.ask(
        lambda client: _of(client).list(collection, prefix, after=after, limit=limit)
    )
    terminal.show(page, tables.documents)


def history(terminal: Terminal, collection: CollectionName, key: Key) -> None:
    """Show every version of a document, and who wrote it."""
    versions = terminal.ask(lambda client: _of(client).history(collection, key))
    terminal.show(DocumentHistory(versions=list(versions)), tables.versions)


def collection(
    terminal: Terminal,
    name: CollectionName,
    schema: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A JSON Schema that documents must fit.")
    ] = None,
    transitions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Which states may follow which, as JSON: "
            '{"field": "status", "initial": ["new"], "legal": {"new": ["paid"]}}.',
        ),
    ] = None,
) -> None:
    """Register a collection, or give it other rules for what is written from now on.

    Without --schema and --transitions any JSON may be written.
    """
    rules = None if schema is None else json_in(schema)
    stages = None if transitions is None else _transitions(transitions, json_in(transitions))
    view = terminal.ask(
        lambda client: _of(client).collection(name, schema=rules, transitions=stages)
    )
    terminal.show(view, tables.collection)


def _of(client: Client) -> Documents:
    """The client's documents, written in the name of whoever types."""
    return Documents(client.connection, timeout=client.timeout, by=person())


def _transitions(path: Path, value: Any) -> Transitions:
    try:
        return Transitions.model_validate(value)
    except ValidationError as error:
        raise InvalidInput(f"{path}: {describe(error)}") from error
