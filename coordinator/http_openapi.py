"""The HTTP API as an OpenAPI document: generated from the operations, and from nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import orjson
from headway.agents.feed_views import FeedRequest
from headway.agents.views import Problem
from headway.agents.webhook_views import HookReceipt
from headway.coordinator.access import UNDECIDED
from headway.coordinator.http_api import KEYED, PREFIX, method_of
from headway.coordinator.http_examples import EXAMPLES, SUMMARIES
from headway.coordinator.http_probes import Alive, Readiness
from headway.coordinator.http_problems import PROBLEM_JSON
from headway.coordinator.http_requests import ATTRIBUTES, JSON, KEY_HEADER, parameter_of
from headway.coordinator.problems import TITLES
from headway.coordinator.roles import FEED, NEEDS, Need
from headway.coordinator.serving import Serve
from headway.coordinator.webhook_signing import ID, SIGNATURE, TIMESTAMP, WINDOW_S
from headway.coordinator.webhooks import PATH
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import Response

OPENAPI = "3.1.0"
REFERENCE = "#/components/schemas/{model}"
ALL = (400, 401, 403, 404, 422, 429, 500, 503)  # what any operation may be refused with
ACTING = (408, 409, 413, 415)  # what those with a body may be refused with, too
GATE = (410,)  # what those about gates may be, too

DESCRIPTION = """Durable coordination for multi-agent systems.

Every operation has the name, models, roles and errors that it has on NATS and on the command line.
What only reads is a GET with the request's fields as parameters, what acts is a POST with JSON.
Each request shows a token: `Authorization: Bearer hw_…`. A refusal is a problem object (RFC 9457).
Lists are paged by a `cursor` that stays good while tasks come and go. Times are RFC 3339 in UTC."""

HOOKS = (
    "Signed as Standard Webhooks has it: HMAC-SHA256 over `<id>.<timestamp>.<body>`. Where in it "
    "task, signal and payload stand was said when the webhook was made (`webhook.create`)."
)

Document = dict[str, Any]


def document(operations: Mapping[str, Serve], of_version: str) -> Document:
    """The OpenAPI 3.1 document of these operations, and of what is served beside them."""
    serves = operations.values()
    asked: list[type[BaseModel]] = [*(serve.request for serve in serves), FeedRequest]
    told: list[type[BaseModel]] = [*(serve.reply for serve in serves), Problem]
    told += [Alive, Readiness, HookReceipt]
    schemas = _Schemas(asked, told)
    paths = {
        f"{PREFIX}{name}": {method_of(name).lower(): _operation(name, serve, schemas)}
        for name, serve in sorted(operations.items())
    }
    return {
        "openapi": OPENAPI,
        "info": {
            "title": "Headway",
            "version": of_version,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths
        | {f"{PREFIX}feed": {"get": _feed(schemas)}}
        | {f"{PATH}{{name}}": {"post": _hook(schemas)}}
        | _public(schemas),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas.definitions,
        },
    }


class _Schemas:
    """Each model once, by its name; twice if what is asked differs from what is told."""

    def __init__(self, asked: Iterable[type[BaseModel]], told: Iterable[type[BaseModel]]) -> None:
        models: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {}
        models |= {(each, "validation"): None for each in asked}
        models |= {(each, "serialization"): None for each in told}
        self._references, found = models_json_schema(list(models), ref_template=REFERENCE)
        self.definitions: Document = found["$defs"]

    def asked(self, model: type[BaseModel]) -> Document:
        return dict(self._references[model, "validation"])

    def told(self, model: type[BaseModel]) -> Document:
        return dict(self._references[model, "serialization"])

    def fields(self, model: type[BaseModel]) -> Document:
        """The schema of a request itself."""
        name = self.asked(model)["$ref"].rpartition("/")[2]
        return dict(self.definitions[name])


def _operation(name: str, serve: Serve, schemas: _Schemas) -> Document:
    example = EXAMPLES.get(name)
    shown = {} if example is None else example.request
    operation: Document = {
        "operationId": name,
        "summary": SUMMARIES.get(name, name),
        "description": f"{_text(serve.request)}\n\n{_whose(NEEDS.get(name, UNDECIDED))}".strip(),
        "tags": [name.partition(".")[0]],
    }
    refusals: tuple[int, ...] = ALL
    if method_of(name) == "GET":
        operation["parameters"] = _parameters(serve.request, schemas, shown)
    else:
        refusals += ACTING
        body = {"schema": schemas.asked(serve.request)}
        operation["requestBody"] = {"required": True, "content": {JSON: _with(body, shown or None)}}
        if name in KEYED:
            operation["parameters"] = [_key()]
    if name.startswith("gate."):
        refusals += GATE
    reply = {"schema": schemas.told(serve.reply)}
    told = None if example is None else example.reply
    answer = {"description": _text(serve.reply) or "Done.", "content": {JSON: _with(reply, told)}}
    return operation | {"responses": {"200": answer} | _refusals(refusals, schemas)}


def _feed(schemas: _Schemas) -> Document:
    return {
        "operationId": "feed",
        "summary": "What happens to tasks, as server-sent events",
        "description": f"{_text(FeedRequest)}\n\n{_whose(FEED)}",
        "tags": ["feed"],
        "parameters": _parameters(FeedRequest, schemas, {}),
        "responses": {
            "200": {
                "description": "Events, until one of both sides leaves.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        }
        | _refusals(ALL, schemas),
    }


def _hook(schemas: _Schemas) -> Document:
    def header(name: str, description: str, example: str) -> Document:
        schema = {"type": "string"}
        about = {"in": "header", "required": True, "description": description, "schema": schema}
        return {"name": name, **about, "example": example}

    digest = "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4="
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    answer = {"schema": schemas.told(HookReceipt)}
    return {
        "operationId": "hook",
        "summary": "A delivery of another system, which becomes a signal",
        "description": f"{HOOKS} Its signature is its leave: no token is asked for.",
        "tags": ["webhook"],
        "security": [],
        "parameters": [
            name,
            header(
                ID, "The delivery's id: one that comes again changes nothing.", "msg_2KWPBgLlAfxd"
            ),
            header(TIMESTAMP, f"Seconds since 1970, {WINDOW_S} away at most.", "1674087231"),
            header(SIGNATURE, "One or several, separated by spaces; one must fit.", digest),
        ],
        "requestBody": {"required": True, "content": {JSON: {"schema": {}}}},
        "responses": {"200": {"description": _text(HookReceipt), "content": {JSON: answer}}}
        | _refusals((400, 401, 404, *ACTING, 422, 429, 500, 503), schemas),
    }


def _public(schemas: _Schemas) -> Document:
    """What anybody may ask."""

    def probe(name: str, summary: str, reply: type[BaseModel], statuses: Sequence[int]) -> Document:
        content = {JSON: {"schema": schemas.told(reply)}}
        answers = {str(code): {"description": summary, "content": content} for code in statuses}
        get = {"operationId": name, "summary": summary, "tags": ["probes"], "security": []}
        return {"get": get | {"responses": answers}}

    return {
        "/healthz": probe("healthz", "Whether this coordinator runs", Alive, [200]),
        "/readyz": probe("readyz", "Whether it can serve, or what it lacks", Readiness, [200, 503]),
    }


def _parameters(model: type[BaseModel], schemas: _Schemas, shown: Document) -> list[Document]:
    schema = schemas.fields(model)
    found = []
    for field, described in schema.get("properties", {}).items():
        required = field in schema.get("required", ())
        parameter: Document = {
            "name": parameter_of(field),
            "in": "query",
            "required": required,
            "schema": _in_query(field, described),
        }
        if field in shown:
            example = shown[field]
            if field == ATTRIBUTES:
                example = [f"{name}={value}" for name, value in example.items()]
            parameter["example"] = example
        found.append(parameter)
    return found


def _in_query(field: str, described: Document) -> Document:
    """A field's schema as a parameter's: one that may be null is left out instead."""
    if field == ATTRIBUTES:
        return {"type": "array", "items": {"type": "string", "pattern": "="}}
    kept = {key: value for key, value in described.items() if key not in ("title", "default")}
    if described.get("default") is not None:
        kept["default"] = described["default"]
    choices = [each for each in kept.pop("anyOf", ()) if each != {"type": "null"}]
    if len(choices) == 1:
        return {**kept, **choices[0]}
    return {**kept, "anyOf": choices} if choices else kept


def _key() -> Document:
    return {
        "name": KEY_HEADER,
        "in": "header",
        "required": False,
        "description": "The task's id, in place of the request's `task`: the same request again is "
        "answered as the first one was; another one under the same id is refused with 409.",
        "schema": {"type": "string", "format": "uuid"},
    }


def _refusals(codes: Sequence[int], schemas: _Schemas) -> Document:
    content = {PROBLEM_JSON: {"schema": schemas.told(Problem)}}
    return {
        str(code): {"description": TITLES[code].capitalize(), "content": content}
        for code in sorted(codes)
    }


def _whose(need: Need) -> str:
    if not need.role:
        return "For whoever has a token."
    own = {"task": "; `submit` for its own tasks", "owner": "; `submit` is told of its own"}
    return f"Role {need}{own.get(need.own, '')}."


def _with(content: Document, example: object) -> Document:
    return content if example is None else content | {"example": example}


def _text(model: type[BaseModel]) -> str:
    return " ".join((model.__doc__ or "").split())


class Described:
    """The document as it is served: made when it is first asked for."""

    def __init__(self, operations: Mapping[str, Serve]) -> None:
        self._operations = operations
        self._body = b""

    async def answer(self, _request: Request) -> Response:
        if not self._body:
            self._body = orjson.dumps(document(self._operations, version("headway")))
        return Response(self._body, media_type=JSON)
