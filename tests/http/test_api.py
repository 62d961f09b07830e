"""The operations on HTTP: the same as on NATS, for whoever may."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import orjson
import pytest
from harness.served import CONSOLE_TOKEN, Served, detail_of, submitted
from headway.agents.identity import new_task_id
from headway.coordinator.errors import Refusal
from headway.coordinator.http_api import method_of
from headway.coordinator.http_requests import REQUESTS_MAX, REQUESTS_OF_ONE_MAX, request_places
from headway.coordinator.places import Places
from headway.coordinator.roles import NEEDS, ROLES

OPEN = {"number": 1, "a": "sleep=2"}


# What is asked and answered


async def test_a_task_is_handed_in_waited_for_and_read(operator: httpx.AsyncClient) -> None:
    receipt = (await submitted(operator, {"number": 1}, attributes={"colour": "red=ish"})).json()
    task = receipt["task"]
    assert receipt == {"task": task, "saga": "linear", "version": 1, "created": True}
    while True:
        answer = await operator.get("/api/get", params={"task": task, "wait_s": 5})
        view = answer.json()
        if view["status"] != "running":
            break
    assert (view["status"], view["owner"]) == ("succeeded", "a-operate")
    listed = await operator.get(
        "/api/list",
        params={"attribute": "colour=red=ish", "status": ["succeeded", "parked"], "limit": 5},
    )
    assert [each["task"] for each in listed.json()["tasks"]] == [task]
    history = (await operator.get("/api/history", params={"task": task})).json()
    assert history["entries"][0]["version"] == 1
    assert history["entries"][-1]["version"] == view["version"]


async def test_every_answer_is_the_one_that_nats_gives(
    served: Served, operator: httpx.AsyncClient
) -> None:
    task = (await submitted(operator, {"number": 2})).json()["task"]
    await operator.get("/api/get", params={"task": task, "wait_s": 5})
    questions: list[tuple[str, dict[str, Any]]] = [
        ("get", {"task": task}),
        ("history", {"task": task, "limit": 3}),
        ("journal.read", {"task": task, "step": "a"}),
        ("list", {"limit": 2}),
        ("saga.get", {"name": "linear"}),
        ("saga.list", {}),
        ("limits.list", {}),
        ("gate.keys", {}),
        ("get", {"task": str(new_task_id())}),
        ("list", {"cursor": "nonsense"}),
        ("list", {"limit": 501}),
    ]
    wire = served.system.client.connection.wire
    shown = {"Headway-Token": served.tokens["operate"]}
    for operation, request in questions:
        on_http = await operator.get(f"/api/{operation}", params=request)
        on_nats = await wire.ask(f"hw.api.{operation}", orjson.dumps(request), 5, shown)
        assert on_http.content == on_nats.data, operation
        code = (on_nats.headers or {}).get("Nats-Service-Error-Code", "200")
        assert str(on_http.status_code) == code


async def test_each_caller_is_told_who_it_is_and_what_it_may_ask_for(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    wire = served.system.client.connection.wire
    told: dict[str, set[str]] = {}
    for role in ROLES:
        answer = await anybody.get("/api/whoami", headers=served.shown(role))
        shown = {"Headway-Token": served.tokens[role]}
        assert (await wire.ask("hw.api.whoami", b"{}", 5, shown)).data == answer.content
        assert (answer.json()["name"], answer.json()["role"]) == (f"a-{role}", role)
        told[role] = set(answer.json()["operations"])
    assert told["operate"] == set(NEEDS) == set(served.coordinator._offer.people)
    assert told["view"] == {name for name in NEEDS if method_of(name) == "GET"}
    assert told["submit"] - told["view"] == {
        *("cancel", "gate.redeem", "run", "submit", "submit.many"),
    }
    assert {"overview", "dead.list", "document.get"} <= told["view"] - told["submit"]
    assert (await anybody.get("/api/whoami")).status_code == 401
    console = {"Authorization": f"Bearer {CONSOLE_TOKEN}"}
    assert (await anybody.get("/api/whoami", headers=console)).json()["name"] == "console"
    assert (await served.system.client.whoami()).may("retry")


async def test_lists_are_paged_by_a_cursor(operator: httpx.AsyncClient) -> None:
    mark = f"m-{new_task_id()}"
    tasks = [
        (await submitted(operator, {"number": n}, attributes={"mark": mark})).json()["task"]
        for n in range(5)
    ]
    found: list[str] = []
    cursor: str | None = None
    while True:
        asked = {"attribute": f"mark={mark}", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = (await operator.get("/api/list", params=asked)).json()
        found += [each["task"] for each in page["tasks"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert found == tasks[::-1]


# The same submission again


async def test_a_key_makes_a_submission_one_and_the_same(operator: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": str(new_task_id())}
    request = {"saga": "linear", "input": {"number": 1}}
    made = [
        (await operator.post("/api/submit", json=request, headers=key)).json() for _ in range(3)
    ]
    assert [each["created"] for each in made] == [True, False, False]
    assert {each["task"] for each in made} == {key["Idempotency-Key"]}
    at_once = {"Idempotency-Key": str(new_task_id())}
    answers = await asyncio.gather(
        *(operator.post("/api/submit", json=request, headers=at_once) for _ in range(20))
    )
    assert sum(each.json()["created"] for each in answers) == 1


async def test_a_task_is_run_in_one_request_and_again_with_its_key(
    operator: httpx.AsyncClient,
) -> None:
    key = {"Idempotency-Key": str(new_task_id())}
    request = {"saga": "linear", "input": {"number": 1}}
    first, again = [await operator.post("/api/run", json=request, headers=key) for _ in range(2)]
    assert (first.json()["task"], first.json()["status"]) == (key["Idempotency-Key"], "succeeded")
    assert again.json() == first.json()


async def test_the_same_key_with_another_body_is_a_conflict_as_on_nats(
    served: Served, operator: httpx.AsyncClient
) -> None:
    task = str(new_task_id())
    key = {"Idempotency-Key": task}
    await operator.post("/api/submit", json={"saga": "linear", "input": 1}, headers=key)
    other = {"saga": "linear", "input": 2}
    refused = await operator.post("/api/submit", json=other, headers=key)
    assert refused.status_code == 409
    shown = {"Headway-Token": served.tokens["operate"]}
    on_nats = await served.system.client.connection.wire.ask(
        "hw.api.submit", orjson.dumps(other | {"task": task}), 5, shown
    )
    assert refused.content == on_nats.data


async def test_a_key_that_is_no_id_is_refused(operator: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "order-7"}
    refused = await operator.post("/api/submit", json={"saga": "linear"}, headers=key)
    assert detail_of(refused) == (422, "Idempotency-Key: it is the task's id, a UUID")


# Who asks


async def test_without_a_token_nobody_is_told_anything_but_what_is_public(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    for name in served.coordinator._offer.people:
        answer = await anybody.request(method_of(name), f"/api/{name}", json={})
        assert detail_of(answer) == (
            401,
            "a token is needed: send it as `Authorization: Bearer hw_…`; `headway tokens create "
            "NAME --role ROLE` makes one, and `headway console` opens the console with one",
        )
        assert answer.headers["www-authenticate"] == "Bearer"
    for public in ("/", "/healthz", "/readyz", "/console/index.html", "/api/openapi.json"):
        assert (await anybody.get(public)).status_code == 200


@pytest.mark.parametrize(
    "shown",
    [
        [("Authorization", "hw_1_2")],
        [("Authorization", "Basic aHdfMV8y")],
        [("Authorization", "Bearer")],
        [("Authorization", "Bearer GOOD"), ("Authorization", "Bearer GOOD")],
        [("Headway-Token", "GOOD")],
        [("X-Authorization", "Bearer GOOD")],
        [("Cookie", "token=GOOD")],
    ],
)
async def test_a_token_counts_in_its_header_only_and_once(
    served: Served, anybody: httpx.AsyncClient, shown: list[tuple[str, str]]
) -> None:
    good = served.tokens["operate"]
    headers = [(name, value.replace("GOOD", good)) for name, value in shown]
    assert (await anybody.get("/api/agents", headers=headers)).status_code == 401
    query = await anybody.get("/api/agents", params={"token": good, "access_token": good})
    assert query.status_code == 401


@pytest.mark.parametrize("token", ["hw_000000000000_x", "hw_console_", "x" * 5_000, "é", "a\tb"])
async def test_a_token_that_is_not_good_is_refused(anybody: httpx.AsyncClient, token: str) -> None:
    shown = {"Authorization": f"Bearer {token}".encode()}
    answer = await anybody.get("/api/agents", headers=shown)
    assert detail_of(answer) == (401, "this token is not good: it is mistyped, or was revoked")


async def test_the_consoles_token_operates_and_is_no_token_on_nats(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    anybody.headers["Authorization"] = f"bearer {CONSOLE_TOKEN}"
    task = (await submitted(anybody, OPEN)).json()["task"]
    cancelled = await anybody.post("/api/cancel", json={"task": task, "by": "somebody else"})
    assert cancelled.status_code == 200
    history = (await anybody.get("/api/history", params={"task": task})).json()["entries"]
    assert {each["data"]["by"] for each in history if each["data"].get("by")} == {"console"}
    wire = served.system.client.connection.wire
    answer = await wire.ask("hw.api.agents", b"{}", 5, {"Headway-Token": CONSOLE_TOKEN})
    assert (answer.headers or {})["Nats-Service-Error-Code"] == "401"
    almost = {"Authorization": f"Bearer {CONSOLE_TOKEN[:-1]}"}
    assert (await anybody.get("/api/agents", headers=almost)).status_code == 401


async def test_each_role_is_let_in_where_it_is_enough_and_refused_elsewhere_before_it_is_read(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    for name in served.coordinator._offer.people:
        need = NEEDS[name]
        for role in ROLES:
            answer = await anybody.request(
                method_of(name), f"/api/{name}", json={}, headers=served.shown(role)
            )
            if need.is_met_by(role):
                held = need.own == "task" and role == "submit"
                assert answer.status_code not in (401, 403) or held, (name, role, answer.text)
            else:
                expected = f"token 'a-{role}' has role {role!r}; {name!r} needs {need}"
                assert detail_of(answer) == (403, expected)


async def test_role_submit_sees_its_own_tasks_only(
    served: Served, operator: httpx.AsyncClient
) -> None:
    others = (await submitted(operator, OPEN)).json()["task"]
    operator.headers.update(served.shown("submit"))
    own = (await submitted(operator, OPEN)).json()["task"]
    listed = (await operator.get("/api/list", params={"owner": "a-operate"})).json()["tasks"]
    assert others not in {each["task"] for each in listed}
    assert own in {each["task"] for each in listed}
    for name in ("get", "history", "timeline"):
        answer = await operator.get(f"/api/{name}", params={"task": others})
        assert detail_of(answer) == (404, f"there is no task {others}")
    refused = await operator.post("/api/cancel", json={"task": others})
    assert detail_of(refused) == (404, f"there is no task {others}")
    assert (await operator.post("/api/cancel", json={"task": own})).status_code == 200


# How many at once


def test_one_caller_and_all_together_have_so_many_places() -> None:
    places = request_places()
    with pytest.raises(Refusal) as refused:
        _take(places, "ann", REQUESTS_OF_ONE_MAX + 1)
    assert (refused.value.code, refused.value.reason) == (
        429,
        f"'ann' has {REQUESTS_OF_ONE_MAX} requests here already; wait until one ends",
    )
    with pytest.raises(Refusal) as refused:
        _take(places, None, REQUESTS_MAX + 1)
    assert (refused.value.code, refused.value.reason) == (
        503,
        "too many requests at once; ask again",
    )
    assert places.count == 0


def _take(places: Places, caller: str | None, count: int) -> None:
    if count:
        with places.taken(caller or f"caller {count}"):
            _take(places, caller, count - 1)


async def test_who_asks_too_much_at_once_is_told_to_wait_and_others_are_not(
    served: Served, anybody: httpx.AsyncClient
) -> None:
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(base_url=served.address, limits=limits, timeout=20) as greedy:
        greedy.headers.update(served.shown("view"))
        waits = {"task": str(new_task_id()), "wait_s": 2}
        asking = asyncio.gather(*(greedy.get("/api/get", params=waits) for _ in range(80)))
        await asyncio.sleep(1)
        other = await anybody.get("/api/agents", headers=served.shown("operate"))
        assert other.status_code == 200
        answers = await asking
    refused = [each for each in answers if each.status_code == 429]
    assert len(refused) == 80 - REQUESTS_OF_ONE_MAX
    assert {each.headers["retry-after"] for each in refused} == {"1"}
    assert {each.status_code for each in answers} == {404, 429}
