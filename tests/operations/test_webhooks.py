"""Webhooks: what another system sends, signed, becomes one signal; and all that is refused."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import httpx
import orjson
import pytest
import pytest_asyncio
from harness.eventually import eventually
from headway.agents import Client
from headway.agents.errors import Conflict, HeadwayError, InvalidInput, NotFound
from headway.agents.identity import new_task_id
from headway.agents.webhook_views import WebhookMade
from headway.coordinator.app import Coordinator
from headway.coordinator.errors import Refusal
from headway.coordinator.settings import Settings
from headway.coordinator.webhook_places import check_pointer, value_at
from headway.coordinator.webhook_signing import signature


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(world) -> AsyncIterator[httpx.AsyncClient]:
    """A peer of the world's coordinator, with HTTP."""
    stop = asyncio.Event()
    coordinator = Coordinator(
        Settings(nats_url=world.nats.url, postgres_url=world.postgres_url, http="127.0.0.1:0")
    )
    running = asyncio.create_task(coordinator.run(stop))
    world.peers.append(coordinator)
    await eventually(lambda: coordinator._http.address, what="HTTP is served")
    async with httpx.AsyncClient(base_url=coordinator._http.address) as client:

        async def ready() -> bool:
            return (await client.get("/readyz")).status_code == 200

        await eventually(ready)
        yield client
    stop.set()
    await running


async def made(client: Client, **options: Any) -> WebhookMade:
    return await client.create_webhook(f"hook-{uuid4().hex[:12]}", **options)


def headers_of(
    secret: str, body: bytes, *, delivery: str = "", at: float | None = None
) -> dict[str, str]:
    """As any library for Standard Webhooks signs."""
    delivery = delivery or f"msg_{uuid4().hex}"
    timestamp = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{delivery}.{timestamp}.".encode() + body, "sha256")
    return {
        "content-type": "application/json",
        "webhook-id": delivery,
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


async def waiting(world, saga: str = "paid") -> UUID:
    """A task that waits for the signal `paid`."""
    task: UUID = (await world.client.submit(saga, {})).task

    async def there() -> bool:
        view = await world.client.status(task)
        return any("signal" in (step.waiting_for or "") for step in view.steps)

    await eventually(there)
    return task


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["detail"]


async def test_a_delivery_becomes_a_signal_with_what_it_brings(world, client, http):
    hook = await made(
        client,
        task="pointer:/data/metadata/task",
        signal="name:paid",
        payload="/data/amount",
        saga="paid",
        by="ann",
    )
    task = await waiting(world)
    body = orjson.dumps({"data": {"metadata": {"task": str(task)}, "amount": 17}})
    headers = headers_of(hook.secret, body)
    answer = await http.post(hook.path, content=body, headers=headers)
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "id": headers["webhook-id"],
            "task": str(task),
            "signal": "paid",
            "repeated": False,
        },
    )
    view = await world.ended(task)
    assert (view.status, view.results["paid"]) == ("succeeded", 17)
    [act] = [each async for each in client.audit(task) if each.kind == "SignalReceived"]
    assert (act.who, act.what) == (f"webhook {hook.name}", "paid")


async def test_places_may_be_in_the_query_and_in_headers(world, client, http):
    by_query = await made(client)
    by_header = await made(client, task="header:X-Task", signal="header:X-Event")
    for hook in (by_query, by_header):
        task = await waiting(world)
        headers = headers_of(hook.secret, b"[1]")
        query = {"task": str(task), "signal": "paid"} if hook is by_query else {}
        headers |= {} if hook is by_query else {"x-task": str(task), "x-event": "paid"}
        answer = await http.post(hook.path, content=b"[1]", headers=headers, params=query)
        assert answer.status_code == 200, answer.text
        assert (await world.ended(task)).results["paid"] == [1]


async def test_a_delivery_that_comes_again_changes_nothing(world, client, http):
    hook = await made(client, signal="name:tick")
    task = await waiting(world, "twice")
    headers = headers_of(hook.secret, b"{}")
    query = {"task": str(task)}
    answers = await asyncio.gather(
        *(http.post(hook.path, content=b"{}", headers=headers, params=query) for _ in range(5))
    )
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["repeated"] for answer in answers) == [False, *4 * [True]]
    signals = [each for each in await client.history(task) if each.type == "SignalReceived"]
    assert len(signals) == 1, "the second step still waits"
    again = headers_of(hook.secret, b"{}")
    await http.post(hook.path, content=b"{}", headers=again, params=query)
    assert (await world.ended(task)).status == "succeeded"


async def test_a_delivery_that_was_listened_to_is_good_for_nothing_else(world, client, http):
    """The query is not signed."""
    hook = await made(client, signal="name:paid")
    meant, other = await waiting(world), await waiting(world)
    headers = headers_of(hook.secret, b"{}", delivery="msg_1")
    first = await http.post(hook.path, content=b"{}", headers=headers, params={"task": str(meant)})
    assert first.status_code == 200
    stolen = await http.post(hook.path, content=b"{}", headers=headers, params={"task": str(other)})
    assert problem(stolen) == (
        409,
        f"delivery 'msg_1' was signal 'paid' for task {meant}; an id is for one delivery",
    )
    await client.cancel(other)


NEEDED = "webhook-id, webhook-timestamp, webhook-signature: a delivery needs these three headers"
UNFIT = "webhook-signature: it does not fit this delivery and this webhook's secret"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"webhook-id": ""}, NEEDED),
        ({"webhook-timestamp": ""}, NEEDED),
        ({"webhook-signature": ""}, NEEDED),
        ({"webhook-id": "a.b"}, "webhook-id: 1 to 120 printable characters, none of them a dot"),
        (
            {"webhook-id": "x" * 121},
            "webhook-id: 1 to 120 printable characters, none of them a dot",
        ),
        ({"webhook-timestamp": "now"}, "webhook-timestamp: not in seconds since 1970"),
        ({"webhook-timestamp": "1"}, UNFIT),
        ({"webhook-id": "another"}, UNFIT),
        ({"webhook-signature": "v1,AAAA"}, UNFIT),
        ({"webhook-signature": ("v2,é " * 30).strip()}, UNFIT),
    ],
)
async def test_what_is_not_signed_by_its_secret_is_refused(client, http, change, text):
    hook = await made(client)
    headers = headers_of(hook.secret, b"{}") | change
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    answer = await http.post(hook.path, content=b"{}", headers=raw)
    assert problem(answer) == (401, text)


async def test_another_body_another_webhook_or_another_secret_does_not_fit(client, http):
    hook, other = await made(client), await made(client)
    signed = headers_of(hook.secret, b"{}")
    for path, body, headers in (
        (hook.path, b"[]", signed),
        (other.path, b"{}", signed),
        (hook.path, b"{}", headers_of(other.secret, b"{}")),
    ):
        answer = await http.post(path, content=body, headers=headers)
        assert problem(answer) == (401, UNFIT)


async def test_one_of_several_signatures_must_fit(world, client, http):
    hook = await made(client, signal="name:paid")
    task = await waiting(world)
    headers = headers_of(hook.secret, b"{}")
    headers["webhook-signature"] = f"v1,AAAA {headers['webhook-signature']} v1a,BBBB"
    answer = await http.post(hook.path, content=b"{}", headers=headers, params={"task": str(task)})
    assert answer.status_code == 200


@pytest.mark.parametrize("away_s", [-400, 400])
async def test_a_delivery_is_good_for_five_minutes(client, http, away_s):
    hook = await made(client)
    headers = headers_of(hook.secret, b"{}", at=time.time() + away_s)
    code, text = problem(await http.post(hook.path, content=b"{}", headers=headers))
    assert (code, text.partition(": ")[0]) == (401, "webhook-timestamp")
    assert text.endswith("s away from this coordinator's clock; at most 300 s are taken")


async def test_what_is_not_found_in_a_delivery_is_said(world, client, http):
    hook = await made(client, task="pointer:/task", signal="name:paid", payload="/data/0")
    unknown = new_task_id()
    cases = [
        (b"nonsense", 422, "the body is not JSON: "),
        (b"{}", 422, "task: there is nothing at /task of this body"),
        (b'{"task": 5}', 422, "task: there is no text at pointer:/task of this delivery"),
        (b'{"task": "x", "data": [1]}', 422, "task: 'x' is no task's id"),
        (
            orjson.dumps({"task": str(unknown), "data": {}}),
            422,
            "payload: there is nothing at /data/0 of this body",
        ),
        (orjson.dumps({"task": str(unknown), "data": [1]}), 404, f"there is no task {unknown}"),
    ]
    for body, code, text in cases:
        answer = await http.post(hook.path, content=body, headers=headers_of(hook.secret, body))
        assert answer.status_code == code, answer.text
        assert problem(answer)[1].startswith(text)


async def test_a_webhook_of_one_saga_reaches_no_other(world, client, http):
    hook = await made(client, signal="name:paid", saga="late")
    task = await waiting(world)
    headers = headers_of(hook.secret, b"{}")
    answer = await http.post(hook.path, content=b"{}", headers=headers, params={"task": str(task)})
    assert problem(answer) == (404, f"there is no task {task} of saga 'late'")
    await client.cancel(task)


async def test_what_no_step_waits_for_is_refused_and_may_come_again(world, client, http):
    hook = await made(client, signal="query:event")
    task = await waiting(world)
    headers = headers_of(hook.secret, b"{}")
    query = {"task": str(task), "event": "unheard of"}
    for _ in range(2):
        answer = await http.post(hook.path, content=b"{}", headers=headers, params=query)
        assert problem(answer) == (
            409,
            "no step waits for a signal 'unheard of'; awaited are: paid",
        )
    await client.cancel(task)


async def test_bodies_that_are_too_large_or_of_another_kind_are_refused(client, http):
    hook = await made(client)
    large = b'"' + b"x" * 2_000_000 + b'"'
    answer = await http.post(hook.path, content=large, headers=headers_of(hook.secret, large))
    assert answer.status_code == 413
    headers = headers_of(hook.secret, b"a=b") | {"content-type": "text/plain"}
    answer = await http.post(hook.path, content=b"a=b", headers=headers)
    assert problem(answer) == (415, "Content-Type: the body must be application/json")
    assert (await http.get(hook.path)).status_code == 405


async def test_webhooks_are_listed_and_removed_and_their_secrets_end_with_them(world, client, http):
    hook = await made(client, by="ann")
    listed = {each.name: each for each in (await client.webhooks()).webhooks}
    assert listed[hook.name].model_dump() == {
        key: value for key, value in hook.model_dump().items() if key != "secret"
    }
    again = await failed(client.create_webhook(hook.name))
    assert (type(again), str(again)) == (
        Conflict,
        f"webhook {hook.name!r} exists; remove it first, or take another name",
    )
    await client.remove_webhook(hook.name, "leaked", by="bob")
    gone = f"there is no webhook {hook.name!r}"
    assert str(await failed(client.remove_webhook(hook.name))) == gone
    headers = headers_of(hook.secret, b"{}")
    assert problem(await http.post(hook.path, content=b"{}", headers=headers)) == (404, gone)
    second = await client.create_webhook(hook.name)
    assert second.secret != hook.secret
    assert problem(await http.post(hook.path, content=b"{}", headers=headers)) == (401, UNFIT)
    acts = [each async for each in client.audit() if each.what == hook.name]
    assert [(each.kind, each.who, each.reason) for each in acts] == [
        ("webhook-created", "ann", ""),
        ("webhook-removed", "bob", "leaked"),
        ("webhook-created", "", ""),
    ]
    kept = str(await world.fetch("SELECT * FROM headway.webhooks, headway.acts"))
    assert second.secret.removeprefix("whsec_") not in kept


async def test_a_secret_is_changed_while_the_one_before_is_good_for_a_while(world, client, http):
    hook = await made(client, signal="name:paid", by="ann")

    async def sent(*secrets: str) -> int:
        """A delivery that is signed with each of these secrets."""
        task = await waiting(world)
        delivery, at = f"msg_{uuid4().hex}", time.time()
        signed = [headers_of(each, b"{}", delivery=delivery, at=at) for each in secrets]
        signatures = " ".join(each["webhook-signature"] for each in signed)
        answer = await http.post(
            hook.path,
            content=b"{}",
            headers=signed[0] | {"webhook-signature": signatures},
            params={"task": str(task)},
        )
        return answer.status_code

    second = await client.rotate_webhook(hook.name, "once a year", overlap_s=60, by="bob")
    assert second.secret != hook.secret
    assert second.old_until is not None
    [listed] = [each for each in (await client.webhooks()).webhooks if each.name == hook.name]
    assert listed.old_until == second.old_until
    assert [await sent(second.secret), await sent(hook.secret)] == [200, 200]
    assert await sent(hook.secret, second.secret) == 200
    past = "UPDATE headway.webhooks SET old_until = now() - interval '1 s' WHERE name = $1"
    await world.fetch(past, hook.name)
    assert [await sent(second.secret), await sent(hook.secret)] == [200, 401]
    assert await sent(hook.secret, second.secret) == 200  # a sender that signs with both
    [listed] = [each for each in (await client.webhooks()).webhooks if each.name == hook.name]
    assert listed.old_until is None
    third = await client.rotate_webhook(hook.name, "leaked", overlap_s=0)
    assert third.old_until is None
    assert [await sent(third.secret), await sent(second.secret)] == [200, 401]
    acts = [each async for each in client.audit() if each.what == hook.name]
    assert [(each.kind, each.who, each.reason, each.data.get("overlap_s")) for each in acts][
        1:
    ] == [
        ("webhook-rotated", "bob", "once a year", 60),
        ("webhook-rotated", "", "leaked", 0),
    ]
    assert str(await failed(client.rotate_webhook("never"))) == "there is no webhook 'never'"
    for overlap_s in (-1, 31 * 86_400):
        assert isinstance(
            await failed(client.rotate_webhook(hook.name, overlap_s=overlap_s)), InvalidInput
        )


async def failed(asked: Any) -> HeadwayError:
    with pytest.raises(HeadwayError) as caught:
        await asked
    return caught.value


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"task": "body:task"},
            "task: written pointer:/data/task, query:task, header:X-Task; not 'body:task'",
        ),
        (
            {"task": "name:paid"},
            "task: written pointer:/data/task, query:task, header:X-Task; not 'name:paid'",
        ),
        (
            {"signal": "query:"},
            "signal: written pointer:/data/signal, query:signal, header:X-Signal, name:paid; "
            "not 'query:'",
        ),
        ({"task": "pointer:data"}, "task: 'data' is no JSON pointer (RFC 6901)"),
        ({"payload": "data"}, "payload: 'data' is no JSON pointer (RFC 6901)"),
    ],
)
async def test_places_that_are_none_are_refused(client, options, text):
    assert str(await failed(made(client, **options))) == text


async def test_names_that_are_no_end_of_an_address_are_refused(client):
    assert "name: " in str(await failed(client.create_webhook("a/b")))


async def test_only_operators_make_webhooks_and_deliveries_need_no_token(
    world, client, http, making
):
    operator = Client(client.connection, token=await making.create("ann", "operate"))
    viewer = Client(client.connection, token=await making.create("vera", "view"))
    refused = await failed(made(viewer))
    assert str(refused) == "token 'vera' has role 'view'; 'webhook.create' needs 'operate'"
    hook = await made(operator, signal="name:paid", by="somebody else")
    assert hook.created_by == "ann"
    assert hook.name in {each.name for each in (await viewer.webhooks()).webhooks}
    task = (await operator.submit("paid", {})).task

    async def taken() -> bool:
        headers = headers_of(hook.secret, b"{}")
        params = {"task": str(task)}
        answer = await http.post(hook.path, content=b"{}", headers=headers, params=params)
        return answer.status_code == 200

    await eventually(taken)
    assert (await operator.result(task, timeout=10)).status == "succeeded"


def test_json_pointers_are_those_of_rfc_6901():
    body = {"a/b": 1, "m~n": 2, "": 3, "list": [4, {"x": 5}], "0": 6}
    for pointer, value in {
        "": body,
        "/a~1b": 1,
        "/m~0n": 2,
        "/": 3,
        "/list/0": 4,
        "/list/1/x": 5,
        "/0": 6,
    }.items():
        check_pointer(pointer, "p")
        assert value_at(pointer, "p", body) == value
    for pointer in ("/none", "/list/2", "/list/01", "/list/-", "/list/x", "/a~1b/c"):
        with pytest.raises(Refusal, match="p: there is nothing at "):
            value_at(pointer, "p", body)
    for pointer in ("a", "/~2", "/~"):
        with pytest.raises(Refusal, match="is no JSON pointer"):
            check_pointer(pointer, "p")


def test_signatures_are_those_of_standard_webhooks():
    """An example of its specification."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    body = b'{"test": 2432232314}'
    given = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert given == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


async def test_a_task_that_is_not_there_yet_is_signalled_once_it_is(world, client, http):
    hook, task = await made(client, signal="name:paid"), new_task_id()
    headers = headers_of(hook.secret, b"{}")

    async def sent() -> int:
        params = {"task": str(task)}
        return (
            await http.post(hook.path, content=b"{}", headers=headers, params=params)
        ).status_code

    assert await sent() == 404
    await client.submit("paid", {}, task=task)
    assert await sent() == 200
    assert (await world.ended(task)).status == "succeeded"


async def test_removing_a_webhook_that_never_was_is_refused(client):
    with pytest.raises(NotFound, match="there is no webhook 'never'"):
        await client.remove_webhook("never")
