"""agents/asyncapi.yaml and the models: the parts of it that are made from them.

`PYTHONPATH=tests python -m languages.contract` writes those parts again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import yaml
from headway.agents.alive import Held
from headway.agents.catalogue_views import Presence
from headway.agents.messages import Command, Event
from headway.agents.views import Problem
from headway.coordinator.command_keys import CommandKeys
from headway.coordinator.services import Parts, services
from headway.coordinator.serving import Offer, Typed
from pydantic import TypeAdapter

FILE = Path(__file__).parents[2] / "agents" / "asyncapi.yaml"
MODELS: dict[str, Any] = {
    "Command": Command,
    "Event": Event,
    "Held": Held,
    "Presence": Presence,
    "Problem": Problem,
}
"""What is sent without being asked for."""

DEMANDED = {"key", "claim"}
"""Operations that an agent has to ask for; the others are optional."""

TASK = "01890a5d-ac96-774b-bcce-b302099a8057"
PLACE = {"task": TASK, "step": "charge", "phase": "action"}
DIGEST = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
AT = "2023-11-14T22:13:20Z"
DOCUMENT = {"collection": "orders", "key": "A-17"}
OPENED = {"attempt": 1, "epoch": 0}
INVOCATION = "5a1de0a8-0a4b-5a3c-8f0e-36f6a8b0a0a1"
ENTRY = {"seq": 1, "epoch": 1, "at": AT, "kind": "intent", "key": "0/ask", "tool": "ask"}


class Told(NamedTuple):
    """An operation in words, with an example of its request and of its answer."""

    summary: str
    request: dict[str, Any]
    reply: dict[str, Any]


TOLD: dict[str, Told] = {
    "key": Told(
        "The key that the agent's commands are signed with.",
        {},
        {"key": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "paced": False},
    ),
    "claim": Told(
        "May this command be begun, and when?",
        {**PLACE, **OPENED, "delivery": 2, "worker": "host-17"},
        {"granted": True, "epoch": 1},
    ),
    "journal.open": Told(
        "Take an operation's journal, and read what is in it.",
        {**PLACE, **OPENED, "worker": "host-17"},
        {"epoch": 1, "entries": [ENTRY]},
    ),
    "journal.append": Told(
        "Write entries into a journal: an intent before a tool is called, how it ended after it.",
        {**PLACE, "epoch": 1, "seq": 1, "entries": [{"kind": "note", "data": "looked it up"}]},
        {"seq": 1},
    ),
    "journal.read": Told(
        "Further pages of a journal.", {**PLACE, "after": 500}, {"entries": [ENTRY]}
    ),
    "gate.request": Told(
        "A one-time token for a sensitive call; a person may have to approve it first.",
        {
            **PLACE,
            **OPENED,
            "journal_epoch": 1,
            "invocation": INVOCATION,
            "key": "0/pay",
            "tool": "pay",
            "arguments_digest": DIGEST,
        },
        {"status": "waiting", "invocation": INVOCATION},
    ),
    "gate.redeem": Told(
        "Use such a token, right before the call.",
        {
            "token": "eyJhbGciOiJFZERTQSJ9.e30.c2ln",
            "tool": "pay",
            "arguments_digest": DIGEST,
            "use": INVOCATION,
        },
        {"redeemed_at": AT},
    ),
    "gate.keys": Told(
        "The public keys that such tokens are checked with.",
        {},
        {"keys": [{"kid": "k1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]},
    ),
    "document.collection": Told(
        "Register a collection of documents.",
        {"name": "orders"},
        {"name": "orders", "version": 1, "registered_at": AT},
    ),
    "document.get": Told(
        "A document as it is, or was.",
        DOCUMENT,
        {**DOCUMENT, "version": 3, "body": {"n": 1}, "digest": DIGEST, "at": AT},
    ),
    "document.put": Told(
        "The next version of a document.",
        {**DOCUMENT, "expected": 3, "body": {"n": 2}},
        {"written": {"version": 4, "digest": DIGEST, "at": AT}},
    ),
    "document.delete": Told(
        "Take a document away.",
        {**DOCUMENT, "expected": 4},
        {
            "conflict": {
                "current_version": 5,
                "current_digest": DIGEST,
                "detail": "version 5 is the newest",
            }
        },
    ),
    "document.list": Told(
        "The keys of a collection.",
        {"collection": "orders", "prefix": "A-"},
        {"documents": [{"key": "A-17", "version": 3, "digest": DIGEST, "at": AT}]},
    ),
    "document.history": Told(
        "All versions of a document.",
        DOCUMENT,
        {"versions": [{"version": 1, "body": {"n": 1}, "digest": DIGEST, "at": AT}]},
    ),
    "document.changes": Told(
        "What changed in a collection.",
        {"collection": "orders", "after": 16},
        {
            "changes": [{**DOCUMENT, "version": 3, "revision": 17, "digest": DIGEST, "at": AT}],
            "newest": 17,
        },
    ),
}


def offered() -> Offer:
    """All operations, of a coordinator that is not there."""
    parts = MagicMock(spec=Parts)
    parts.catalogue.operations.return_value = {}
    parts.admission.operations.return_value = {}
    parts.command_keys = CommandKeys(MagicMock(), MagicMock())
    return services(parts)


def written(text: str) -> str:
    """The document, with all that is made from the models as they are now."""
    operations = offered().agents
    blocks: dict[str, Any] = {
        "channels": dict(_channels(operations)),
        "operations": dict(_operations(operations)),
        "messages": dict(_messages(operations)),
        "schemas": _schemas(operations),
    }
    for name, block in blocks.items():
        text = _replaced(text, name, block)
    return text


def _channels(operations: Mapping[str, Typed[Any, Any]]) -> Iterator[tuple[str, Any]]:
    for name in operations:
        yield (
            _word(name),
            {
                "address": f"hw.agents.{{agent}}.{name}",
                "description": f"A request; {_level(name)}.",
                "parameters": {"agent": _ref("parameters/agent")},
                "messages": {"request": _ref(f"messages/{_word(name)}Request")},
            },
        )
        yield (
            f"{_word(name)}Reply",
            {
                "address": None,
                "description": "The inbox that the request named.",
                "messages": {
                    "reply": _ref(f"messages/{_word(name)}Reply"),
                    "problem": _ref("messages/problem"),
                },
            },
        )


def _operations(operations: Mapping[str, Typed[Any, Any]]) -> Iterator[tuple[str, Any]]:
    for name in operations:
        channel, reply = f"#/channels/{_word(name)}", f"#/channels/{_word(name)}Reply"
        yield (
            f"ask{_word(name)[0].upper()}{_word(name)[1:]}",
            {
                "action": "send",
                "title": TOLD[name].summary,
                "channel": {"$ref": channel},
                "messages": [{"$ref": f"{channel}/messages/request"}],
                "reply": {
                    "channel": {"$ref": reply},
                    "messages": [
                        {"$ref": f"{reply}/messages/reply"},
                        {"$ref": f"{reply}/messages/problem"},
                    ],
                },
            },
        )


def _messages(operations: Mapping[str, Typed[Any, Any]]) -> Iterator[tuple[str, Any]]:
    for name, operation in operations.items():
        told = TOLD[name]
        for part, model, example in (
            ("Request", operation.request, told.request),
            ("Reply", operation.reply, told.reply),
        ):
            yield (
                f"{_word(name)}{part}",
                {
                    "title": f"{name}: {part.lower()}",
                    "summary": told.summary if part == "Request" else "What is answered.",
                    "payload": _ref(f"schemas/{model.__name__}"),
                    "examples": [{"name": name, "payload": example}],
                },
            )


def _schemas(operations: Mapping[str, Typed[Any, Any]]) -> dict[str, Any]:
    models = dict(MODELS)
    for operation in operations.values():
        for model in (operation.request, operation.reply):
            models[model.__name__] = model
    found, defined = TypeAdapter.json_schemas(
        [(name, "validation", TypeAdapter(model)) for name, model in models.items()],
        ref_template="#/components/schemas/{model}",
    )
    schemas: dict[str, Any] = dict(defined.get("$defs", {}))
    for (name, _), schema in found.items():
        if "$ref" not in schema:
            schemas[str(name)] = schema
    _sign(schemas["Command"])
    return {name: _plain(schemas[name]) for name in sorted(schemas)}


def _sign(command: dict[str, Any]) -> None:
    """The signature stands before the model's members."""
    sig = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$", "title": "Sig"}
    command["properties"] = {"sig": sig, **command["properties"]}
    command["required"] = ["sig", *command["required"]]


def _plain(schema: Any) -> Any:
    """Without what tells nothing: titles that repeat a name."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    kept = {key: _plain(value) for key, value in schema.items() if key != "title"}
    if isinstance(properties, dict):
        kept["properties"] = {name: _plain(value) for name, value in properties.items()}
    return kept


def _replaced(text: str, name: str, block: Any) -> str:
    pattern = rf"(?ms)^( *)# (requests|models), generated: {name}\n.*?^ *# end\n"
    [found] = re.finditer(pattern, text)
    indent, what = found.group(1), found.group(2)
    dumped = yaml.dump(block, sort_keys=False, allow_unicode=True, width=100 - len(indent))
    lines = "".join(f"{indent}{line}\n" if line else "\n" for line in dumped.splitlines())
    kept = f"{indent}# {what}, generated: {name}\n{lines}{indent}# end\n"
    return text[: found.start()] + kept + text[found.end() :]


def _word(operation: str) -> str:
    first, *others = operation.split(".")
    return "".join([first, *(other.capitalize() for other in others)])


def _level(operation: str) -> str:
    return "an agent has to ask this" if operation in DEMANDED else "optional"


def _ref(place: str) -> dict[str, str]:
    return {"$ref": f"#/components/{place}"}


if __name__ == "__main__":
    FILE.write_text(written(FILE.read_text()))
