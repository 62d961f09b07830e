"""The OpenAPI document: whole, sound, and with examples that are good."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from harness.served import Served
from headway.coordinator.http_api import method_of
from headway.coordinator.http_examples import EXAMPLES, SUMMARIES
from headway.coordinator.roles import NEEDS
from jsonschema_rs import meta, validator_for


async def described(anybody: httpx.AsyncClient) -> dict[str, Any]:
    answer = await anybody.get("/api/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


async def test_anybody_may_read_it_and_it_has_every_operation(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    paths = (await described(anybody))["paths"]
    for name in served.coordinator._offer.people:
        assert list(paths[f"/api/{name}"]) == [method_of(name).lower()], name


async def test_every_operation_says_what_it_is_for_and_what_it_is_refused_with(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    document = await described(anybody)
    for name in served.coordinator._offer.people:
        [operation] = document["paths"][f"/api/{name}"].values()
        assert operation["summary"] == SUMMARIES[name]
        assert {"200", "401", "403", "422", "429", "503"} <= set(operation["responses"])
        for status, response in operation["responses"].items():
            [(kind, content)] = response["content"].items()
            assert kind == ("application/json" if status == "200" else "application/problem+json")
            name_of_schema = content["schema"]["$ref"].rpartition("/")[2]
            assert name_of_schema in document["components"]["schemas"]


async def test_webhooks_and_the_bounds_of_a_filter_are_in_it(anybody: httpx.AsyncClient) -> None:
    paths = (await described(anybody))["paths"]
    hook = paths["/hooks/{name}"]["post"]
    assert hook["security"] == []
    assert [each["name"] for each in hook["parameters"]] == [
        *("name", "webhook-id", "webhook-timestamp", "webhook-signature")
    ]
    assert "not those that only an agent handed off" in paths["/api/list"]["get"]["description"]


async def test_every_schema_in_it_is_one(anybody: httpx.AsyncClient) -> None:
    for name, schema in (await described(anybody))["components"]["schemas"].items():
        meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema)
        assert "$defs" not in schema, name


@pytest.mark.parametrize("name", EXAMPLES)
async def test_every_example_is_a_request_and_a_reply(served: Served, name: str) -> None:
    serve, example = served.coordinator._offer.people[name], EXAMPLES[name]
    assert name in SUMMARIES
    serve.request.model_validate(example.request)
    if example.reply is not None:
        told = serve.reply.model_validate(example.reply)
        assert told.model_dump(exclude_none=False).keys() == example.reply.keys()


async def test_every_operation_that_takes_something_and_acts_has_an_example(served: Served) -> None:
    acting = {
        name
        for name, serve in served.coordinator._offer.people.items()
        if method_of(name) == "POST" and serve.request.model_fields
    }
    assert acting <= set(EXAMPLES)


def test_what_changes_nothing_is_a_get_and_what_acts_is_a_post() -> None:
    methods = {name: method_of(name) for name in NEEDS}
    reading = {name for name, method in methods.items() if method == "GET"}
    acting = {"submit", "cancel", "gate.redeem", "saga.register", "dead.drop", "document.put"}
    assert {"get", "list", "health", "gate.keys", "document.get", "journal.read"} <= reading
    assert not acting & reading


async def test_every_example_of_a_schema_is_valid(anybody: httpx.AsyncClient) -> None:
    document = await described(anybody)
    for path in document["paths"].values():
        for operation in path.values():
            content = operation.get("requestBody", {}).get("content", {})
            for body in content.values():
                schema = body["schema"] | {"components": document["components"]}
                if "example" in body:
                    assert validator_for(schema).is_valid(body["example"]), operation["summary"]
