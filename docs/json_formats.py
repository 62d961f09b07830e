"""Writes docs/json.md and docs/json.schema.json: what each command writes with `--json`.

    .venv/bin/python docs/json_formats.py

Tests hold both to the models, and what commands write to them, so that no format changes unseen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.agents import catalogue_views, document_views, fork_views, limit_views, views
from headway.agents.auditing import AuditEntry
from headway.agents.batch_views import BatchReply
from headway.agents.deadletter_views import LetterPage, LetterReceipt, LetterView
from headway.agents.entries import Entry, JournalAppended
from headway.agents.export_views import TaskRecord
from headway.agents.replay_views import ReplayReport
from headway.agents.top_views import TopView
from headway.agents.webhook_views import WebhookList, WebhookMade, WebhookRef
from headway.agents.whoami_views import Whoami
from headway.cli.findings import Report as DoctorReport
from headway.conform.report import Report as ConformReport
from headway.drills.report import FaultList
from headway.drills.report import Report as DrillReport
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

HERE = Path(__file__).parent

Model = type[BaseModel]


@dataclass(frozen=True, slots=True)
class Format:
    """What a command writes: a model, or an object of a few fields. `lines`: any number of them,
    one a line, as they come. `when`: which of its uses it is, if there are several."""

    of: Model | dict[str, str]
    lines: bool = False
    when: str = ""


def one(of: Model | dict[str, str], when: str = "") -> Format:
    return Format(of, when=when)


def many(of: Model | dict[str, str], when: str = "") -> Format:
    return Format(of, lines=True, when=when)


TASK = one(views.TaskView)
BREAKER = one(limit_views.BreakerView)

FORMATS: dict[str, tuple[Format, ...]] = {
    "submit": (
        one(views.SubmitReceipt, "a task"),
        one(views.TaskView, "a task, with --wait"),
        many(views.SubmitReceipt, "--file"),
        many(views.TaskView, "--file, with --wait: each once it is settled"),
    ),
    "status": (TASK,),
    "watch": (many(views.TaskView, "now and after each change"),),
    "list": (one(views.TaskPage),),
    "history": (one(TaskRecord),),
    "replay": (one(ReplayReport),),
    "parked": (one(views.WaitingPage),),
    "journal": (many(Entry),),
    "audit": (many(AuditEntry),),
    "approve": (TASK,),
    "reject": (TASK,),
    "signal": (TASK,),
    "cancel": (TASK,),
    "retry": (TASK,),
    "settle": (one(views.TaskView, "a step"), one(JournalAppended, "--call")),
    "resume": (TASK,),
    "move": (TASK,),
    "fork": (one(fork_views.ForkReceipt),),
    "batch": (many(BatchReply, "a page of tasks each"),),
    "dead list": (one(LetterPage),),
    "dead show": (one(LetterView),),
    "dead replay": (one(LetterReceipt),),
    "dead drop": (one(LetterReceipt),),
    "document get": (one(document_views.Document),),
    "document put": (one(document_views.Written),),
    "document delete": (one(document_views.Written),),
    "document list": (one(document_views.DocumentPage),),
    "document history": (one(document_views.DocumentHistory),),
    "document collection": (one(document_views.CollectionView),),
    "saga register": (one(catalogue_views.SagaList),),
    "saga list": (one(catalogue_views.SagaList),),
    "saga show": (one(catalogue_views.SagaView),),
    "agents": (one(catalogue_views.AgentList),),
    "agents pause": (BREAKER,),
    "agents resume": (BREAKER,),
    "agents grant": (
        one(
            {
                "agent": "string",
                "public_key": "string",
                "seed": "string; only without --creds",
                "creds": "string: the file; only with --creds",
                "authorization": "string: for nats.conf; only where `headway up` does not run NATS",
            }
        ),
    ),
    "agents revoke": (one({"agent": "string", "revoked": "array of public keys"}),),
    "agents keys": (
        many(
            {
                "agent": "string",
                "public_key": "string",
                "granted_at": "time",
                "granted_by": "string",
                "revoked_at": "time or null",
                "revoked_by": "string",
            }
        ),
    ),
    "limits set": (one(limit_views.LimitList),),
    "limits list": (one(limit_views.LimitList),),
    "limits remove": (one(limit_views.LimitRef),),
    "tokens create": (one({"name": "string", "role": "string", "token": "string"}),),
    "tokens list": (
        many(
            {
                "name": "string",
                "role": "string",
                "id": "string",
                "made_at": "time",
                "revoked_at": "time or null",
            }
        ),
    ),
    "whoami": (one(Whoami),),
    "webhooks create": (one(WebhookMade),),
    "webhooks rotate": (one(WebhookMade),),
    "webhooks list": (one(WebhookList),),
    "webhooks remove": (one(WebhookRef),),
    "top": (one(TopView),),
    "doctor": (one(DoctorReport),),
    "drill": (one(DrillReport), one(FaultList, "--list")),
    "conform": (
        one(ConformReport),
        many({"check": "string", "level": "string", "says": "string"}, "--list"),
    ),
    "console": (one({"url": "string", "token": "string"}),),
    "up": (
        one(
            {
                "nats": "string: its address, without secrets",
                "postgres": "string: its address, without secrets",
                "http": "string: the address of the HTTP API and the console",
                "connections": "string: the file with addresses and secrets",
                "pid": "integer",
            },
            "once it is ready",
        ),
    ),
    "version": (one({"headway": "string", "python": "string"}),),
}
"""By command. Those that write no data are in SILENT."""

SILENT = {
    "agent": "runs until it is told to stop",
    "coordinator": "runs until it is told to stop",
    "tokens revoke": "says what it did on standard error",
    "demo": "its report is for people, and may change",
    "demo support": "its report is for people, and may change",
    "demo languages": "its report is for people, and may change",
}


def models() -> list[Model]:
    """All models that commands write, each once, by name."""
    found = {
        form.of for forms in FORMATS.values() for form in forms if not isinstance(form.of, dict)
    }
    return sorted(found, key=title)


def title(model: Model) -> str:
    """The name of a model here: three packages have a report."""
    package = model.__module__.split(".")[1]
    return f"{package.title()}{model.__name__}" if model.__name__ == "Report" else model.__name__


def schema() -> dict[str, Any]:
    """The schemas of all models, as commands write them, by name."""
    return {title(model): model.model_json_schema(mode="serialization") for model in models()}


def page() -> str:
    """docs/json.md."""
    parts = [HEAD, "| command | writes |", "|---|---|"]
    parts += [f"| `headway {name}` | {_forms(forms)} |" for name, forms in FORMATS.items()]
    parts += [f"| `headway {name}` | nothing: {why} |" for name, why in SILENT.items()]
    parts += ["", "## Models", ""]
    _, together = models_json_schema([(model, "serialization") for model in models()])
    for name, body in sorted(together["$defs"].items()):
        parts += _section(name, body)
    return "\n".join(parts) + "\n"


HEAD = """# What `--json` writes

Written by `docs/json_formats.py`; `json.schema.json` has the same as JSON Schema.

Every command takes `--json`, before or after its name. Then standard output holds JSON and nothing
else: one document, or one a line where it says *lines*. Narration and errors go to standard error.
Exit codes are the same as without. Times are RFC 3339 in UTC. Fields may be added in a new version;
none is renamed, removed or given another meaning without a note in the changelog.
"""


def _forms(forms: tuple[Format, ...]) -> str:
    return "; ".join(filter(None, map(_form, forms)))


def _form(form: Format) -> str:
    if isinstance(form.of, dict):
        shown = "{ " + ", ".join(f"`{name}`: {kind}" for name, kind in form.of.items()) + " }"
    else:
        shown = f"[{title(form.of)}](#{title(form.of).lower()})"
    when = f" ({form.when})" if form.when else ""
    return f"{'lines of ' if form.lines else ''}{shown}{when}"


def _section(name: str, body: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {_shown(name)}", "")
    if "description" in body:
        yield from (body["description"], "")
    if "enum" in body:
        yield from (", ".join(f"`{value}`" for value in body["enum"]), "")
        return
    if body.get("properties"):
        yield from ("| field | type |", "|---|---|")
        for field, described in body["properties"].items():
            yield f"| `{field}` | {_type(described)} |"
        yield ""


def _shown(name: str) -> str:
    """A definition's name: pydantic writes a whole path where two models have the same."""
    if "__" not in name:
        return name
    *_, package, _module, last = name.split("__")
    return f"{package.title()}{last}"


def _type(described: dict[str, Any]) -> str:
    if "$ref" in described:
        name = _shown(described["$ref"].rpartition("/")[2])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in described:
        return " or ".join(_type(each) for each in described["anyOf"])
    if "enum" in described:
        return ", ".join(f"`{value}`" for value in described["enum"])
    if "const" in described:
        return f"`{json.dumps(described['const'])}`"
    match described.get("type"):
        case "array":
            return f"array of {_type(described.get('items', {}))}"
        case "object":
            values = described.get("additionalProperties")
            return f"object of {_type(values)}" if isinstance(values, dict) else "object"
        case "string":
            return {"date-time": "time", "uuid": "UUID"}.get(described.get("format", ""), "string")
        case None:
            return "any"
        case kind:
            return str(kind)


def files() -> dict[str, str]:
    """The files, by name."""
    return {
        "json.md": page(),
        "json.schema.json": json.dumps(schema(), indent=1, sort_keys=True) + "\n",
    }


if __name__ == "__main__":
    for name, text in files().items():
        (HERE / name).write_text(text, "utf-8")
