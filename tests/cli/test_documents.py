"""The commands for documents, as a person gives them, and what they show."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO
from uuid import UUID

import pytest
from command_shell import Ended, Shell
from headway.agents.document_views import (
    CollectionView,
    Document,
    DocumentHistory,
    DocumentPage,
    DocumentRow,
    DocumentVersion,
)
from headway.cli import tables
from rich.console import Console, RenderableType

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
DIGEST = "0123456789abcdef" * 4


def text_of(renderable: RenderableType) -> str:
    console = Console(file=StringIO(), width=200, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def refused(ended: Ended, code: int) -> str:
    """What an expected error says, on its one line."""
    assert (ended.code, ended.out) == (code, "")
    [line] = ended.err.splitlines()
    return line.removeprefix("headway: ")


def test_documents_are_written_and_read_under_the_rules_of_their_collection(shell: Shell) -> None:
    stages = {"field": "status", "initial": ["new"], "legal": {"new": ["paid"]}}
    (shell.folder / "stages.json").write_text(json.dumps(stages))
    (shell.folder / "schema.json").write_text('{"required": ["status"]}')
    rules = ("--schema", "schema.json", "--transitions", "stages.json")
    registered = shell.run_here("document", "collection", "orders", *rules, "--json")
    assert (registered.code, registered.json["version"]) == (0, 1), registered

    def put(body: str, *options: str) -> Ended:
        return shell.run_here("document", "put", "orders", "A-17", body, *options, "--json")

    assert put('{"status": "new"}', "--expected", "0").json["version"] == 1
    assert refused(put('{"status": "paid"}', "--expected", "4"), 3) == (
        "document 'A-17' of collection 'orders' is at version 1, not 4: read it again"
    )
    assert refused(put('{"status": "lost"}'), 3) == (
        "document 'A-17' of collection 'orders': status may not go from 'new' to 'lost'; "
        "legal from there is 'paid'"
    )
    assert refused(put("{}"), 2) == (
        "document 'A-17' does not fit collection 'orders': body: \"status\" is a required property"
    )
    deleted = shell.run_here("document", "delete", "orders", "A-17", "--expected", "1")
    assert (deleted.code, deleted.out) == (0, "version 2\n")
    before = shell.run_here("document", "get", "orders", "A-17", "--version", "1", "--json").json
    assert before["body"] == {"status": "new"}
    assert shell.run_here("document", "list", "orders", "--json").json["documents"] == []
    history = shell.run_here("document", "history", "orders", "A-17", "--json").json["versions"]
    assert [version["deleted"] for version in history] == [False, True]
    assert "@" in history[0]["by"]


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("no.json", None, "cannot read no.json: No such file or directory"),
        ("bad.json", "{", "bad.json is not JSON: unexpected end of data: line 1 column 2 (char 1)"),
        ("odd.json", '{"field": "s"}', "odd.json: initial: Field required; legal: Field required"),
    ],
)
def test_a_file_of_rules_that_cannot_be_used_is_named(
    elsewhere: Shell, file: str, content: str | None, words: str
) -> None:
    if content is not None:
        (elsewhere.folder / file).write_text(content)
    ended = elsewhere.run_here("document", "collection", "orders", "--transitions", file)
    assert refused(ended, 2) == words


def test_a_document_is_shown_with_its_version_and_nothing_that_harms_a_terminal() -> None:
    body = {"note": "\x1b[31mred", "lines": [1]}
    shown = Document(collection="c", key="a\x1b", version=3, body=body, digest=DIGEST, at=AT)
    text = text_of(tables.document(shown))
    assert text.startswith("a�  version 3  since 2026-01-02 03:04:05Z  digest 0123456789ab\n{\n")
    assert '  "lines": [\n' in text
    assert "\x1b" not in text


def test_a_page_of_documents_says_how_to_get_the_next() -> None:
    rows = [DocumentRow(key="it's", version=2, digest=DIGEST, at=AT)]
    shown = text_of(tables.documents(DocumentPage(documents=rows, after="it's")))
    assert [line.rstrip() for line in shown.splitlines()] == [
        "key   version  since                 digest",
        "it's        2  2026-01-02 03:04:05Z  0123456789ab",
        """more: --after 'it'"'"'s'""",
    ]
    assert "more" not in text_of(tables.documents(DocumentPage(documents=rows)))


def test_versions_are_shown_with_who_wrote_them() -> None:
    found = DocumentHistory(
        versions=[
            DocumentVersion(version=1, body={"n": 1}, digest=DIGEST, at=AT, by="ann"),
            DocumentVersion(version=2, deleted=True, digest="", at=AT, task=TASK, step="tidy"),
        ]
    )
    first, second = text_of(tables.versions(found)).splitlines()[1:]
    assert first.split() == ["1", "2026-01-02", "03:04:05Z", "ann", '{"n":1}']
    assert second.split()[3:] == ["task", str(TASK), "step", "tidy", "deleted"]


def test_a_collection_is_shown_with_the_version_of_its_rules() -> None:
    view = CollectionView(name="orders", version=2, registered_at=AT)
    assert text_of(tables.collection(view)) == (
        "orders: rules of version 2, from 2026-01-02 03:04:05Z\n"
    )
